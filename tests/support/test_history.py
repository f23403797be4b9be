#!/usr/bin/env python3
"""The judge of histories and the disks after a power failure say what they should of small cases."""
import random
import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import power
from history import History
from weekwheel import Case, equal, main


def judged(operations, stored, time, stable=None):
    """What is wrong with a job of these operations: (state, sent, answered)."""
    history = History()
    job = history.add(b"x")
    for state, sent, answered in operations:
        history.change(job, state, sent, (sent, sent)).answered = answered
    jobs = [{"id": 1, "body": b"x", "state": stored, "due": (0, 100)}] if stored else []
    return len(list(history.judge(jobs, time, time if stable is None else stable, now=50)))


class Judge(Case):
    def test_what_was_answered_has_happened(self):
        equal(judged([("waiting", 1, 2)], "ready", 3), 0)
        equal(judged([("waiting", 1, 2)], None, 3), 1)
        equal(judged([("waiting", 1, 2), ("gone", 3, 4)], None, 5), 0)
        equal(judged([("waiting", 1, 2), ("gone", 3, 4)], "ready", 5), 1)
        equal(judged([("waiting", 1, 2), ("buried", 3, 4)], "ready", 5), 1)

    def test_what_was_not_answered_may_have_happened(self):
        for stored in ("ready", None):
            equal(judged([("waiting", 1, None)], stored, 3), 0)
            equal(judged([("waiting", 1, 2), ("gone", 3, None)], stored, 5), 0)
            equal(judged([("waiting", 1, 2), ("gone", 3, 9)], stored, 5), 0)
        equal(judged([("waiting", 1, None), ("buried", 2, None)], "buried", 3), 0)

    def test_what_was_not_sent_has_not_happened(self):
        equal(judged([("waiting", 4, 5)], None, 3), 0)
        equal(judged([("waiting", 4, 5)], "ready", 3) > 0, True)
        equal(judged([("waiting", 1, 2), ("buried", 4, 5)], "buried", 3), 1)

    def test_operations_at_one_time_come_in_either_order(self):
        both = [("waiting", 1, 2), ("buried", 3, 5), ("waiting", 4, 6)]
        for stored in ("buried", "ready"):
            equal(judged(both, stored, 7), 0)
        equal(judged(both, None, 7), 1)

    def test_what_was_answered_lately_may_be_lost(self):
        for stored in ("ready", None):
            equal(judged([("waiting", 1, 2)], stored, 3, stable=1.5), 0)
        equal(judged([("waiting", 1, 2), ("gone", 3, 4)], None, 5, stable=2), 0)
        equal(judged([("waiting", 1, 2), ("gone", 3, 4)], "buried", 5, stable=2), 1)

    def test_ready_is_not_early(self):
        equal(judged([("waiting", 51, 52)], "ready", 60), 1)


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
