#!/usr/bin/env python3
"""The judge of histories and the disks after a power failure say what they should of small cases."""
# tier: check, no-sanitizers
import json
import random
import subprocess
import sys

import power
from history import History, judge
from harness import Case, equal, main

HISTORY = __file__.rsplit("/", 1)[0] + "/history.py"


class Story:
    """Writes a history: each event comes 10 ns after the one before."""

    def __init__(self, **begin):
        self.lines, self.time, self.calls = [], 0, 0
        self.note("begin", **begin)

    def note(self, event, **more):
        self.time += 10
        self.lines.append(json.dumps({"event": event, "t": self.time, **more}))

    def send(self, to, job="a", **more):
        self.calls += 1
        self.note("call", call=self.calls, job=job, to=to, **more)
        return self.calls

    def done(self, to, job="a", ok=True, **more):
        """A command and its answer."""
        known = {name: more.pop(name) for name in ("id",) if name in more}
        self.note("answer", call=self.send(to, job, **more), ok=ok, **known)

    def put(self, job="a", **more):
        self.done("waiting", job, **{"due": [0, 0], **more})

    def ask(self):
        self.calls += 1
        self.note("ask", call=self.calls)
        return self.calls

    def take(self, job="a", **more):
        self.note("deliver", call=self.ask(), job=job, **more)

    def found(self, *states, settled=False, **more):
        """A look that finds the job "a" in these states, once for each."""
        for state in states:
            self.note("found", job="a", state=state, **more)
        self.note("looked", settled=settled)

    def wrong(self, *words):
        """There is a fault for each word, and no other."""
        wrong = judge(self.lines).wrong
        for word, said in zip(words, wrong):
            assert word in said, (word, said)
        equal(len(wrong), len(words), wrong)


def story(*steps, **begin):
    told = Story(**begin)
    for step in steps:
        step(told)
    return told


class Rules(Case):
    """Each rule, and a history that breaks it."""

    def test_an_acknowledged_job_is_there(self):
        told = story(Story.put)
        told.found("ready")
        told.wrong()
        told.found()
        told.wrong("is lost")

    def test_an_acknowledged_job_is_delivered(self):
        told = story(Story.put)
        told.note("end", all=False)
        told.wrong()
        told.note("end", all=True)
        told.wrong("was never delivered")
        told = story(Story.put, Story.take)
        told.note("end", all=True)
        told.wrong()

    def test_nothing_is_there_that_nobody_put(self):
        told = story()
        told.found("ready")
        told.wrong("nobody had put")
        told = story(lambda told: told.put(ok=False))
        told.found("ready")
        told.wrong("nobody had put")
        story(Story.take).wrong("nobody had put")

    def test_none_is_early(self):
        story(lambda told: told.put(due=[100, 200]), Story.take).wrong("early")
        told = story(lambda told: told.put(due=[100, 200]))
        told.found("ready")
        told.wrong("early")
        told.time = 90
        told.take()
        told.wrong("early")

    def test_none_is_delayed_for_another_time(self):
        told = story(lambda told: told.put(due=[100, 200]))
        told.found("delayed", due=[190, 300])
        told.wrong()
        told.found("delayed", due=[201, 300])
        told.wrong("is due between")

    def test_lateness_is_bounded_while_all_is_well(self):
        told = story(lambda told: told.put(due=[100, 200]), late=50)
        told.note("healthy")
        told.time = 239
        told.ask()
        told.wrong()
        told.ask()
        told.wrong("is not delivered")
        # While something is broken it may take longer.
        told = story(lambda told: told.put(due=[100, 200]), late=50)
        told.note("healthy")
        told.note("ill")
        told.time = 1000
        told.note("healthy")
        told.time += 40
        told.ask()
        told.wrong()
        told.ask()
        told.wrong("is not delivered")

    def test_nothing_is_delivered_after_its_end(self):
        told = story(Story.put, Story.take, lambda told: told.done("gone"))
        told.wrong()
        told.take()
        told.wrong("is delivered, and is [gone]")
        told = story(Story.put, lambda told: told.done("buried"), Story.take)
        told.wrong("is delivered, and is [buried]")
        # It was asked for before.
        told = story(Story.put)
        call = told.ask()
        told.done("gone")
        told.note("deliver", call=call, job="a")
        told.wrong()

    def test_nothing_comes_back(self):
        told = story(Story.put, lambda told: told.done("gone"))
        told.found()
        told.wrong()
        told.found("ready")
        told.wrong("is ready, and may be [gone]")
        told = story(Story.put, lambda told: told.done("buried"))
        told.found("ready")
        told.wrong("is ready, and may be [buried]")

    def test_a_lease_is_for_one(self):
        told = story(Story.put, lambda told: told.take(run=100, by="x"))
        told.take()
        told.wrong("x has it")
        for end in (lambda told: told.note("left", by="x"), lambda told: told.note("killed"),
                    lambda told: setattr(told, "time", 200), lambda told: told.send("waiting", by="x")):
            told = story(Story.put, lambda told: told.take(run=100, by="x"), end, Story.take)
            told.wrong()
        told = story(Story.put, lambda told: told.take(run=100, by="x"), lambda told: told.note("killed"), leases="last")
        told.take()
        told.wrong("x has it")
        # It was put again before the answer was read, and after it was given.
        told = story(Story.put)
        call = told.ask()
        told.put()
        told.note("deliver", call=call, job="a", run=100, by="x")
        told.take()
        told.wrong()
        # It is made longer.
        told = story(Story.put, lambda told: told.take(run=100, by="x"), lambda told: told.done("leased", run=500))
        told.time = 300
        told.take()
        told.wrong("x has it")

    def test_who_has_the_lease_is_not_refused(self):
        story(Story.put, lambda told: told.take(run=100, by="x"),
              lambda told: told.done("gone", by="x", ok=False)).wrong("was refused")
        story(Story.put, lambda told: told.take(run=100, by="x"),
              lambda told: told.done("leased", run=100, ok=False)).wrong("was refused")
        story(Story.put, lambda told: told.take(run=20, by="x"),
              lambda told: told.done("gone", by="x", ok=False)).wrong()

    def test_an_end_is_that_of_a_delivery(self):
        """A put that replaces a job in a worker's hands is not lost when the worker ends what it has."""
        for to in ("gone", "buried", "waiting"):
            for is_first in (True, False):
                told = story(Story.put, lambda told: told.take(run=1000, by="x"))
                of = told.calls
                steps = [lambda told: told.put(body="new"), lambda told, of=of, to=to: told.done(to, by="x", of=of)]
                if not is_first:    # the end was sent before the put was answered
                    put = told.send("waiting", due=[0, 0], body="new")
                    steps = [steps[1], lambda told, put=put: told.note("answer", call=put, ok=True)]
                for step in steps:
                    step(told)
                told.found("ready", body="new")
                told.wrong()
                told.found()
                told.wrong("is lost")

    def test_an_end_may_be_late_for_a_put_that_was_sent_before_the_delivery_was_heard_of(self):
        for states in (("ready",), ()):
            told = story(Story.put)
            taken, put = told.ask(), told.send("waiting", due=[0, 0])
            told.note("deliver", call=taken, job="a", run=1000, by="x")
            told.note("answer", call=put, ok=True)
            told.done("gone", by="x", of=taken)
            told.found(*states)
            told.wrong()

    def test_an_end_counts_if_nothing_was_put_since(self):
        told = story(Story.put, lambda told: told.take(run=1000, by="x"))
        told.done("gone", by="x", of=told.calls)
        told.found()
        told.wrong()
        told.found("ready")
        told.wrong("is ready, and may be [gone]")
        # Nor does the late end of a former delivery take the lease from who has it now.
        told = story(Story.put, lambda told: told.take(run=100, by="x"))
        of = told.calls
        told.put()
        told.take(run=1000, by="y")
        told.done("gone", by="x", of=of)
        told.take()
        told.wrong("y has it")

    def test_nobody_has_it_after_the_end_of_the_server(self):
        told = story(Story.put, lambda told: told.take(run=1000, by="x"))
        told.found("reserved")
        told.note("killed")
        told.wrong()
        told.found("reserved")
        told.wrong("nobody has it")

    def test_tokens_grow(self):
        for tokens, faults in (("store", 2), ("job", 1), (None, 0)):
            told = story(Story.put, lambda told: told.put("b"), tokens=tokens)
            told.take(token=5)
            told.take("b", token=5)
            told.take("a", token=5)
            told.wrong(*["with the token 5 after 5"] * faults)
        # Both were asked for at once.
        told = story(Story.put, lambda told: told.put("b"), tokens="store")
        one, other = told.ask(), told.ask()
        told.note("deliver", call=one, job="a", token=6)
        told.note("deliver", call=other, job="b", token=5)
        told.wrong()

    def test_attempts_grow(self):
        told = story(Story.put)
        told.take(attempt=1)
        told.take(attempt=1)
        told.wrong("for the 1. time")

    def test_one_job_lives_for_a_key(self):
        told = story(lambda told: told.put(id=1), lambda told: told.put(id=1))
        told.wrong()
        told.put(id=2)
        told.wrong("lives, and is called 2")
        told = story(lambda told: told.put(id=1), lambda told: told.done("gone"), lambda told: told.put(id=2))
        told.wrong()
        told.found("ready", "ready")
        told.wrong("is there twice")

    def test_an_id_is_given_once(self):
        story(lambda told: told.put(id=1), lambda told: told.done("gone"),
              lambda told: told.put("b", id=1)).wrong("has the id 1 of job 'a'")

    def test_the_body_is_that_of_the_last_put(self):
        told = story(lambda told: told.put(body="old"), lambda told: told.put(body="new"))
        told.take(body="new")
        told.found("ready", body="new")
        told.wrong()
        told.take(body="old")
        told.wrong("a body that it had not")

    def test_a_command_without_an_answer_was_done_or_not(self):
        for states in (("ready",), ()):
            told = story(lambda told: told.send("waiting"))
            told.found(*states)
            told.wrong()
            told = story(Story.put, lambda told: told.send("gone"))
            told.found(*states)
            told.wrong()
        told = story(lambda told: told.send("waiting", due=[0, 0]), Story.take)
        told.wrong()

    def test_a_killed_server_does_no_more(self):
        told = story(Story.put, lambda told: told.send("gone"), lambda told: told.note("killed"))
        told.found("ready", settled=True)
        told.found("ready")
        told.wrong()
        told.found()
        told.wrong("is lost")
        told = story(Story.put, lambda told: told.send("gone"), lambda told: told.note("killed"))
        told.found(settled=True)
        told.wrong()
        told.found("ready")
        told.wrong("is ready, and may be [gone]")
        # What was sent before the kill does not overtake what was answered after it.
        told = story(Story.put, lambda told: told.send("gone"), lambda told: told.note("killed"), Story.put)
        told.found()
        told.wrong("is lost")

    def test_commands_at_one_time_come_in_either_order(self):
        for states in (("buried",), ("ready",)):
            told = story(Story.put)
            one, other = told.send("buried"), told.send("waiting", due=[0, 0])
            told.note("answer", call=one, ok=True)
            told.note("answer", call=other, ok=True)
            told.found(*states)
            told.wrong()
        told.found()
        told.wrong("is lost")

    def test_a_power_failure_takes_what_was_answered_lately(self):
        for states in (("ready",), ()):
            told = story(Story.put, lambda told: told.note("power"), lost=50)
            told.found(*states)
            told.wrong()
        told = story(Story.put, lost=50)
        told.time = 1000
        told.done("gone")
        told.note("power")
        told.found("ready", settled=True)
        told.wrong()
        told = story(Story.put, lost=50)
        told.time = 1000
        told.note("power")
        told.found()
        told.wrong("is lost")
        told = story(Story.put, lambda told: told.note("power", stable=25), lost=None)
        told.found()
        told.wrong()

    def test_life_goes_on_after_a_power_failure(self):
        told = story(Story.put, lambda told: told.done("gone"), lambda told: told.note("power", stable=35), lost=100)
        told.take()
        told.wrong()
        told.done("gone")
        told.take()
        told.wrong("is delivered, and is [gone]")

    def test_an_answer_may_come_after_the_end_of_the_server(self):
        told = story()
        call = told.send("waiting")
        told.note("killed")
        told.note("answer", call=call, ok=True)
        told.found()
        told.wrong("is lost")
        told = story()
        call = told.send("waiting")
        told.note("power")
        told.note("answer", call=call, ok=True)
        told.found()
        told.wrong()

    def test_what_is_over_is_not_done_later(self):
        told = story(Story.put)
        call = told.send("buried")
        told.note("over", call=call)
        told.take()
        told.wrong()
        told.put()
        told.found("buried")
        told.wrong("is buried, and may be")

    def test_nothing_is_done_after_a_failed_sync(self):
        told = story(Story.put, lambda told: told.note("failed"))
        told.wrong()
        told.put()
        told.wrong("after a sync had failed")
        told = story(lambda told: told.note("failed"), lambda told: told.note("killed"), Story.put)
        told.wrong()

    def test_a_client_hears_of_its_lease(self):
        for end, words in ((lambda told: None, ("x has it",)), (lambda told: told.note("left", by="x"), ()),
                           (lambda told: setattr(told, "time", 200), ())):
            told = story(Story.put, Story.take, lambda told: told.note("has", job="a", by="x", until=150), end, Story.take)
            told.wrong(*words)

    def test_a_tube_pauses(self):
        for time, words in ((70, ("its tube pauses",)), (100, ())):
            told = story(lambda told: told.put(tube=1), lambda told: told.note("pause", tube=1, least=100, most=120))
            told.time = time
            told.take()
            told.wrong(*words)
        # Nor is it late meanwhile.
        for time, words in ((110, ()), (130, ("is not delivered",))):
            told = story(lambda told: told.put(tube=1), late=10)
            told.note("healthy")
            told.note("pause", tube=1, least=100, most=120)
            told.time = time
            told.ask()
            told.wrong(*words)

    def test_who_does_not_end_it_gets_it_again(self):
        told = story(lambda told: told.put(due=[0, 20]), lambda told: told.note("healthy"),
                     lambda told: told.take(again=100), late=30)
        told.time = 180
        told.ask()
        told.wrong()
        told.ask()
        told.wrong("is not delivered")

        # Another one, who has not, is refused meanwhile.
        told = story(Story.put, lambda told: told.note("healthy"), lambda told: told.take(again=1000),
                     lambda told: told.done("buried", ok=False), late=30)
        told.time = 200
        told.ask()
        told.wrong()

    def test_a_job_has_so_many_attempts(self):
        told = story(Story.put, lambda told: told.take(tries=2, most=2))
        told.wrong()
        told.take(tries=3, most=2)
        told.wrong("is buried after 2")

    def test_a_job_that_is_asked_for_by_its_id_may_be_early_or_buried(self):
        story(lambda told: told.put(due=[1000, 2000]), lambda told: told.take(any=True)).wrong()
        story(Story.put, lambda told: told.done("buried"), lambda told: told.take(any=True)).wrong()
        story(Story.put, lambda told: told.done("gone"), lambda told: told.take(any=True)).wrong("is [gone]")

    def test_clocks_that_were_set(self):
        told = story(lambda told: told.put(due=[100, 200]), lambda told: told.note("clock", early=80, late=0), Story.take)
        told.wrong()

    def test_nothing_is_known_of_a_disk_that_lied(self):
        for states in (("ready",), ("buried",), ()):
            told = story(Story.put, lambda told: told.done("gone"), lambda told: told.note("forgotten"))
            told.found(*states)
            told.wrong()

    def test_a_disk_is_judged_aside(self):
        history = judge(story(Story.put, lambda told: told.done("gone"), lost=None).lines)
        found = [{"job": "a", "state": "ready"}]
        equal(history.after_power(35, 100, found), [])
        equal(len(history.after_power(1000, 100, found)), 1)
        equal(history.after_power(0, 100, []), [])
        equal(history.wrong, [])

    def test_a_program_judges_a_file(self):
        told = story(Story.put)
        for states, status in ((("ready",), 0), ((), 1)):
            told.found(*states)
            with open("history", "w", encoding="utf-8") as file:
                print(*told.lines, sep="\n", file=file)
            equal(subprocess.run([sys.executable, HISTORY, "history"], stdout=subprocess.DEVNULL, check=False).returncode,
                  status)

    def test_it_takes_a_moment_for_each_event(self):
        """A job that has ended, and what was overwritten, is forgotten."""
        history = History()
        for call in range(20000):
            job = str(call % 1000)
            for event in ({"event": "call", "call": call, "job": job, "to": ("waiting", "gone")[call // 1000 % 2]},
                          {"event": "answer", "call": call, "ok": True}):
                history.feed({"t": call, **event})
        equal(history.wrong, [])
        equal(len(history.live), 0)
        equal(max(len(job.operations) for job in history.jobs.values()), 1)


class Disks(Case):
    def test_a_disk_keeps_what_was_synced_and_any_sectors_of_the_rest(self):
        file = power.File()
        file.write(1, 0, b"a" * 1024, False)
        file.syncing.append(2)
        file.write(3, 0, b"b" * 1024, False)
        file.synced()
        equal(bytes(file.left(None, power.none_of)), b"a" * 1024)
        equal(bytes(file.left(None, power.all_of)), b"b" * 1024)
        left = {bytes(file.left(random.Random(i), power.any_sectors_of)) for i in range(50)}
        equal(left, {b"a" * 1024, b"b" * 1024, b"a" * 512 + b"b" * 512, b"b" * 512 + b"a" * 512})

    def test_a_sector_has_all_writes_up_to_one(self):
        file = power.File(512)
        file.write(1, 0, b"a", False)
        file.write(2, 1, b"b", False)
        equal({bytes(file.left(random.Random(i), power.any_of))[:2] for i in range(50)}, {b"\0\0", b"a\0", b"ab"})


main()
