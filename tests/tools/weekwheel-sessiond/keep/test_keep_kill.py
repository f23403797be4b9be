#!/usr/bin/env python3
"""A busy weekwheel-sessiond is killed and started again on the same folder, many times: what it acknowledged is there.

Clients send random commands, images are written meanwhile, and after each start every key is compared with its history:
its content, that transactions are whole, and that no deadline is early, nor later than a sixteenth of the TTL. Now and then
the server ends in order; then deadlines are exact.

WW_KILLS sets how often it is killed (8).
"""
# tier: long, threads
import os
import random
import signal
import threading
import time

from session_load import Load
from sessiond import Sessiond
from harness import Case, main, seed

KILLS = int(os.environ.get("WW_KILLS") or 8)
LONGEST = 0.02  # seconds from the last batch to the kill


class Kill(Case):
    def test_what_was_acknowledged_outlives_a_kill(self):
        for mode in ("interval", "always"):
            self.rounds(mode, random.Random(f"{seed()} {mode}"))

    def rounds(self, mode, chance):
        load, folder = Load(chance), "data-" + mode
        for number in range(KILLS // 2 + KILLS % 2):
            is_last = number % 4 == 3
            with Sessiond("--data", folder, "--sync", mode) as server:
                load.connect(server)
                for _ in range(chance.randrange(1, 25)):
                    load.round()
                    if chance.random() < 0.1:
                        with server.client() as client:
                            client.ask("BGSAVE")
                if is_last:
                    server.stop()
                else:
                    self.kill_while_busy(server, load, chance)
                load.leave()
            stable = time.monotonic_ns()
            with Sessiond("--data", folder, "--sync", mode) as server, server.client() as client:
                wrong = load.judge(client, stable, is_last)
                assert not wrong, f"--sync {mode}, round {number}:\n" + "\n".join(wrong[:10])
                load.narrow()
                server.stop(chance.choice((signal.SIGKILL, signal.SIGTERM)))
        print(f"--sync {mode}: {load.count} values, {len(load.versions)} keys")

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
