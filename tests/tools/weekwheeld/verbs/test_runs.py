#!/usr/bin/env python3
"""What became of runs, by the protocol: what workers report, and how a schedule's jobs went."""
# tier: check
import base64
import signal

from harness import Case, Redis, Server, alone, conversation, equal, main, matches, need_redis

DAY = "keep=86400"


def report(client, job, text):
    return client.ask("report %d %d\r\n%s" % (job, len(text), text))


def runs(client, *words):
    """Tube, key, outcome, attempt, error and report of each run."""
    found = client.jobs(" ".join(("history", "body=yes") + words))
    return [(run["tube"], run["key"], run["outcome"], run["attempt"], run["error"],
             base64.b64decode(run["report"]).decode()) for run in found if "run" in run]


class History(Case):
    def test_attempts_and_reports(self):
        with Server("--clock", "virtual") as server, server.client() as a, server.client() as b:
            conversation(a, ("put-key 0 0 60 1 k keep=86400 attempts=2\r\nx", "INSERTED 1"),
                         ("put 0 0 60 1\r\nx", "INSERTED 2"))
            matches("RESERVED 1", a.ask("reserve"))
            equal(report(b, 1, "not mine"), "NOT_FOUND")
            equal(report(a, 1, "status 1\nno such host"), "REPORTED")
            equal(a.ask("release-job 1 0 0 it%20failed"), "RELEASED")
            matches("RESERVED 1", a.ask("reserve"))
            equal(report(a, 1, "x" * 4096), "REPORTED")
            equal(report(a, 1, "x" * 4097), "JOB_TOO_BIG")
            equal(report(a, 1, ""), "REPORTED")
            equal(a.ask("bury-job 1 0 twice"), "BURIED")
            matches("RESERVED 2", a.ask("reserve"))
            equal(report(a, 2, "nobody asked"), "REPORTED")
            equal(a.ask("delete 2"), "DELETED")
            first = ("default", "k", "released", 1, "it failed", "status 1\nno such host")
            equal(runs(b), [("default", "k", "buried", 2, "twice", ""), first])
            equal(runs(b, "tube=other"), [])
            equal(runs(b, "id=1", "limit=1")[0][2], "buried")
            last = a.jobs("history limit=1")
            equal(len(last), 2)
            equal(runs(b, "after=%d" % last[1]["next"]), [first])
            equal(a.ask("history id=x"), "BAD_FORMAT")
            matches("ADVANCED", a.ask("advance 86400"))
            equal(runs(b), [])

    def test_runs_of_a_schedule(self):
        with Server("--data", "data", "--clock", "virtual") as server, server.client() as a:
            matches("SCHEDULED", a.ask("put-schedule 0 0 60 1 night cron=%40every%201h keep=604800\r\nx"))
            for _ in range(3):
                matches("ADVANCED", a.ask("advance 3600"))
                job = int(a.ask("reserve-with-timeout 0").split()[1])
                equal(report(a, job, "done"), "REPORTED")
                equal(a.ask("delete %d" % job), "DELETED")
            equal([(run[1].startswith("night%40"), run[2], run[5]) for run in runs(a, "prefix=night%40")],
                  [(True, "finished", "done")] * 3)
            equal(server.stop(), 0)
        with Server("--data", "data", "--clock", "virtual") as server, server.client() as a:
            equal(len(runs(a, "prefix=night%40")), 3)

    def test_only_so_many_are_kept(self):
        with Server("--max-history", "2", "--http", "127.0.0.1:0") as server, server.client() as a:
            for key in "abc":
                job = int(a.ask("put-key 0 0 60 1 %s %s\r\nx" % (key, DAY)).split()[1])
                matches("RESERVED", a.ask("reserve"))
                equal(a.ask("delete %d" % job), "DELETED")
            equal([run[1] for run in runs(a)], ["c", "b"])
            matches("\nweekwheeld_history_runs 2\n", server.get("/metrics")[1])

    def test_after_a_kill_and_in_copies(self):
        with Server("--data", "data") as server, server.client() as a:
            for key in "ab":
                job = int(a.ask("put-key 0 0 60 1 %s %s\r\nx" % (key, DAY)).split()[1])
                matches("RESERVED", a.ask("reserve"))
                equal(report(a, job, "said"), "REPORTED")
                equal(a.ask("delete %d" % job), "DELETED")
            server.stop(signal.SIGKILL)
        expected = [("default", key, "finished", 1, "", "said") for key in "ba"]
        with Server("--data", "data") as server, server.client() as a:
            equal(runs(a), expected)
            server.program.run(0, "backup", "data", "copy")
        alone.run(0, "recover", "data", "saved")
        for folder in ("data", "copy", "saved"):
            matches("sound", alone.run(0, "fsck", folder).out)
            with Server("--data", folder) as server, server.client() as a:
                equal(runs(a), expected)

    def test_over_redis(self):
        need_redis()
        with Redis() as redis, redis.server() as one, redis.server() as two, one.client() as a, two.client() as b:
            job = int(a.ask("put-key 0 0 60 1 k " + DAY + "\r\nx").split()[1])
            matches("RESERVED", a.ask("reserve"))
            equal(report(a, job, "said"), "REPORTED")
            equal(a.ask("delete %d" % job), "DELETED")
            equal(runs(b), [("default", "k", "finished", 1, "", "said")])


if __name__ == "__main__":
    main()
