#!/usr/bin/env python3
"""The judge of sessions' histories says what it should of small cases."""
# tier: check, no-sanitizers
import json

from harness import Case, equal, main
from session_history import judge

S = 10**9
WALL = 10**18   # the server's clock is ahead by this


class Story:
    """Writes a history. Each command takes a millisecond."""

    def __init__(self, lost=0, lifetime=0, keeps=False, tells=True):
        self.lines, self.time, self.calls, self.values = [], 0, 0, 0
        self.note("begin", lost=lost, lifetime=lifetime, keeps=keeps, tells=tells)
        self.note("start", offset=WALL)

    def note(self, event, **more):
        self.lines.append(json.dumps({"event": event, "t": self.time, **more}))

    def at(self, seconds):
        self.time = int(seconds * S)

    def send(self, verb, key="k", **more):
        self.calls += 1
        self.note("call", call=self.calls, verb=verb, key=key, **more)
        self.time += 10**6
        return self.calls

    def do(self, verb, answer, **more):
        self.note("answer", **{"call": self.send(verb, **more), "is": answer})

    def set(self, value, seconds=None, **more):
        self.do("set", "OK", value=value, **more, **({} if seconds is None else {"ttl": int(seconds * S)}))

    def dies(self, how="killed", offset=WALL, **more):
        self.note(how, **more)
        self.time += S
        self.note("start", offset=offset)

    def wrong(self, *words):
        """There is a fault for each word, and no other."""
        self.note("end", all=True)
        wrong = judge(self.lines).wrong
        equal(len(wrong), len(words), wrong)
        for word, said in zip(words, wrong):
            assert word in said, (word, said)


class Deadlines(Case):
    def test_never_early(self):
        story = Story()
        story.set("a", 10)
        story.do("get", "a")
        story.at(9.9)
        story.do("get", None)
        story.wrong("early or lost")

    def test_never_after_its_end(self):
        story = Story()
        story.set("a", 10)
        story.at(11)
        story.do("get", "a")
        story.wrong("after its end")

    def test_a_touch_moves_it(self):
        story = Story()
        story.set("a", 10)
        story.at(9)
        story.do("touch", 1, ttl=10 * S)
        story.at(15)
        story.do("left", 4001)
        story.do("left", 4900)
        story.at(20)
        story.do("get", None)
        story.wrong("prolonged or shortened")

    def test_an_end_that_is_said(self):
        story = Story()
        story.do("set", "OK", value="a", at=WALL + 10 * S)
        story.do("when", (WALL + 10 * S) // 10**6)
        story.do("when", (WALL + 10 * S) // 10**6 + 1)
        story.wrong("prolonged or shortened")

    def test_a_lifetime_is_not_moved(self):
        story = Story(lifetime=20 * S)
        story.set("a", 15)
        story.at(14)
        story.do("touch", 1, ttl=15 * S)
        story.at(21)
        story.do("get", "a")
        story.wrong("after its end")

    def test_a_set_goes_on_with_a_lifetime_that_is_kept(self):
        for keeps in (False, True):
            story = Story(lifetime=20 * S, keeps=keeps)
            story.set("a", 15)
            story.at(14)
            story.set("b", 15)
            story.at(21)
            story.do("get", "b")
            story.wrong(*["after its end"][:keeps])

    def test_a_late_set_does_not_bring_back_what_has_ended(self):
        for keeps, there in (True, "b"), (True, None), (False, "b"):
            story = Story(lifetime=20 * S, keeps=keeps)
            story.set("a", 30)
            story.at(21)
            story.set("b", 30)
            story.do("get", there)
            story.wrong(*["another value"][:keeps and bool(there)])
        # One that was idle goes on with its lifetime.
        for late, wrong in (19, []), (20.5, ["after its end"]):
            story = Story(lifetime=20 * S, keeps=True)
            story.set("a", 5)
            story.at(6)
            story.set("b", 30)
            story.at(late)
            story.do("get", "b")
            story.wrong(*wrong)

    def test_a_step_of_the_clock_moves_no_deadline(self):
        story = Story()
        story.set("a", 100)
        story.note("step", by=60 * S, offset=WALL + 60 * S)
        story.do("left", 99999)
        story.do("left", 39999)
        story.dies("ended", offset=WALL + 60 * S)
        story.at(50)
        story.do("get", "a")
        story.at(101)
        story.do("get", "a")
        story.wrong("prolonged or shortened", "after its end")

    def test_unix_times_are_those_of_the_clock_as_it_is_set(self):
        story = Story()
        story.set("a", at=WALL + 100 * S)
        story.note("step", by=60 * S, offset=WALL + 60 * S)
        story.do("when", (WALL + 160 * S) // 10**6)
        story.set("b", at=WALL + 100 * S)
        story.do("when", (WALL + 100 * S) // 10**6)
        story.at(39)
        story.do("get", None)
        story.wrong("early or lost")

    def test_after_a_power_failure_the_clock_says_how_long_the_machine_was_off(self):
        for by, at, answer, *words in ((60, 89, None, "early or lost"), (60, 91, None),
                                       (-60, 215, "a"), (-60, 218, "a", "after its end")):
            story = Story()
            story.at(50)
            story.set("a", 100)     # and a sixteenth, after the crash
            story.note("step", by=by * S, offset=WALL + by * S)
            story.dies("power", offset=WALL + by * S, stable=story.time)
            story.at(at)
            story.do("get", answer)
            story.wrong(*words)


class Kept(Case):
    def test_what_was_acknowledged_outlasts_a_kill(self):
        story = Story()
        story.set("a", 100)
        story.set("b", 100)
        story.dies()
        story.do("get", "a")
        story.wrong("another value")

    def test_what_was_not_may_have_happened(self):
        for value in "ab":
            story = Story()
            story.set("a", 100)
            story.send("set", value="b", ttl=100 * S)
            story.dies()
            story.do("get", value)
            story.do("get", "ba"["ab".index(value)])
            story.wrong("another value")

    def test_what_was_cut_may_have_happened(self):
        story = Story()
        story.set("a", 100)
        story.note("over", call=story.send("del"))
        story.do("get", None)
        story.do("get", "a")
        story.wrong("another value")

    def test_what_nobody_was_answered_may_be_seen_and_not_be_kept(self):
        for is_written, words in ((False, []), (True, ["another value"])):
            story = Story()
            story.set("a", 1000)
            story.note("over", call=story.send("set", value="b", ttl=1000 * S))
            story.do("get", "b")
            story.at(100)
            if is_written:
                story.do("set", "OK", value="c", key="l")
            story.dies()
            story.do("get", "a")
            story.wrong(*words)

    def test_a_power_failure_takes_what_is_new(self):
        for lost, word in ((0, ["another value"]), (20 * S, [])):
            story = Story(lost=lost)
            story.set("a", 100)
            story.at(10)
            story.set("b", 100)
            story.dies("power", stable=story.time - lost)
            story.do("get", "a")
            story.wrong(*word)
        story = Story(lost=5 * S)
        story.set("a", 100)
        story.set("b", 100)
        story.at(10)
        story.dies("power", stable=story.time - 5 * S)
        story.do("get", "a")
        story.wrong("another value")

    def test_after_a_crash_it_has_a_sixteenth_more(self):
        story = Story()
        story.set("a", 160)
        story.dies()
        story.dies()
        story.at(169)
        story.do("get", "a")
        story.at(171)
        story.do("get", "a")
        story.wrong("after its end")

    def test_after_a_failed_sync_nothing_becomes_stable(self):
        story = Story(lost=3 * S)
        story.set("a", 10)
        story.at(5)
        story.do("touch", 1, ttl=100 * S)
        story.note("failed")
        story.at(9)
        story.do("get", "a")
        story.at(20)
        story.dies("power", stable=2 * S)
        story.do("get", None)
        story.wrong()

    def test_nothing_is_changed_after_a_failed_sync(self):
        story = Story()
        story.note("failed")
        story.time += 1
        story.set("a", 10)
        story.wrong("after a sync had failed")

    def test_a_new_disk(self):
        story = Story()
        story.set("a", 100)
        story.note("forgotten")
        story.do("get", None)
        story.set("b", 100)
        story.do("get", "a")
        story.wrong("another value")


    def test_a_transaction_is_kept_as_a_whole(self):
        for kept in ("bb", "aa", "ab"):
            story = Story()
            for key in "kl":
                story.do("set", "OK", value=f"{key}a", key=key)
            for key in "kl":
                story.send("set", value=f"{key}b", key=key, group=1)
            story.dies()
            for key, value in zip("kl", kept):
                story.do("get", f"{key}{value}", key=key)
            story.wrong(*["of a transaction"][:kept == "ab"])


class Conditions(Case):
    def test_only_new_ones(self):
        story = Story()
        story.set("a", 100)
        story.do("set", None, value="b", nx=True)
        story.do("set", "OK", value="c", nx=True)
        story.wrong("it may not be there")

    def test_the_former_value(self):
        story = Story()
        story.set("a", 100)
        story.do("set", "a", value="b", keep=True, get=True)
        story.do("take", "a")
        story.wrong("another value")

    def test_a_look_during_a_change(self):
        for seen in (None, "a", "b"):
            story = Story()
            story.set("a", 100)
            change = story.send("set", value="b", ttl=100 * S)
            look = story.send("get")
            story.note("answer", **{"call": look, "is": seen})
            story.note("answer", **{"call": change, "is": "OK"})
            story.wrong(*["early or lost"][:seen is None])


class Ends(Case):
    def told(self, value, *words, **more):
        story = Story()
        story.set("a", 10, **more)
        story.at(20)
        if value:
            story.note("told", key="k", value=value)
        story.at(10000)
        story.do("get", None)
        story.at(20000)
        story.wrong(*words)

    def test_each_is_told(self):
        self.told("a")
        self.told(None, "was never told")

    def test_a_power_failure_takes_one_that_was_set_and_ended(self):
        for lost, words in ((20 * S, []), (0, ["was never told"])):
            story = Story(lost=lost)
            story.at(100)
            story.set("a", 1)
            story.at(105)
            story.do("get", None)
            story.dies("power", stable=story.time - lost)
            story.at(10000)
            story.do("get", None)
            story.at(20000)
            story.wrong(*words)

    def test_nothing_else_is_told(self):
        self.told("b", "which nobody set", "was never told")

    def test_one_that_was_never_stable_need_not_be_told(self):
        """Nobody was answered, and the disk is full: the journal does not have it."""
        story = Story()
        story.note("over", call=story.send("set", value="a", ttl=10 * S))
        story.at(5)
        story.do("get", "a")
        story.at(5000)
        story.dies()
        story.do("get", None)
        story.at(10000)
        story.wrong()

    def test_none_is_told_early_or_when_it_was_deleted(self):
        story = Story()
        story.set("a", 10)
        story.note("told", key="k", value="a")
        story.do("del", 1)
        story.at(20)
        story.note("told", key="k", value="a")
        story.wrong("is told early", "which was replaced or deleted")


if __name__ == "__main__":
    main()
