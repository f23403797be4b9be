#!/usr/bin/env python3
"""A weekwheel-sessiond that runs scripts is killed and started again on the same folder: what each script has changed is there
as a whole or not at all, and what was undone is not.

WW_KILLS sets how often it is killed (6).
"""
# tier: long, threads
import os
import random
import signal
import threading
import time

from harness import Case, check, equal, main, seed
from session_load import UNDONE, Load
from sessiond import Sessiond

KILLS = int(os.environ.get("WW_KILLS") or 6)
LONGEST = 0.02  # seconds from the last batch to the kill
OPTIONS = ("--data", "data", "--sync", "always", "--script-time", "2ms")


class Kill(Case):
    def test_the_effects_of_a_script_are_whole(self):
        chance = random.Random(seed())
        load = Load(chance, has_scripts=True)
        for number in range(KILLS):
            with Sessiond(*OPTIONS) as server:
                load.connect(server)
                for _ in range(chance.randrange(1, 10)):
                    load.round()
                self.kill_while_busy(server, load, chance)
                load.leave()
            stable = time.monotonic_ns()
            with Sessiond(*OPTIONS) as server, server.client() as client:
                wrong = load.judge(client, stable)
                assert not wrong, f"round {number}:\n" + "\n".join(wrong[:10])
                load.narrow()
                server.stop(signal.SIGKILL)
        print(f"{load.count} values, {len(load.versions)} keys")

    def test_what_was_undone_keeps_its_deadline(self):
        """A crash adds a sixteenth of the time left, once: not another one for a key that a script had changed in between."""
        hour = 3600000
        with Sessiond(*OPTIONS) as server, server.client() as client:
            equal(client.ask("SET", "a", "x", "PX", 16 * hour), b"+OK\r\n")
            server.stop(signal.SIGKILL)
        for _ in range(2):
            with Sessiond(*OPTIONS) as server, server.client() as client:
                answer = client.ask("EVAL", UNDONE, 2, "a", "b", "y")
                check(b"took too long" in answer, answer)
                equal(client.ask("GET", "a"), b"$1\r\nx\r\n")
                left = int(client.ask("PTTL", "a")[1:])
                check(left <= 17 * hour, left)
                server.stop(signal.SIGKILL)

    @staticmethod
    def kill_while_busy(server, load, chance):
        late = threading.Timer(chance.random() * LONGEST, server.stop, (signal.SIGKILL,))
        late.start()
        while True:
            try:
                load.send(200)
            except OSError:
                load.hear()
                break
            if not load.hear():
                break
        late.join()


if __name__ == "__main__":
    main()
