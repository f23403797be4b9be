"""The verbs of the client, once for Client and AsyncClient: see protocol.py. Their first argument is the connection."""
from __future__ import annotations

import json
from typing import Iterable, Mapping

from .._time import Seconds
from .errors import NotFound, Unsupported
from .protocol import (Body, Delivery, Dialogue, Expired, Missed, Mode, Object, Overlap, Put, State, Steps, When,
                       ask, checked, command, data, encoded, encoded_reason, everything, header_lines, moment, name,
                       numbers, objects, options, rank, same_priority, seconds, span, want_headers, whole)

# ---- Jobs


def put(dialogue: Dialogue, body: Body, *, tube: str | None = None, delay: Seconds = 0, at: When | None = None,
        priority: int = 1024, ttr: Seconds = 60, key: Body | None = None, mode: Mode | None = None,
        debounce: Seconds | None = None, unique: Seconds | None = None, version: int | None = None,
        every: Seconds | None = None, missed: Missed | None = None, skip: Seconds | None = None,
        attempts: int | None = None, backoff: Seconds | None = None, backoff_max: Seconds | None = None,
        group: Body | None = None, keep: Seconds | None = None, expire: Seconds | None = None,
        expired: Expired | None = None, headers: Mapping[str, str] | None = None,
        spread: Seconds | None = None, then: Mapping[str, object] | None = None,
        code: int | None = None) -> Steps[Put]:
    """Put a job, due after `delay` or at a time of the wall clock. A worker has `ttr` to finish it. priority: the smaller,
    the earlier.

    key: names the job in its tube; what has it is replaced. mode, debounce, unique, version: unless they say otherwise.
    every: again and again. missed, skip: what becomes of due times that passed. attempts, backoff, backoff_max: after
    deliveries that fail. group: groups take turns and may have limits. keep: how long the history of its runs is kept.
    expire: how long after it is due it expires, unless a worker has it. expired: whether it is dropped then or buried.
    headers: names and values beside the body, such as a tenant or a trace: 16 of visible ASCII, 4096 bytes in all.
    spread: due a part of this later, which the key fixes, or the body if there is none. then: the job to put when this one is
    finished, in one write with its end, with the members of POST /v1/jobs: {"tube": "mail", "body": "done"}.
    code: the version of the code that can do it: clients of a lower code do not get it.

    Without these, and in whole seconds, the command is beanstalkd's.
    """
    more = options(mode=mode, debounce=span(debounce), unique=span(unique), version=version, every=span(every),
                   missed=missed, skip=span(skip), attempts=attempts, backoff=span(backoff),
                   backoff_max=span(backoff_max), group=name(group), keep=span(keep), expire=span(expire),
                   expired=expired, spread=span(spread), code=code)
    lines = header_lines(headers)
    follows = b"" if then is None else json.dumps(then).encode()
    more += options(headers=len(lines) or None, then=len(follows) or None)
    given = lines + follows + data(body)
    if key is None and not (mode is None and debounce is None and unique is None):
        raise ValueError("mode, debounce and unique are for a job with a key: name it with key=")
    priority = rank(priority)
    if at is None and key is None and not more and "." not in seconds(delay) + seconds(ttr):
        line = f"put {priority} {seconds(delay)} {seconds(ttr)} {len(given)}"
    else:
        verb, due = ("put-key", seconds(delay)) if at is None else ("put-at", moment(at))
        word = "-" if key is None else encoded(key)
        line = f"{verb} {priority} {due} {seconds(ttr)} {len(given)} {word}{more}"
    answer = yield from ask(dialogue, "put", line, ("INSERTED", "REPLACED", "KEPT", "ENDED", "BURIED"), tube=tube,
                            uses=True, body=given)
    words = answer.words
    outcomes: dict[str, Put] = {
        "INSERTED": Put(int(words[1]), "inserted"), "REPLACED": Put(int(words[1]), "replaced"),
        "KEPT": Put(int(words[1]), "kept"), "ENDED": Put(int(words[1]), "ended"),
        "BURIED": Put(int(words[1]), "buried")}
    found = outcomes[words[0]]
    return Put(found.id, found.outcome, int(words[2]) if len(words) > 2 else None)


def delete(dialogue: Dialogue, id: int) -> Steps[None]:
    """Delete a job: one that this client has reserved, or one that nobody has."""
    yield from ask(dialogue, f"delete {id}", f"delete {id}", ("DELETED",))


def delete_key(dialogue: Dialogue, key: Body, *, tube: str | None = None, version: int | None = None) -> Steps[bool]:
    """Delete the job of a key, whatever its state. Return True, or False if a worker runs it: that delivery is its
    last."""
    answer = yield from ask(dialogue, f"delete_key {key!r}", f"delete-key {encoded(key)}" + options(version=version),
                            ("DELETED", "RUNNING"), tube=tube, uses=True)
    return answer.line == "DELETED"


def move(dialogue: Dialogue, id: int, delay: Seconds = 0, *, at: When | None = None,
         version: int | None = None) -> Steps[int]:
    """Give a delayed or ready job another delay or due time. Return its new version."""
    return (yield from _move(dialogue, f"move {id}", delay, at, version, None, False))


def move_key(dialogue: Dialogue, key: Body, delay: Seconds = 0, *, at: When | None = None, tube: str | None = None,
             version: int | None = None) -> Steps[int]:
    """The same for the job of a key."""
    return (yield from _move(dialogue, f"move-key {encoded(key)}", delay, at, version, tube, True))


def _move(dialogue: Dialogue, start: str, delay: Seconds, at: When | None, version: int | None, tube: str | None,
          uses: bool) -> Steps[int]:
    due = "-" if at is not None else seconds(delay)
    line = f"{start} {due}" + options(version=version, at=None if at is None else moment(at))
    answer = yield from ask(dialogue, start, line, ("MOVED",), tube=tube, uses=uses)
    return int(answer.words[1])


def kick(dialogue: Dialogue, bound: int = 1, *, tube: str | None = None) -> Steps[int]:
    """Make up to `bound` buried jobs ready, or, where there are none, delayed ones. Return how many."""
    answer = yield from ask(dialogue, "kick", f"kick {bound}", ("KICKED",), tube=tube, uses=True)
    return int(answer.words[1])


def kick_job(dialogue: Dialogue, id: int) -> Steps[None]:
    """Make a buried or delayed job ready."""
    yield from ask(dialogue, f"kick_job {id}", f"kick-job {id}", ("KICKED",))


# ---- A job that this client has reserved


def reserve_job(dialogue: Dialogue, id: int) -> Steps[Delivery]:
    """Take the job of an id."""
    yield from want_headers(dialogue)
    return (yield from ask(dialogue, f"reserve_job {id}", f"reserve-job {id}", ("RESERVED",))).job


def touch(dialogue: Dialogue, id: int) -> Steps[None]:
    """Begin a reserved job's time to run anew."""
    yield from ask(dialogue, f"touch {id}", f"touch {id}", ("TOUCHED",))


def release(dialogue: Dialogue, id: int, *, delay: Seconds | None = None, priority: int | None = None,
            error: str | None = None) -> Steps[bool]:
    """Give a reserved job back, for after `delay` (None: its own backoff), with a reason. Return True, or False if that
    was its last attempt and it is buried."""
    priority = yield from same_priority(dialogue, id, priority)
    if dialogue.has_own is not False and (delay is None or error or "." in seconds(delay)):
        reason = encoded_reason(error) or "-"
        due = "-" if delay is None else seconds(delay)
        answers = yield [command(f"release-job {id} {priority} {due} {reason}")]
        dialogue.has_own = answers[0].line != "UNKNOWN_COMMAND" and dialogue.has_own
        if answers[0].line in ("RELEASED", "BURIED"):
            return answers[0].line == "RELEASED"
        if answers[0].line == "NOT_FOUND":
            raise NotFound(f"release {id}: another worker may have it: its time to run was over (NOT_FOUND)")
    answer = yield from ask(dialogue, f"release {id}", f"release {id} {priority} {whole(delay or 0)}", ("RELEASED", "BURIED"))
    return answer.line == "RELEASED"


def failed(dialogue: Dialogue, id: int, error: str, attempts: int) -> Steps[bool]:
    """Release a job whose run has failed. One without a backoff of its own waits a second, and twice as long with each
    delivery, up to an hour: it would come again at once. One without a limit of its own is buried after `attempts`
    deliveries (0: never). Return whether it is released."""
    try:
        listed = objects((yield from ask(dialogue, f"release {id}", f"list-delayed id={id}", ("OK",))))[0]
    except Unsupported:
        listed = [(yield from stats_job(dialogue, id))]
    if attempts and listed and not listed[0].get("attempts") and listed[0]["reserves"] >= attempts:
        yield from bury(dialogue, id, error=error)
        return False
    if listed and not listed[0].get("backoff"):
        delay = min(2 ** min(listed[0]["reserves"] - 1, 12), 3600)
        return (yield from release(dialogue, id, error=error, delay=delay))
    return (yield from release(dialogue, id, error=error))


def bury(dialogue: Dialogue, id: int, *, priority: int | None = None, error: str | None = None) -> Steps[None]:
    """Put a reserved job aside, with a reason, until somebody kicks it."""
    priority = yield from same_priority(dialogue, id, priority)
    if error and dialogue.has_own is not False:
        answers = yield [command(f"bury-job {id} {priority} {encoded_reason(error)}")]
        if answers[0].line == "BURIED":
            return
    yield from ask(dialogue, f"bury {id}", f"bury {id} {priority}", ("BURIED",))


def report(dialogue: Dialogue, id: int, text: Body) -> Steps[None]:
    """Say something of the run of a reserved job, for its history: at most 4096 bytes."""
    body = data(text)
    yield from ask(dialogue, f"report {id}", f"report {id} {len(body)}", ("REPORTED",), body=body)


# ---- Looking


def peek(dialogue: Dialogue, id: int) -> Steps[bytes]:
    """The body of a job."""
    return (yield from ask(dialogue, f"peek {id}", f"peek {id}", ("FOUND",))).job[1]


def peek_key(dialogue: Dialogue, key: Body, *, tube: str | None = None) -> Steps[tuple[int, bytes]]:
    """The id and body of the job of a key."""
    answer = yield from ask(dialogue, f"peek_key {key!r}", f"peek-key {encoded(key)}", ("FOUND",), tube=tube, uses=True)
    return answer.job[:2]


def peek_next(dialogue: Dialogue, state: State = "ready", *, tube: str | None = None) -> Steps[tuple[int, bytes] | None]:
    """The id and body of the next job that is ready, delayed or buried, or None."""
    answer = yield from ask(dialogue, "peek_next", f"peek-{state}", ("FOUND", "NOT_FOUND"), tube=tube, uses=True)
    return None if answer.line == "NOT_FOUND" else answer.job[:2]


def stats(dialogue: Dialogue) -> Steps[Object]:
    """The numbers of the server."""
    return numbers((yield from ask(dialogue, "stats", "stats", ("OK",))))


def stats_job(dialogue: Dialogue, id: int) -> Steps[Object]:
    """The numbers of a job."""
    return numbers((yield from ask(dialogue, f"stats_job {id}", f"stats-job {id}", ("OK",))))


def stats_key(dialogue: Dialogue, key: Body, *, tube: str | None = None) -> Steps[Object]:
    """The numbers of the job of a key."""
    answer = yield from ask(dialogue, f"stats_key {key!r}", f"stats-key {encoded(key)}", ("OK",), tube=tube, uses=True)
    return numbers(answer)


def stats_tube(dialogue: Dialogue, tube: str) -> Steps[Object]:
    """The numbers of a tube."""
    return numbers((yield from ask(dialogue, f"stats_tube {tube}", f"stats-tube {checked(tube)}", ("OK",))))


def tubes(dialogue: Dialogue) -> Steps[list[str]]:
    """The names of all tubes."""
    answer = yield from ask(dialogue, "tubes", "list-tubes", ("OK",))
    return [line[2:] for line in answer.block.decode().splitlines() if line.startswith("- ")]


def jobs(dialogue: Dialogue, *, tube: str | None = None, prefix: Body | None = None, states: Iterable[State] = (),
         start: When | None = None, end: When | None = None, id: int | None = None, bodies: bool = False,
         limit: int | None = None) -> Steps[list[Object]]:
    """The jobs that match, in order of their ids. start, end: by due time, on the job's clock."""
    body = "yes" if bodies else None
    if id is not None:
        return objects((yield from ask(dialogue, "jobs", "list-delayed" + options(id=id, body=body), ("OK",))))[0]
    line = "list-delayed" + options(
        tube=tube and checked(tube), prefix=name(prefix), state=",".join(states) or None,
        from_=None if start is None else moment(start), to=None if end is None else moment(end), body=body)
    return (yield from everything(dialogue, "jobs", line, limit))


def forecast(dialogue: Dialogue, every: Seconds, count: int, *, tube: str | None = None) -> Steps[list[int]]:
    """How many jobs come due in each of `count` spans from now on."""
    line = f"forecast {seconds(every)} {count}" + options(tube=tube and checked(tube))
    answer = yield from ask(dialogue, "forecast", line, ("OK",))
    return [int(number) for number in json.loads(answer.block)["counts"]]


def history(dialogue: Dialogue, *, tube: str | None = None, prefix: Body | None = None, id: int | None = None,
            reports: bool = False, limit: int | None = None) -> Steps[list[Object]]:
    """The runs that are kept, of jobs put with keep=, the last one first."""
    line = "history" + options(tube=tube and checked(tube), prefix=name(prefix), id=id, body="yes" if reports else None)
    return (yield from everything(dialogue, "history", line, limit))


# ---- Tubes and schedules


def pause(dialogue: Dialogue, tube: str, delay: Seconds) -> Steps[None]:
    """Deliver no job of the tube for this long; 0 ends a pause."""
    yield from ask(dialogue, f"pause {tube}", f"pause-tube {checked(tube)} {whole(delay)}", ("PAUSED",))


def limit(dialogue: Dialogue, tube: str, *, running: int | None = None, starts: int | None = None,
          per: Seconds | None = None, burst: int | None = None, weight: int | None = None,
          group: Body | None = None, each: bool = False) -> Steps[None]:
    """Let at most `running` jobs of the tube run at once, and `starts` start in each `per` (a second), `burst` at once.
    With `group` this is for the jobs of that group, with `each` for each group, and with `weight`
    that group gets so many turns where others get one. Without a number there is no limit any more."""
    line = f"limit-tube {checked(tube)}" + options(running=running, starts=starts, per=span(per), burst=burst,
                                                   weight=weight, group=name(group), each="yes" if each else None)
    yield from ask(dialogue, f"limit {tube}", line, ("LIMITED",))


def limits(dialogue: Dialogue, *, tube: str | None = None) -> Steps[list[Object]]:
    """The limits of all tubes, or of one, and what they hold back."""
    return objects((yield from ask(dialogue, "limits", "list-limits" + options(tube=tube and checked(tube)), ("OK",))))[0]


def put_schedule(dialogue: Dialogue, schedule: str, cron: str, body: Body = b"", *, zone: str | None = None,
                 tube: str | None = None, spread: Seconds = 0, priority: int = 1024, ttr: Seconds = 60,
                 missed: Missed | None = None, skip: Seconds | None = None, overlap: Overlap | None = None,
                 start: When | None = None, end: When | None = None, paused: bool = False, if_absent: bool = False,
                 attempts: int | None = None, backoff: Seconds | None = None, backoff_max: Seconds | None = None,
                 group: Body | None = None, keep: Seconds | None = None, expire: Seconds | None = None,
                 expired: Expired | None = None, code: int | None = None) -> Steps[float]:
    """Put a job at each time of an expression, such as "0 3 * * *" or "@every 90m", in place of the tube's schedule of
    that name. Return the next time, in seconds since 1970, or 0 if there is none. Raises BadSchedule."""
    given = data(body)
    line = f"put-schedule {priority} {seconds(spread)} {seconds(ttr)} {len(given)} {encoded(schedule)}" + options(
        cron=encoded(cron), zone=name(zone), missed=missed, skip=span(skip), overlap=overlap,
        start=None if start is None else moment(start), end=None if end is None else moment(end),
        paused="yes" if paused else None, mode="if-absent" if if_absent else None, attempts=attempts,
        backoff=span(backoff), backoff_max=span(backoff_max), group=name(group), keep=span(keep), expire=span(expire),
        expired=expired, code=code)
    answer = yield from ask(dialogue, f"put_schedule {schedule}", line, ("SCHEDULED", "KEPT"), tube=tube, uses=True,
                            body=given)
    return float(answer.words[1])


def _schedule(dialogue: Dialogue, verb: str, schedule: str, tube: str | None, expected: str) -> Steps[list[str]]:
    answer = yield from ask(dialogue, f"{verb.replace('-', '_')} {schedule}", f"{verb} {encoded(schedule)}", (expected,),
                            tube=tube, uses=True)
    return answer.words


def delete_schedule(dialogue: Dialogue, schedule: str, *, tube: str | None = None) -> Steps[None]:
    """Delete a schedule of the tube."""
    yield from _schedule(dialogue, "delete-schedule", schedule, tube, "DELETED")


def pause_schedule(dialogue: Dialogue, schedule: str, *, tube: str | None = None) -> Steps[None]:
    """Let a schedule put nothing until it is resumed."""
    yield from _schedule(dialogue, "pause-schedule", schedule, tube, "PAUSED")


def resume_schedule(dialogue: Dialogue, schedule: str, *, tube: str | None = None) -> Steps[None]:
    """Let a schedule go on."""
    yield from _schedule(dialogue, "resume-schedule", schedule, tube, "RESUMED")


def run_schedule(dialogue: Dialogue, schedule: str, *, tube: str | None = None) -> Steps[int]:
    """Put a job of a schedule now. Return its id."""
    return int((yield from _schedule(dialogue, "run-schedule", schedule, tube, "INSERTED"))[1])


def schedules(dialogue: Dialogue, *, tube: str | None = None, schedule: str | None = None, bodies: bool = False,
              limit: int | None = None) -> Steps[list[Object]]:
    """The schedules of all tubes, or of one; with a name that one, with its next ten times."""
    line = "list-schedules" + options(tube=tube and checked(tube), name=name(schedule), body="yes" if bodies else None)
    return (yield from everything(dialogue, "schedules", line, limit))


def advance(dialogue: Dialogue, by: Seconds) -> Steps[float]:
    """Move the clock of a server with --clock virtual, for tests. Return its time."""
    answer = yield from ask(dialogue, "advance", f"advance {seconds(by)}", ("ADVANCED",))
    return float(answer.words[1])
