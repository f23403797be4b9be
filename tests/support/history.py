#!/usr/bin/env python3
"""Judges a history: what clients of a store of jobs did and heard, and what they found in it. Reads it once.

    python3 tests/support/history.py [--quiet] FILE     prints what is wrong; exit status 1 if anything is

A history is a text with an event on each line, an object of JSON, in the order in which they happened. Each has "event"
and "t", a whole number of nanoseconds on one clock that never steps. "job" is a name that the writer gives each job:
puts with the same key in the same tube are the same job. "call" is a number that no other command has. Members in
brackets may be left out.

    begin    [lost] [late] [tokens] [leases]    the first event
               lost: a power failure may take what was answered so long before; 0 if left out; null: anything
               late: while the store is healthy, a job is delivered so long after it is due at most
               tokens: "store": they grow with each delivery; "job": with each of the same job
               leases: "last": they outlive the server
    call     call job to [due] [run] [by] [of] [body]  a command is about to be sent; `by` a client that uses its lease
               of: the call of the delivery whose end it is: of one that came later, or of what was put since, it is not
               to: "waiting", "buried" or "gone" if it succeeds; "leased": the lease will last for `run`
               due: [from, to]: between these two the job will be due; left out: at any time
    answer   call ok [id] [due] [full]          true: it was done; false: it was not, and had no effect
               full: it was refused for want of room
    over     call                               it will not be answered: it was done by now, or never will be
    ask      call                               a job is about to be asked for; a "no" is an answer
    deliver  call job [id] [token] [attempt] [tries] [most] [run] [by] [body] [again] [any]
               ... and came, for `run` from some moment since it was asked for
               tries, most: failed tries and this one; it is buried after `most`
               again: if nobody ends it, it is due again so long after the delivery at most
               any: it was asked for by its id, whether it was due or buried or not
    has      job by until                       the client has heard of the last delivery, and the lease lasts until then
    left     by                                 the client has gone; its leases end
    pause    tube least most                    no job of the tube that is asked for from now on comes before `least`;
                                                until `most` none is late. `call` has the [tube]
    killed                                      the server has ended; what has no answer was done or not
    power    [stable]                           the same by a power failure; all that was answered by `stable` is kept
    failed                                      a sync failed: what is sent from now on is not done, until the server ends
    clock    early late                         from now on jobs may be so early and so much later
    forgotten                                   nothing is known of any job any more, nor of ids and tokens
    found    job state [id] [due] [body]        in a look at the store: "delayed", "ready", "reserved" or "buried"
    looked   [settled]                          that was all; true: what has no answer will not be done any more
    healthy                                     from now on the store works, and workers ask for all that is due
    ill                                         ... which is no longer sure
    end      [all]                              the last event; true: workers had time to take all that is due

A command that was answered was done at some moment between. One without an answer was done or not. The rules:

- An acknowledged job that nobody ended is there, and is delivered. Nothing is there that nobody put.
- No job is ready or delivered before it is due, nor more than `late` after that while the store is healthy.
- Nothing is delivered after its end was acknowledged, nor while it is buried, nor while another has its lease; and who
  has the lease is not refused.
- The end of a delivery changes nothing of a job that was put, moved or ended by others since it was delivered.
- Tokens and attempts grow. An id belongs to one job, and a job that lives has one id: one job lives for each key.
"""
import heapq
import json
import sys

FOREVER = float("inf")
EVER = (0, FOREVER)
NO_PAUSE = (FOREVER, 0, 0)


class Operation:
    """A change of a job that was sent, and perhaps done."""
    __slots__ = ("job", "state", "due", "body", "sent", "answered", "time", "over", "until", "of")

    def __init__(self, job, state, due, body, sent, of=None):
        self.job, self.state, self.due, self.body, self.sent = job, state, due, body, sent
        self.of = of                        # the delivery that it ends: when it was asked for, and when it was heard of
        self.answered = self.time = None    # the number of the event of its answer, and when that was
        self.over = None                    # the number of the event after which it is not done any more
        self.until = None                   # who sent it had the job until then

    def __repr__(self):
        return self.state + ("" if self.answered else "?")

    def is_too_late_for(self, other):
        """It ends a delivery, and the other one was sent after that."""
        return self.of and other.of is not self.of and other.sent > self.of[1]

    def may_be_too_late_for(self, other):
        return self.of and other.of is not self.of and (other.answered or other.over or FOREVER) > self.of[0]


class Job:
    """What is known of a job."""
    __slots__ = ("name", "tube", "id", "operations", "is_sure", "holder", "leased", "token", "attempt", "open", "due_by",
                 "waits", "seen", "found", "asked", "again",
                 "again_by")

    def __init__(self, name, tube=None):
        self.name, self.tube, self.id = name, tube, None
        self.operations = []    # that were sent, without those whose results cannot be there any more
        self.is_sure = False    # one of those that were forgotten has happened
        self.holder, self.leased = None, None   # who certainly has it, and until when
        self.token = self.attempt = -1
        self.open = 0           # commands without an answer
        self.due_by = None      # by then it is certainly due
        self.waits = False      # it was not delivered since it was last told to wait
        self.seen, self.found = 0, None         # the last look that found it, and what it was
        self.asked = None       # the event at which the last delivery was asked for
        self.again = None       # the longest time from there to the next, if nobody ends it
        self.again_by = FOREVER     # when that will be over

    def __str__(self):
        return f"job {self.name[:40]!r} (id {self.id})"

    def results(self, is_kept):
        """The operations whose results the job may have, and whether it may be that it was never put."""
        done = [one for one in self.operations if one.answered and is_kept(one)]
        late = [one for one in self.operations if one.of and any(one.is_too_late_for(other) for other in done)]
        last = max((one.sent for one in done if one not in late), default=None)
        if last is None:
            return self.operations, not self.is_sure
        return [one for one in self.operations if (one.answered or one.over or last) >= last and one not in late], False


def anything(_):
    return True


class History:
    """Feed it events. `wrong` is what is wrong with them."""

    def __init__(self, **begin):
        self.jobs, self.by_id = {}, {}
        self.live = {}      # jobs that may be there
        self.highest = 0    # id that was heard
        self.wrong, self.number, self.time = [], 0, 0
        self.calls = {}     # without an answer: operations, or ("leased", job, until, whether the sender has it)
        self.asked = {}     # the same for jobs that were asked for: number of the event, time, token
        self.delivered = {}     # by call: when it was asked for and when it was heard of, as numbers of events
        self.held = {}      # by client: jobs that it may have
        self.token = -1
        self.healthy = None         # since when
        self.deadlines, self.pushed = [], 0     # a heap: when a job is due, a number, the job
        self.power = None   # while a disk is judged aside: what was answered by then is kept
        self.look = 1
        self.ended = {}     # operations without an answer when the server ended: an answer may be under way
        self.died = None    # when that was
        self.failed = None  # the event of a failed sync
        self.early = self.later = 0
        self.paused = {}    # by tube: the event, and between when and when the pause ends
        self.on_begin(begin)

    def feed(self, event):
        self.number += 1
        self.time = event["t"]
        if self.healthy is not None:
            self.check_deadlines()
        getattr(self, "on_" + event["event"])(event)

    def tell(self, text):
        self.wrong.append(f"event {self.number}, at {self.time / 1e9:.6f} s: {text}")

    def on_begin(self, event):
        self.lost = FOREVER if event.get("lost", 0) is None else event.get("lost", 0)
        self.late, self.tokens = event.get("late"), event.get("tokens")
        self.leases_last = event.get("leases") == "last"

    # ---- Commands

    def on_call(self, event):
        job = self.jobs.get(event["job"])
        if not job:
            job = self.jobs[event["job"]] = Job(event["job"], event.get("tube"))
        job.open += 1
        self.live[job.name] = job
        if event["to"] == "leased":
            job.due_by = None
            has_it = event.get("by", job.holder) == job.holder
            self.calls[event["call"]] = "leased", job, self.time + event["run"], has_it
            return
        operation = Operation(job, event["to"], tuple(event.get("due", EVER)), event.get("body"), self.number,
                              self.delivered.get(event.get("of")))
        if job.leased is not None and "by" in event and event["by"] == job.holder:
            operation.until = job.leased
        if not any(one.answered and operation.is_too_late_for(one) for one in job.operations):
            self.end_lease(job)
        job.operations.append(operation)
        job.due_by = None
        self.calls[event["call"]] = operation

    def on_answer(self, event):
        if self.asked.pop(event["call"], None):
            return
        call = self.calls.pop(event["call"], None)
        if call is None:
            self.answered_late(event)
        elif isinstance(call, Operation):
            self.answered(call.job, call, event)
        else:
            _, job, until, has_it = call
            job.open -= 1
            if event["ok"]:
                self.due_again(job)
            if job.leased is not None and event["ok"]:
                job.leased = until
            elif has_it and job.leased is not None and self.time < job.leased and not event.get("full"):
                self.tell(f"{job}: who has it until {job.leased / 1e9:.6f} s was refused")

    def answered_late(self, event):
        """The server has ended since. A power failure takes what is under way."""
        operation = self.ended.pop(event["call"], None)
        if not operation:
            return
        if "id" in event:
            self.heard(operation.job, event["id"], operation)
        if operation not in operation.job.operations:
            return
        if event["ok"]:
            operation.answered, operation.time = operation.over, self.died
            operation.due = tuple(event.get("due", operation.due))
        else:
            operation.job.operations.remove(operation)
        self.expect(operation.job)

    def on_over(self, event):
        self.asked.pop(event["call"], None)
        call = self.calls.pop(event["call"], None)
        if isinstance(call, Operation):
            call.over = self.number
            call.job.open -= 1
        elif call:
            call[1].open -= 1

    def answered(self, job, operation, event):
        job.open -= 1
        if event["ok"]:
            if self.failed is not None and operation.sent > self.failed:
                self.tell(f"{job} was changed after a sync had failed")
            if any(operation.may_be_too_late_for(other) and not operation.is_too_late_for(other) for other in job.operations):
                operation.over = self.number    # it is not known of what it was the end
            else:
                operation.answered, operation.time = self.number, self.time
            operation.due = tuple(event.get("due", operation.due))
            is_untouched = (job.asked or 0) < operation.sent    # by a delivery before the answer
            job.waits = operation.state == "waiting" and is_untouched
            if "id" in event:
                self.heard(job, event["id"], operation)
            self.forget(job)
            if not is_untouched:
                return
        else:
            job.operations.remove(operation)
            if operation.until is not None and self.time < operation.until and not event.get("full"):
                self.tell(f"{job}: who has it until {operation.until / 1e9:.6f} s was refused")
        self.expect(job)

    def forget(self, job):
        """Forget what was overwritten: no power failure brings it back, and nobody has asked for a job since before."""
        asked = next(iter(self.asked.values()))[0] if self.asked else FOREVER
        job.operations, may_be_none = job.results(lambda one: one.answered < asked and one.time <= self.time - self.lost)
        job.is_sure |= not may_be_none
        if job.is_sure and not job.open and len(job.operations) == 1 and job.operations[0].state == "gone":
            del self.live[job.name]

    def heard(self, job, number, operation=None):
        self.highest = max(self.highest, number)
        self.name(job, number, operation)

    def name(self, job, number, operation=None):
        """The store calls a job so, in the answer to this operation."""
        owner = self.by_id.setdefault(number, job)
        if owner is not job:
            self.tell(f"{job} has the id {number} of {owner}")
        elif job.id not in (None, number):
            others = [one for one in job.operations if one is not operation]
            is_there = job.is_sure or any(one.answered for one in others)
            if is_there and all(one.state != "gone" for one in others):
                self.tell(f"{job} lives, and is called {number}")
        job.id = number

    # ---- Times

    def expect(self, job):
        """If all that may have happened says when the job is due, it will be delivered then."""
        if self.late is None or job.open or job.leased is not None:
            return
        results, may_be_none = job.results(anything)
        if may_be_none or any(one.state != "waiting" for one in results):
            return
        due = max(one.due[1] for one in results)
        if (job.asked or 0) > max(one.sent for one in results):
            # It has been delivered since, and who has it may be another than the one who was refused.
            due = max(due, job.again_by)
        if due < FOREVER:
            self.expect_by(job, due)

    def expect_by(self, job, time):
        job.due_by = time
        self.pushed += 1
        heapq.heappush(self.deadlines, (time, self.pushed, job))

    def due_again(self, job):
        """Its lease will have ended by then, and the delay after it."""
        if self.late is not None and job.again is not None:
            job.again_by = self.time + job.again
            self.expect_by(job, job.again_by)

    def check_deadlines(self):
        past = self.time - self.late - self.later
        while self.healthy < past and self.deadlines and self.deadlines[0][0] < past:
            since, _, job = heapq.heappop(self.deadlines)
            if job.due_by is None or since < job.due_by:
                continue
            paused = self.paused.get(job.tube, NO_PAUSE)[2]
            if paused > since:
                self.expect_by(job, paused)
            else:
                job.due_by = None
                self.tell(f"{job} was due at {since / 1e9:.6f} s, and is not delivered")

    def on_healthy(self, _):
        self.healthy = self.time if self.late is not None else None

    def on_ill(self, _):
        self.healthy = None

    def on_clock(self, event):
        self.early, self.later = event["early"], event["late"]

    def on_pause(self, event):
        self.paused[event["tube"]] = self.number, event["least"], event["most"]

    # ---- Deliveries

    def on_ask(self, event):
        self.asked[event["call"]] = self.number, self.time, self.token

    def on_deliver(self, event):
        asked, since, token = self.asked.pop(event["call"])
        self.delivered[event["call"]] = asked, self.number
        job, run, client = self.jobs.get(event["job"]), event.get("run"), event.get("by")
        if not job:
            self.tell(f"a job {event['job'][:40]!r} is delivered that nobody had put")
            return
        if "id" in event:
            self.heard(job, event["id"])
        self.check_delivered(job, asked, event)
        self.check_numbers(job, token, event)
        paused, least, _ = self.paused.get(job.tube, NO_PAUSE)
        if asked > paused and self.time < least and not event.get("any"):
            self.tell(f"{job} is delivered, and its tube pauses until {least / 1e9:.6f} s")
        if job.leased is not None and self.time < job.leased:
            self.tell(f"{job} is delivered, and {job.holder} has it for {(job.leased - self.time) / 1e9:.6f} s more")
        # Who reads that late may have lost the lease meanwhile: it has run out, or another has changed the job.
        self.end_lease(job)
        job.asked, job.due_by, job.waits, job.again, job.again_by = asked, None, False, event.get("again"), FOREVER
        if run is not None:
            self.lease(job, client, since + run)
        if not job.open and all((one.answered or one.over) < asked for one in job.operations):
            self.due_again(job)

    def lease(self, job, client, until):
        is_last = not job.open and all((one.answered or 0) < job.asked for one in job.operations)
        if self.time < until and is_last:
            job.holder, job.leased = client, until
            self.held.setdefault(client, set()).add(job)

    def on_has(self, event):
        self.lease(self.jobs[event["job"]], event["by"], event["until"])

    def check_delivered(self, job, asked, event):
        results, _ = job.results(lambda one: one.answered < asked)
        waits = [one for one in results if one.state == "waiting" or (event.get("any") and one.state == "buried")]
        if not waits:
            self.tell(f"{job} is delivered, and is {results}")
            return
        early = min(one.due[0] for one in waits) - self.time - self.early
        if early > 0 and not event.get("any"):
            self.tell(f"{job} is delivered {early / 1e9:.6f} s early")
        self.check_body(job, waits, event)

    def check_body(self, job, results, event):
        if "body" in event and all(one.body not in (None, event["body"]) for one in results):
            self.tell(f"{job} has a body that it had not: {event['body'][:40]!r}")

    def check_numbers(self, job, token, event):
        if "token" in event:
            former = {"store": token, "job": job.token}.get(self.tokens, -1)
            if event["token"] <= former:
                self.tell(f"{job} is delivered with the token {event['token']} after {former}")
            job.token, self.token = max(job.token, event["token"]), max(self.token, event["token"])
        if "attempt" in event:
            if event["attempt"] <= job.attempt:
                self.tell(f"{job} is delivered for the {event['attempt']}. time after the {job.attempt}.")
            job.attempt = event["attempt"]
        if "most" in event and event["tries"] > event["most"]:
            self.tell(f"{job} is delivered for the {event['tries']}. time, and is buried after {event['most']}")

    def end_lease(self, job):
        if job.leased is not None:
            self.held[job.holder].discard(job)
            job.leased = None

    def on_left(self, event):
        for job in self.held.pop(event["by"], ()):
            job.leased = None

    # ---- Ends of a server

    def on_killed(self, _):
        self.ended, self.died, self.failed = {}, self.time, None
        self.paused.clear()
        for number, call in self.calls.items():
            if isinstance(call, Operation):
                call.over = self.number
                call.job.open -= 1
                self.ended[number] = call
            else:
                call[1].open -= 1
        self.calls.clear()
        self.asked.clear()
        self.healthy = None
        if not self.leases_last:
            for client in list(self.held):
                self.on_left({"by": client})

    def on_power(self, event):
        """What was answered later may have happened, as what was not answered."""
        self.on_killed(event)
        self.ended = {}
        stable = event.get("stable", self.time - self.lost)
        for job in self.live.values():
            job.due_by = None
            for one in job.operations:
                if one.answered and one.time > stable:
                    one.over, one.answered = one.answered, None
            self.expect(job)

    def on_failed(self, _):
        if self.failed is None:
            self.failed = self.number

    def on_forgotten(self, _):
        self.highest, self.token, self.by_id = 0, -1, {}
        for job in self.jobs.values():
            job.id, job.token, job.attempt, job.is_sure, job.due_by = None, -1, -1, False, None
            job.operations = [Operation(job, state, EVER, None, self.number) for state in ("gone", "waiting", "buried")]
            for one in job.operations:
                one.over = self.number
            self.live[job.name] = job

    # ---- Looks

    def is_kept(self, operation):
        """Whether no power failure since the last look took it."""
        return self.power is None or operation.time <= self.power

    def on_found(self, event):
        job = self.jobs.get(event["job"])
        if not job or not job.operations:
            self.tell(f"there is a job {event['job'][:40]!r} that nobody had put")
            return
        if job.seen == self.look:
            self.tell(f"{job} is there twice")
        job.seen, job.found = self.look, None
        if "id" in event:
            self.name(job, event["id"])
        results, _ = job.results(self.is_kept)
        fits = [one for one in results if one.state == ("buried" if event["state"] == "buried" else "waiting")]
        if fits:
            fits = self.check_found(job, fits, event)
        else:
            self.tell(f"{job} is {event['state']}, and may be {results}")
        if fits:
            job.found = Operation(job, fits[0].state, (min(one.due[0] for one in fits), max(one.due[1] for one in fits)),
                                  event.get("body"), self.number)

    def check_found(self, job, fits, event):
        """Tell what is wrong. Return those that the job may be according to its due time."""
        state, due = event["state"], event.get("due", EVER)
        self.check_body(job, fits, event)
        if state == "delayed":
            timely = [one for one in fits if one.due[0] <= due[1] and due[0] <= one.due[1]]
            if not timely:
                self.tell(f"{job} is due between {due}, and not between one of {[one.due for one in fits]}")
            return timely
        if state != "buried" and min(one.due[0] for one in fits) > self.time:
            self.tell(f"{job} is {state} early")
        if state == "reserved" and not self.leases_last and job.leased is None and not self.asked:
            self.tell(f"{job} is reserved, and nobody has it")
        return fits

    def on_looked(self, event):
        for job in list(self.live.values()):
            if job.seen != self.look:
                job.found = None
                self.check_missing(job)
            if event.get("settled"):
                self.settle(job)
            elif self.power is None:
                self.forget(job)
        self.look += 1

    def after_power(self, stable, now, found):
        """What would be wrong with jobs found at a time `now` if the power failed here. Nothing else changes."""
        kept = self.wrong, self.time
        self.wrong, self.power = [], stable
        for event in found:
            self.time = now
            self.on_found(event)
        self.on_looked({})
        wrong = self.wrong
        self.wrong, self.time = kept
        self.power = None
        return wrong

    def check_missing(self, job):
        results, may_be_none = job.results(self.is_kept)
        if not may_be_none and all(one.state != "gone" for one in results):
            self.tell(f"{job} is lost, and may be {results}")

    def settle(self, job):
        """What was found is what the job is, and all that it may be."""
        operation = job.found or Operation(job, "gone", EVER, None, self.number)
        operation.answered, operation.time = self.number, self.time
        job.operations, job.is_sure, job.due_by = [operation], True, None
        if job.found:
            self.expect(job)
        elif not job.open:
            del self.live[job.name]

    def on_end(self, event):
        for job in self.live.values() if event.get("all") else ():
            results, may_be_none = job.results(anything)
            if job.waits and not may_be_none and all(one.state == "waiting" and one.due[1] <= self.time for one in results):
                self.tell(f"{job} was put, and was never delivered")


def judge(lines):
    """The history of these lines."""
    history = History()
    for line in lines:
        history.feed(json.loads(line))
    return history


if __name__ == "__main__":
    with open(sys.argv[-1], encoding="utf-8") as text:
        judged = judge(text)
    if judged.wrong or "--quiet" not in sys.argv:
        print(*judged.wrong[:50], sep="\n")
        print(f"{judged.number} events, {len(judged.jobs)} jobs, {len(judged.wrong)} times wrong")
    sys.exit(bool(judged.wrong))
