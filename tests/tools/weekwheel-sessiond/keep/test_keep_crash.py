#!/usr/bin/env python3
"""weekwheel-sessiond under random load loses its power, at many moments. What it promised to keep is there.

All that it writes and syncs is recorded, and disks are rebuilt that a power failure may have left (tests/support/power.py).
Each is served, and every key is compared with what the clients had heard by then (tests/support/session_load.py):

- with --sync always, all that was acknowledged is there;
- with --sync interval, all that was acknowledged before the first write that no sync has covered;
- with --sync system, all that was there when the server last ended in order;
- always, transactions are whole, and no deadline is early.

WW_STATES is how many disks are rebuilt (40), and WW_SYNC names the modes (all three).
"""
# tier: long, no-sanitizers
import copy
import os
import random
import shutil
import signal
import time

import power
from session_load import Load
from sessiond import Sessiond
from harness import Case, main, seed

STATES = int(os.environ.get("WW_STATES") or 40)
MODES = (os.environ.get("WW_SYNC") or "always interval system").split()
ENDS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)
ROUNDS = 25
INTERVAL_MS = 20


class Past:
    """The load, and when servers ended: (began, ended, in order)."""

    def __init__(self, load):
        self.load, self.lives = load, []

    def stable(self, mode, at, unsynced):
        """Until when all that was acknowledged is kept after a power failure at that time."""
        closed = max((ended for _, ended, orderly in self.lives if orderly and ended <= at), default=0)
        if mode == "always":
            return at
        return max(closed, unsynced - 1) if mode == "interval" else closed

    def before(self, at):
        """The load as it was known then."""
        load = Load(self.load.chance)
        for key, versions in self.load.versions.items():
            known = [copy.copy(version) for version in versions if version.sent_at <= at]
            for version in known:
                if version.heard_at and version.heard_at > at:
                    version.heard_at = None
                version.is_old = True
            load.versions[key] = known
        return load


def run(mode, chance):
    """Record a server under load, killed and ended in order. Returns the records and the past."""
    load, records = Load(chance), []
    past = Past(load)
    often = ("--sync-interval", f"{INTERVAL_MS}ms") if mode == "interval" else ()
    os.mkdir("data")
    for number, end in enumerate(ENDS):
        records.append(f"record.{number}")
        with Sessiond("--data", "data", "--sync", mode, *often, **power.recorded("data", records[-1])) as server:
            began = time.monotonic_ns()
            load.connect(server)
            for _ in range(ROUNDS):
                load.round()
                if chance.random() < 0.2:
                    with server.client() as client:
                        client.ask("BGSAVE")
            server.stop(end)
            past.lives.append((began, time.monotonic_ns(), end == signal.SIGTERM))
            load.leave()
        if end == signal.SIGKILL:
            # Deadlines may be later from now on.
            for versions in load.versions.values():
                for version in versions:
                    version.is_old = True
    return records, past


def unsynced_since(disk, events, at):
    """When the first write to a journal was made that no sync has covered. A killed server syncs nothing, and the next one does
    it at its start."""
    files = [disk.files[number] for name, number in disk.names.items() if name.startswith("journal.")]
    return min((events[file.pending[0][0]][0] for file in files if file.pending), default=events[at][0])


def problems(folder, past, mode, at, unsynced):
    try:
        with Sessiond("--data", folder) as server, server.client() as client:
            return past.before(at).judge(client, past.stable(mode, at, unsynced))
    except (AssertionError, OSError) as error:
        return [f"{type(error).__name__}: {error}"]


class Crash(Case):
    def test_what_was_acknowledged_outlives_a_power_failure(self):
        start, bad = seed(), 0
        for mode in MODES:
            folder = os.path.join(self.folder, mode)
            os.mkdir(folder)
            os.chdir(folder)
            bad += self.examine(mode, start)
        assert not bad, f"{bad} times it went wrong"

    @staticmethod
    def examine(mode, start):
        records, past = run(mode, random.Random(f"{start} {mode}"))
        events, bad = power.read(*records), 0
        disk, chance = power.Disk(events), random.Random(start)
        wanted = -(-STATES // len(MODES))
        first = next(i for i, event in enumerate(events) if event[0] > past.lives[0][0])
        for at in sorted(chance.choices(range(first, len(events)), k=wanted)):
            disk.replay(at + 1)
            left, how = disk.left(random.Random(f"{start} {at}"))
            wrong = problems(left, past, mode, events[at][0], unsynced_since(disk, events, at))
            shutil.rmtree(left)
            if wrong:
                bad += 1
                if bad <= 3:
                    print(f"--sync {mode}, after event {at} of {len(events)}: {how}", *wrong[:5], sep="\n  ")
        turns = len({name for name in disk.seen if name.startswith("journal.")}) - len(records)
        print(f"--sync {mode}: {past.load.count} values, {len(events)} writes and syncs, {turns} images; "
              f"{wanted} disks, {bad} bad")
        assert turns > 3, "hardly an image was written"
        return bad


if __name__ == "__main__":
    main()
