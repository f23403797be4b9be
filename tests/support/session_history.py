#!/usr/bin/env python3
"""Judges a history of sessions: what clients of weekwheel-sessiond did and heard. Reads it once.

    python3 tests/support/session_history.py [--quiet] FILE     prints what is wrong; exit status 1 if anything is

A history is a text with an event on each line, an object of JSON, in the order in which they happened. Each has "event"
and "t", a whole number of nanoseconds on one clock that never steps. A value is set once. Members in brackets may be
left out.

    begin    lost lifetime keeps tells          the first event
               lost: a power failure may take what was answered so long before
               lifetime: --lifetime, or 0; keeps: --keep-lifetimes; tells: --expired-to
    start    offset                             a server has begun: its wall clock is ahead of "t" by that
    step     by offset                          the wall clock was set by `by`: it is ahead of "t" by `offset` from now on
    call     call verb key [group] ...          a command is about to be sent. At most one at a time changes a key
               group: the number of its transaction
               set     value [ttl] [at] [keep] [life] [nx] [xx] [get]     as SET has them, in ns
               touch   [ttl] [at] [persist] [get]                         GETEX, PEXPIRE, PERSIST
               take, del, get, exists, left (PTTL), when (PEXPIRETIME)
    answer   call [is] [refused]                refused: an error, and it had no effect
    over     call                               it will not be answered: it was done by now, or never will be
    told     key value                          the end of that value was told to the other server
    ended, killed                               the server has ended, in order or not
    power    stable                             the same by a power failure; what was answered by `stable` is kept
    failed                                      a sync failed: nothing is changed until the server ends
    forgotten                                   nothing is known of any key any more
    end      all                                the last event; true: all that had ended an hour before was told

The rules:

- Never early: what is there is there until its deadline. Steps of the wall clock move none. Only a boot takes what
  it was set by since the last change that is kept for time that the machine was off.
- Never after its end: from then on nobody gets it. A touch moves the deadline, and not the end of the lifetime.
- With --keep-lifetimes, for a minute after its end (--stay-ended): a set goes on with the lifetime, or does nothing if that
  is over, unless it says another.
- What was acknowledged is kept. A power failure takes at most what --sync says.
- What was in one transaction is kept together, or not at all.
- No start prolongs anything, but a touch that a crash may have taken: by a sixteenth of the lifetime at most, however
  often the server crashes.
- What has ended by itself is told, once or again, and not before; what was deleted or replaced before its end is not.
"""
import json
import sys

NEVER = float("inf")
MS = 10**6
GRACE = 16      # after a crash a session has this part of its lifetime more
SEEN = 10**10   # what nobody was answered may be seen so long before it is stable
SETTLED = 3600 * 10**9
STAYS = 60 * 10**9      # what has ended is recalled for so long


class Session:
    """A value, and between when and when its deadline and the end of its lifetime are, by "t"."""
    __slots__ = ("value", "low", "high", "end_low", "end_high", "ttl", "is_crashed", "is_over")

    def __init__(self, value, deadline=(NEVER, NEVER), end=(NEVER, NEVER), ttl=0, is_crashed=False):
        self.value, self.ttl, self.is_crashed = value, ttl, is_crashed
        self.low, self.high = deadline
        self.end_low, self.end_high = end
        self.is_over = False    # its deadline was perhaps over when it was asked for: then nobody is told

    def ends(self):
        """Between when and when it ends."""
        grace = self.ttl // GRACE + MS if self.is_crashed and self.high != NEVER else 0
        return min(self.low, self.end_low), min(self.high + grace, self.end_high)

    def __repr__(self):
        low, high = self.ends()
        return f"{self.value} (ends {low} to {high})"

    def after_crash(self):
        return self.copy(self.value, True)

    def shifted(self, sooner, later):
        made = self.copy(self.value, self.is_crashed)
        made.low, made.high, made.end_low, made.end_high = (
            self.low - sooner, self.high + later, self.end_low - sooner, self.end_high + later)
        return made

    def copy(self, value, is_crashed):
        made = Session(value, (self.low, self.high), (self.end_low, self.end_high), self.ttl, is_crashed)
        made.is_over = self.is_over
        return made


class Key:
    """What is stored of a key, perhaps: sessions, which may have ended, or None for nothing."""

    def __init__(self, name):
        self.name = name
        self.now = {None}
        # What it may have had, and until when a power failure brings that back. What nobody was answered is perhaps not
        # in the journal, for want of room, until something else is: how much was answered by then.
        self.earlier = []
        self.change = None      # the command that changes it and has no answer
        self.looks = set()      # commands under way that only look
        self.is_known = True
        self.changes = 0        # that were sent
        self.groups = []        # transactions that the last one was in


class Call:
    def __init__(self, event):
        self.event, self.verb, self.key = event, event["verb"], event["key"]
        self.sent = event["t"]
        self.may_see = set()    # of one that looks: what the key had since
        self.was_changed = False


CHANGES = ("set", "touch", "take", "del")


class Sessions:
    """Feed it events. `wrong` is what is wrong with them."""

    def __init__(self):
        self.wrong, self.number, self.time = [], 0, 0
        self.offsets = [(0, 0)]     # of the wall clock: since when, and how far it is ahead
        self.steps = []         # when and by how much
        self.written = []       # when changes were answered and sent: the journal then had the clock as it was set
        self.starts = 0
        self.stable = None      # after a power failure: what was answered by then is kept
        self.keys, self.calls = {}, {}
        self.ends = {}          # values that must be told: the key, and by when they had ended
        self.told = set()
        self.untold = {}        # values that must not be told: when that became sure
        self.failed = None
        self.sent = set()       # values
        self.acknowledged = 0   # changes
        self.groups = {}        # by number: keys, how often they were changed by then, values, and when they end

    def tell(self, text):
        self.wrong.append(f"event {self.number}, at {self.time / 1e9:.6f} s: {text}")

    def feed(self, event):
        self.number += 1
        self.time = event["t"]
        getattr(self, "on_" + event["event"])(event)

    def key(self, name):
        if name not in self.keys:
            self.keys[name] = Key(name)
        return self.keys[name]

    def on_begin(self, event):
        self.lost, self.lifetime = event["lost"], event["lifetime"]
        self.keeps, self.tells = event["keeps"], event["tells"]

    def on_start(self, event):
        self.offsets.append((self.time, event["offset"]))
        if self.stable is not None:
            self.shift()
        self.stable = None
        self.starts += 1

    def on_step(self, event):
        self.offsets.append((self.time, event["offset"]))
        self.steps.append((self.time, event["by"]))

    def shift(self):
        """After a boot the wall clock alone says how long the machine was off: by it and what the journal has last of it."""
        since = next((sent for answered, sent in reversed(self.written) if answered <= self.stable), 0)
        sums = [0]
        for time, by in reversed(self.steps):
            if time >= since:
                sums.append(sums[-1] + by)
        sooner, later = max(sums) + MS, -min(sums) + MS     # either clock is read in whole ms
        if len(set(sums)) > 1:
            self.groups = {}
        for key in self.keys.values():
            key.groups = key.groups if self.groups else []
            key.now = {state and state.shifted(sooner, later) for state in key.now}
            key.earlier = [(*until, {state and state.shifted(sooner, later) for state in old})
                           for *until, old in key.earlier]

    def ahead(self, since, until):
        """How far the wall clock was ahead between the two, at least and at most."""
        before = [offset for time, offset in self.offsets if time <= since][-1:]
        meanwhile = [offset for time, offset in self.offsets if since < time <= until]
        return min(before + meanwhile), max(before + meanwhile)

    # ---- What a command does

    def views(self, states, sent, answered):
        """What a command sees that was carried out between the two, and what is stored then, even if it has ended."""
        seen = set()
        for state in states:
            low, high = state.ends() if state else (NEVER, NEVER)
            if state is None or low <= answered:
                seen.add((None, state))
            if state is not None and high > sent:
                seen.add((state, state))
        return seen

    def deadline(self, event, sent, answered):
        """Of a set or a touch: between when and when, and how long the lifetime is."""
        if "ttl" in event:
            return (sent + event["ttl"], answered + event["ttl"] + MS), event["ttl"]
        if "at" in event:
            least, most = self.ahead(sent, answered)
            return (event["at"] - most, event["at"] - least), max(event["at"] - least - sent, 0)
        return (NEVER, NEVER), 0

    def set_over(self, before, event, sent, answered):
        """The session that a set makes."""
        if event.get("keep"):
            if before is None:
                return Session(event["value"])
            return before.copy(event["value"], before.is_crashed)
        deadline, ttl = self.deadline(event, sent, answered)
        end = NEVER, NEVER
        if "life" in event:
            end = sent + event["life"], answered + event["life"] + MS
        elif self.keeps and before and before.end_low != NEVER:
            end = before.end_low, before.end_high
        elif deadline[0] != NEVER and self.lifetime:
            end = sent + self.lifetime, answered + self.lifetime + MS
        made = Session(event["value"], deadline, end, ttl)
        made.is_over = deadline[0] <= answered
        return made

    def touch(self, before, event, sent, answered):
        deadline, ttl = self.deadline(event, sent, answered)
        end = before.end_low, before.end_high
        if end[0] == NEVER and deadline[0] != NEVER and self.lifetime:
            end = sent + self.lifetime, answered + self.lifetime + MS
        # One that was left out on disk leaves the lifetime there, too.
        if before.low != NEVER and ttl and deadline[1] >= before.low:
            ttl = max(ttl, before.ttl)
        made = Session(before.value, deadline, end, ttl)
        made.is_over = deadline[0] <= answered or before.is_over
        return made

    def effect(self, call, before, stored, answered):
        """What a command that sees this answers, and what it leaves."""
        event, value = call.event, before.value if before else None
        if call.verb == "set":
            kept = before if event.get("nx") else not before if event.get("xx") else False
            former = value if event.get("get") else None if kept else "OK"
            return former, stored if kept else self.set_over(before, event, call.sent, answered)
        if call.verb in ("take", "del"):
            return (value if call.verb == "take" else int(before is not None)), None if before else stored
        if before is None:
            return (None if event.get("get") else 0), stored
        if event.get("persist") and before.ends()[0] == NEVER:
            return (value if event.get("get") else 0), before
        return (value if event.get("get") else 1), self.touch(before, event, call.sent, answered)

    def is_answer(self, call, before, answer, answered):
        """Whether a command that only looks and sees this answers so."""
        low, high = before.ends() if before else (None, None)
        if call.verb == "get":
            return answer == (before.value if before else None)
        if call.verb == "exists":
            return answer == int(before is not None)
        if before is None:
            return answer == -2
        if answer == -1:
            return high == NEVER
        if answer < 0:
            return False
        if call.verb == "when":
            least, most = self.ahead(call.sent, answered)
            return low - MS < answer * MS - least and answer * MS - most <= high
        return low - answered - MS < answer * MS < high - call.sent + MS

    # ---- Commands

    def on_call(self, event):
        call = self.calls[event["call"]] = Call(event)
        key = self.key(call.key)
        if call.verb not in CHANGES:
            call.may_see, call.was_changed = set(key.now), key.change is not None
            key.looks.add(call)
            return
        if call.verb == "set":
            self.sent.add(event["value"])
        self.settle_ends(key)
        key.change = call
        key.changes += 1
        self.join_group(key, call)
        for look in key.looks:
            look.was_changed = True

    def late(self, call, stored, answered):
        """What a set may do that finds nothing, of a key whose last session is recalled; and whether it must be recalled."""
        event, (low, high) = call.event, stored.ends()
        if not self.keeps or "life" in event or event.get("xx") or stored.end_low == NEVER or call.sent > high + STAYS:
            return [], False
        results = []
        if stored.end_low <= answered:
            results.append(("OK" if not event.get("nx") and not event.get("get") else None, stored))
        if stored.end_high > call.sent:
            former, made = self.effect(call, None, stored, answered)
            if not event.get("nx"):
                made.end_low, made.end_high = stored.end_low, stored.end_high
            results.append((former, made))
        # After a crash, one that was idle and then deleted is not.
        return results, answered < low + STAYS and (not stored.is_crashed or stored.end_high <= stored.low)

    def results(self, key, call, answered):
        """All that it may have made of the key, if it was carried out; with its answers."""
        results = []
        for before, stored in self.views(key.now, call.sent, answered):
            late, must = [], False
            if call.verb == "set" and before is None and stored is not None:
                late, must = self.late(call, stored, answered)
            results += late if must else late + [self.effect(call, before, stored, answered)]
        return results

    def replace(self, key, states, slack):
        """Now it has one of these; for a while a power failure brings back what it had."""
        if self.lost or slack:
            # After a failed sync nothing becomes stable any more.
            now = self.time if self.failed is None else self.failed
            key.earlier = [one for one in key.earlier if one[0] > now or one[1] == self.acknowledged]
            key.earlier.append((self.time + self.lost + slack, self.acknowledged if slack else None, key.now))
        key.now = states

    def on_answer(self, event):
        call = self.calls.pop(event["call"], None)
        if call is None:
            return
        key = self.key(call.key)
        if call.verb in CHANGES:
            key.change = None
            if not event.get("refused"):
                self.changed(key, call, event["is"])
            else:
                self.refresh_looks(key, call)
        else:
            key.looks.discard(call)
            if not event.get("refused"):
                self.looked(key, call, event["is"])

    def refresh_looks(self, key, call):
        for look in key.looks:
            look.may_see |= {state for _, state in self.results(key, call, self.time)}

    def changed(self, key, call, answer):
        if self.failed is not None and self.failed < call.event["t"] and answer not in (None, 0):
            self.tell(f"{key.name}: changed after a sync had failed")
        self.refresh_looks(key, call)
        if not key.is_known:
            self.learn(key, call, answer)
            return
        states = {state for said, state in self.results(key, call, self.time) if said == answer}
        if not states:
            self.tell(f"{key.name}: {self.words(call)} was answered {answer!r}{self.why(key.now, call, answer)}")
            states = {state for _, state in self.results(key, call, self.time)}
        self.note_replaced(key, call)
        if call.verb == "set" and answer == "OK" or call.verb in ("del", "take") and answer:
            self.acknowledged += 1
            self.written.append((self.time, call.sent))
        self.replace(key, states, 0)

    def words(self, call):
        return " ".join(f"{name} {value}" for name, value in call.event.items() if name not in ("event", "t", "key"))

    def why(self, states, call, answer):
        """What kind of fault it is."""
        late = any(state and state.value == answer and state.ends()[1] <= call.sent for state in states)
        gone = answer in (None, 0, -2) and all(
            view for view, _ in self.views(states, call.sent, self.time))
        known = {state.value for state in states if state}
        kind = ("after its end" if late else "early or lost" if gone
                else "another value" if isinstance(answer, str) and answer not in known | {"OK"}
                else "prolonged or shortened" if call.verb in ("left", "when") else "it may not be there")
        return f" between {call.sent} and {self.time}, {kind}: it may be {sorted(map(repr, states))}"

    def learn(self, key, call, answer):
        """Nothing was known. A set or a deletion says all."""
        is_set = call.verb == "set" and answer is not None and not any(
            call.event.get(name) for name in ("keep", "nx", "xx", "get")) and not self.keeps
        if is_set:
            _, state = self.effect(call, None, None, self.time)
            key.now, key.earlier, key.is_known = {state}, [], True
        elif call.verb in ("del", "take") and answer:
            key.now, key.earlier, key.is_known = {None}, [], True

    def looked(self, key, call, answer):
        if not key.is_known:
            return
        if key.change:
            call.may_see |= {state for _, state in self.results(key, key.change, self.time)}
        seen = self.views(call.may_see, call.sent, self.time)
        fits = {stored for view, stored in seen if self.is_answer(call, view, answer, self.time)}
        if not fits:
            self.tell(f"{key.name}: {self.words(call)} was answered {answer!r}{self.why(call.may_see, call, answer)}")
        elif not call.was_changed and not key.change:
            self.settle_ends(key)
            self.replace(key, fits, SEEN)
            self.check_groups(key)

    def on_over(self, event):
        call = self.calls.pop(event["call"], None)
        if call is not None:
            self.is_over(call)

    def is_over(self, call):
        """It was done, or not."""
        key = self.key(call.key)
        key.looks.discard(call)
        if call.verb not in CHANGES:
            return
        self.refresh_looks(key, call)
        key.change = None
        if key.is_known:
            self.replace(key, key.now | {state for _, state in self.results(key, call, self.time)}, SEEN)

    # ---- Transactions

    def join_group(self, key, call):
        """Only a set says of which one it is: nothing else gives the key that value."""
        event, key.groups = call.event, []
        if call.verb != "set" or "group" not in event or any(event.get(name) for name in ("keep", "nx", "xx")):
            return
        if self.keeps:
            return
        ends = self.set_over(None, event, call.sent, call.sent).ends()[0]
        group = self.groups.setdefault(event["group"], [])
        group.append((key, key.changes, event["value"], ends))
        key.groups = [group]

    def check_groups(self, key):
        """Of what has not changed or ended since, all is there or nothing."""
        for group in key.groups:
            found = {}
            for other, changes, value, ends in group:
                if other.changes != changes or other.change or not other.is_known or ends - MS * self.starts <= self.time:
                    continue
                are = {bool(state and state.value == value) for state in other.now}
                if len(are) == 1:
                    found[are.pop()] = f"{other.name} {value}"
            if len(found) == 2:
                self.tell(f"of a transaction {found[True]} is kept, and {found[False]} is not")

    # ---- What is told

    def settle_ends(self, key):
        """What was certainly there, and has certainly ended by itself."""
        if not self.tells or not key.is_known or key.change or len(key.now) != 1:
            return
        (state,) = key.now
        if state and state.ends()[1] < self.time and not state.is_over:
            self.ends.setdefault(state.value, (key.name, self.time))

    def note_replaced(self, key, call):
        """What was certainly there until it was deleted or replaced has not ended by itself."""
        if len(key.now) != 1 or call.verb not in ("set", "del", "take"):
            return
        (state,) = key.now
        results = self.results(key, call, self.time)
        if state and state.ends()[0] > self.time and all(not new or new.value != state.value for _, new in results):
            self.untold[state.value] = self.time

    def on_told(self, event):
        value, key = event["value"], self.key(event["key"])
        self.told.add(value)
        if value not in self.sent:
            self.tell(f"{key.name}: the end of {value} is told, which nobody set")
        elif value in self.untold:
            self.tell(f"{key.name}: the end of {value} is told, which was replaced or deleted")
        elif key.is_known and not key.change and all(
                state and state.value == value and state.ends()[0] > self.time for state in key.now):
            self.tell(f"{key.name}: the end of {value} is told early: it may be {sorted(map(repr, key.now))}")

    # ---- Failures

    def die(self):
        for call in list(self.calls.values()):
            self.is_over(call)
        self.calls.clear()
        for key in self.keys.values():
            key.looks.clear()
        self.failed = None

    def on_ended(self, event):
        self.die()

    def forget_ends(self, states, old):
        """What is perhaps as it was before was perhaps never there: its end need not be told."""
        kept = {state.value for state in old if state}
        for state in states:
            if state and state.value not in kept:
                self.ends.pop(state.value, None)

    def on_killed(self, event):
        self.die()
        for key in self.keys.values():
            self.settle_ends(key)
            for _, acknowledged, old in key.earlier:
                if acknowledged == self.acknowledged:
                    self.forget_ends(key.now, old)
                    key.now = key.now | old
            key.now = {state and state.after_crash() for state in key.now}
            key.earlier = [(until, acknowledged, {state and state.after_crash() for state in old})
                           for until, acknowledged, old in key.earlier]

    def on_power(self, event):
        self.die()
        self.stable = event["stable"] if self.stable is None else min(self.stable, event["stable"])
        for key in self.keys.values():
            # `until` says how long after its end a power failure brings it back.
            for until, acknowledged, old in key.earlier:
                if until - self.lost >= event["stable"] or acknowledged == self.acknowledged:
                    self.forget_ends(key.now, old)
                    key.now = key.now | old
            key.earlier = []
            key.now = {state and state.after_crash() for state in key.now}
        self.untold = {value: time for value, time in self.untold.items() if time < event["stable"]}
        self.ends = {value: end for value, end in self.ends.items() if end[1] < event["stable"]}

    def on_failed(self, event):
        self.failed = self.time

    def on_forgotten(self, event):
        self.calls.clear()
        self.ends, self.untold = {}, {}
        for key in self.keys.values():
            key.is_known, key.change, key.earlier, key.groups = False, None, [], []
            key.looks.clear()

    def on_end(self, event):
        for key in self.keys.values():
            self.settle_ends(key)
        for value, (name, time) in self.ends.items() if event["all"] else ():
            if value not in self.told and time + SETTLED < self.time:
                self.tell(f"{name}: the end of {value} was never told")


def judge(lines):
    """The history of these lines."""
    history = Sessions()
    for line in lines:
        history.feed(json.loads(line))
    return history


if __name__ == "__main__":
    with open(sys.argv[-1], encoding="utf-8") as text:
        judged = judge(text)
    if judged.wrong or "--quiet" not in sys.argv:
        print(*judged.wrong[:50], sep="\n")
        print(f"{judged.number} events, {len(judged.keys)} keys, {len(judged.ends)} ends, "
              f"{len(judged.wrong)} times wrong")
    sys.exit(bool(judged.wrong))
