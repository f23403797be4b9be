#!/usr/bin/env python3
"""Schedules of weekwheeld: verbs, rights, restarts, and servers that are killed and make one job a time all the same."""
# tier: check, waits
import base64
import random
import re
import signal
import threading
import time
from urllib.parse import quote, unquote

from harness import Case, Redis, Server, alone, conversation, equal, main, matches, objects, seed, until
from web import Stores, Web

BEGIN = 2847571200  # 2060-03-27T00:00:00Z, a day before Berlin's clocks go forward


def schedule(client, name, cron, more="", body=b"x"):
    """Put a schedule, and return the answer."""
    line = "put-schedule 100 0 2 %d %s cron=%s %s" % (len(body), name, quote(cron, safe=""), more)
    client.send(line.rstrip().encode() + b"\r\n" + body + b"\r\n")
    return unquote(client.line())


def start(client):
    """Let it be BEGIN, and return how far ahead that is."""
    now = int(client.ask("advance 0").split()[1])
    equal(client.ask("advance %d" % (BEGIN - now)), "ADVANCED %d" % BEGIN)
    return BEGIN - now


def key_of(client, answer):
    """The key of a job that was reserved."""
    number = int(answer.split()[1])
    return unquote(client.jobs("list-delayed id=%d" % number)[0]["key"])


class Verbs(Case):
    def test_a_night_in_berlin(self):
        with Server("--data", "data", "--clock", "virtual") as server, server.client() as a:
            ahead = start(a)
            equal(schedule(a, "backup", "0 3 * * *", "zone=Europe%2FBerlin"), "SCHEDULED %d" % (BEGIN + 7200))
            equal(a.ask("list-tubes"), "OK 14|---\n- default\n")
            equal(a.numbers("stats")["current-jobs-delayed"], "0")
            equal(a.jobs("list-delayed"), [])
            a.ask("advance 7199")
            equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")
            a.send("reserve\r\n")
            with server.client() as b:
                b.until_waiting()
                b.ask("advance 1")
            answer = a.answer()
            equal(key_of(a, answer), "backup@2060-03-27T02:00:00Z")
            equal(a.ask("delete " + answer.split()[1]), "DELETED")
            one, = a.jobs("list-schedules")
            equal((one["name"], one["cron"], one["zone"], one["next"], one["made"], one["tube"]),
                  ("backup", "0 3 * * *", "Europe/Berlin", str(BEGIN + 25 * 3600), 1, "default"))
            server.stop()
        matches("^0 jobs in 0 tubes: 0 delayed, 0 ready, 0 buried; 1 schedule$", alone.run(0, "fsck", "data").out)
        # What was missed is made up for once.
        with Server("--data", "data", "--clock", "virtual:%d" % (ahead + 80 * 3600)) as server, server.client() as a:
            answer = a.ask("reserve-with-timeout 0")
            equal(key_of(a, answer), "backup@2060-03-28T01:00:00Z")
            equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")

    def test_each_verb(self):
        with Server("--clock", "virtual", "--http", "127.0.0.1:0") as server, server.client() as a:
            start(a)
            conversation(a, ("use mail", "USING mail"))
            equal(schedule(a, "n%20m", "0 * * * *", "overlap=skip missed=all attempts=3 backoff=5"), "SCHEDULED %d" % (BEGIN + 3600))
            equal(schedule(a, "n%20m", "0 4 * * *", "mode=if-absent"), "KEPT %d" % (BEGIN + 4 * 3600))
            conversation(a, ("run-schedule n%20m", "INSERTED 2"), ("pause-schedule n%20m", "PAUSED"), ("pause-schedule n%20m", "PAUSED"),
                         ("pause-schedule other", "NOT_FOUND"), ("run-schedule other", "NOT_FOUND"), ("delete-schedule other", "NOT_FOUND"))
            one, = a.jobs("list-schedules tube=mail name=n%20m body=yes")
            equal((one["next"], one["paused"], one["missed"], one["overlap"], one["attempts"], one["backoff"], base64.b64decode(one["body"])),
                  (None, True, "all", "skip", 3, 5, b"x"))
            conversation(a, ("list-schedules tube=other", "OK 0|"), ("list-schedules name=other", "NOT_FOUND"),
                         ("resume-schedule n%20m", "RESUMED"), ("advance 3600", "ADVANCED %d" % (BEGIN + 3600)))
            equal(a.numbers("stats-tube mail")["current-jobs-ready"], "2")
            assert "weekwheeld_schedules_made_total 1" in server.metrics(), server.metrics()
            conversation(a, ("delete-schedule n%20m", "DELETED"), ("list-schedules", "OK 0|"))

    def test_refusals(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            equal(schedule(a, "a", "0 25 * * *"), "BAD_SCHEDULE cron 2 '25' is not a valid hour: expected 0 to 23 or *")
            assert schedule(a, "a", "0 3 * * *", "zone=Nowhere").startswith("BAD_SCHEDULE zone 0 there is no such zone")
            for name, why in (("a" * 151, "the name of a schedule has 1 to 150 bytes"),
                              ("a%09b", "the name of a schedule has no control characters"),
                              ("a%C2%85b", "the name of a schedule has no control characters")):
                equal(schedule(a, name, "@daily"), "BAD_SCHEDULE name 0 " + why)
            for words in ("a", "a cron=", "a cron=%00", "a cron=%40daily overlap=no", "a cron=%40daily paused=no", "- cron=%40daily"):
                a.send("put-schedule 0 0 60 1 %s\r\nx\r\n" % words)
                equal(a.line(), "BAD_FORMAT")
            # What a schedule is kept in is not shown, nor deleted like a job.
            equal(schedule(a, "a", "@daily"), "SCHEDULED %d" % (int(a.ask("advance 0").split()[1]) // 86400 * 86400 + 86400))
            conversation(a, ("peek 1", "NOT_FOUND"), ("stats-job 1", "NOT_FOUND"), ("delete 1", "NOT_FOUND"), ("list-delayed id=1", "OK 0|"),
                         ("reserve-job 1", "NOT_FOUND"), ("kick-job 1", "NOT_FOUND"), ("move 1 5", "NOT_FOUND"),
                         ("list-delayed", "OK 0|"), ("delete-schedule a", "DELETED"))
            conversation(a, ("use -schedules", "BAD_FORMAT"), ("watch -schedules", "BAD_FORMAT"), ("list-schedules x", "BAD_FORMAT"), ("list-schedules", "OK 0|"))


class Draining(Stores, Case):
    def test_no_job_of_a_schedule(self):
        with self.server("--data", "data", "--clock", "virtual") as server, Web(server, self.token) as web, server.client() as a:
            ahead = start(a)
            equal(schedule(a, "s", "0 * * * *"), "SCHEDULED %d" % (BEGIN + 3600))
            equal(schedule(a, "left", "0 * * * *", "missed=skip"), "SCHEDULED %d" % (BEGIN + 3600))
            server.process.send_signal(signal.SIGUSR1)
            a.until_stats("draining", "true")
            equal(a.ask("run-schedule s"), "DRAINING")
            equal(server.program.run(1, "schedule", "run", "s", WEEKWHEEL_TOKEN=self.token).out, "")
            web.refused(503, None, "POST", "tubes/default/schedules/s/run")
            # A time passes, and another. The rest of a schedule may change.
            conversation(a, ("advance 7200", "ADVANCED %d" % (BEGIN + 7200)), ("reserve-with-timeout 0", "TIMED_OUT"),
                         ("pause-schedule s", "PAUSED"), ("resume-schedule s", "RESUMED"), ("advance 3600", "ADVANCED %d" % (BEGIN + 10800)),
                         ("reserve-with-timeout 0", "TIMED_OUT"))
            equal([one["made"] for one in a.jobs("list-schedules")], [0, 0])
            server.stop()
        # The times are made up for after the restart, as missed says.
        with Server("--data", "data", "--clock", "virtual:%d" % (ahead + 10900)) as server, server.client() as a:
            equal(key_of(a, a.ask("reserve-with-timeout 0")), "s@2060-03-27T03:00:00Z")
            equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")


class Command(Case):
    def test_schedule(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            start(a)
            ww = server.program
            out = ww.run(0, "schedule", "add", "backup", "0 3 * * *", "--tz", "Europe/Berlin", "--tube", "nightly").out
            equal(out, "backup: next at 2060-03-27 03:00:00+01:00, in 2 h\n")
            ww.run(0, "schedule", "add", "my report", "*/5 9-17 * * mon-fri", "hello", "--overlap", "skip", "--paused")
            rows = ww.run(0, "schedule", "list").out.splitlines()
            assert re.match(r"backup +nightly +0 3 \* \* \* +Europe/Berlin +2060-03-27 03:00:00\+01:00 +-", rows[1]), rows
            assert re.match(r"my report +default .* paused +- +0 +0$", rows[2]), rows
            shown = ww.run(0, "schedule", "show", "backup", "--tube", "nightly").out
            matches("^run +1 min$", shown)
            equal(ww.run(0, "schedule", "show", "my report", "--body").out, "hello")
            ww.run(2, "schedule", "show", "my report", "--body", "--json")
            ww.run(2, "schedule", "list", "--body")
            assert "  Sat  2060-03-27 03:00:00 +01:00\n  Sun  2060-03-28 03:00:00 +02:00\n" in shown, shown
            equal(ww.run(0, "schedule", "run", "my report").out, "my report: job 3 is put\n")
            equal(ww.run(0, "schedule", "resume", "my report").out, "my report: resumed\n")
            # A new one in the place of another says so, and whether the other was paused; one without a body is odd.
            matches("empty body", ww.run(0, "schedule", "add", "e", "@daily").err)
            again = ww.run(0, "schedule", "add", "e", "@daily", "", "--paused")
            matches("^e: replaced, paused$", again.out)
            equal(again.err, "")
            matches("^e: replaced, no longer paused, next at ", ww.run(0, "schedule", "add", "e", "@daily", "b").out)
            equal(objects(ww.run(0, "schedule", "add", "e", "@daily", "b", "--json").out),
                  [{"result": "replaced", "next": "2060-03-28T00:00:00.000Z"}])
            equal(schedule(a, "e", "0 4 * * *"), "SCHEDULED %d replaced" % (BEGIN + 4 * 3600))
            # One that would never run takes nobody's place.
            for words, why in ((("--start", "2099-01-01", "--end", "2098-01-01"), "--start is after --end"),
                               (("--end", "2050-01-01"), "--end 2050-01-01 00:00:00.* is in the past")):
                matches(why, ww.run(2, "schedule", "add", "e", "@daily", "b", *words).err)
            equal(a.jobs("list-schedules name=e")[0]["next"], str(BEGIN + 4 * 3600))
            equal(ww.run(0, "schedule", "add", "e", "0 0 1 1 *", "b", "--end", "2060-12-01").out, "e: replaced, no next time\n")
            ww.run(0, "schedule", "remove", "e")
            matches("no tube nigthly: nobody uses", ww.run(1, "schedule", "list", "--tube", "nigthly").err)
            matches("expected a time such as '2026-12-01 09:00', or one from now",
                    ww.run(2, "schedule", "add", "x", "@daily", "--start", "tomorrow").err)
            equal(ww.run(0, "schedule", "pause", "my report").out, "my report: paused\n")
            equal(ww.run(0, "schedule", "remove", "my report").out, "my report: removed\n")
            ww.run(0, "schedule", "add", "fair", "@hourly", "--group", "ada b", "--tube", "fair")
            matches("^group +ada b$", ww.run(0, "schedule", "show", "fair", "--tube", "fair").out)
            equal([s.get("group") for s in objects(ww.run(0, "schedule", "list", "--json").out)], [None, "ada b"])
            ww.run(0, "schedule", "run", "fair", "--tube", "fair")
            equal(a.jobs("list-delayed tube=fair")[0]["group"], "ada%20b")
            ww.run(0, "schedule", "remove", "fair", "--tube", "fair")
            # All that it was added with is shown.
            ww.run(0, "schedule", "add", "all", "@daily", "x\x01" + 70 * "y", "--missed", "skip", "--skip", "10m", "--keep", "7d", "--group", "g",
                   "--backoff", "5s", "--start", "2060-04-01", "--end", "2060-05-01", "--tz", "Europe/Berlin")
            shown = ww.run(0, "schedule", "show", "all").out
            for line in ("skip +10 min", "keep +7 d", "group +g", "backoff +5 s", r"start +2060-04-01 02:00:00\+02:00",
                         r"end +2060-05-01 02:00:00\+02:00", r"body +x\?y{58} \.\.\. \(--body writes all\)", "length +72 bytes"):
                matches("^%s$" % line, shown)
            equal(objects(ww.run(0, "schedule", "show", "all", "--json").out)[0]["keep"], 7 * 86400)
            equal([s["keep"] for s in objects(ww.run(0, "schedule", "list", "--tube", "default", "--json").out)], [7 * 86400])
            ww.run(0, "schedule", "remove", "all")
            assert "there is no schedule 'my report' in the tube default" in ww.run(1, "schedule", "remove", "my report").err
            err = ww.run(2, "schedule", "add", "x", "0 25 * * *").err
            equal(err, "weekwheel: schedule: '25' is not a valid hour: expected 0 to 23 or *\n  0 25 * * *\n    ^\n")
            for words in (("add", "x"), ("add",), ("sing",), (), ("list", "x"), ("add", "x", "@daily", "--missed", "no"), ("add", "x", "@daily", "--skip", "1h")):
                ww.run(2, "schedule", *words)


# ---- Servers that are killed

class Worker(threading.Thread):
    """Takes all jobs. A job comes again if its worker's server is killed, but with its id."""

    def __init__(self, servers):
        super().__init__(daemon=True)
        self.servers, self.ids, self.is_over = servers, {}, False

    def work(self, client):
        """Do what there is, for a second."""
        while not self.is_over:
            answer = client.ask("reserve-with-timeout 1")
            if not answer.startswith("RESERVED"):
                return
            number = int(answer.split()[1])
            self.ids.setdefault(key_of(client, answer), set()).add(number)
            client.ask("delete %d" % number)

    def run(self):
        while not self.is_over:
            for server in list(self.servers):
                try:
                    with server.client() as client:
                        self.work(client)
                except (OSError, EOFError):
                    pass


def stamp(moment):
    """A time as the keys of jobs have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def all_keys(names, begin, end):
    """The keys of the jobs that schedules make for each second."""
    return {"%s@%s" % (name, stamp(moment)) for name in names for moment in range(begin, end)}


class Kills(Case):
    def test_two_servers_on_one_redis(self):
        draw = random.Random(seed())
        names = ["s%d" % i for i in range(8)]
        with Redis() as redis:
            servers = [redis.server(), redis.server()]
            try:
                with servers[0].client() as a:
                    for name in names:
                        assert schedule(a, name, "* * * * * *", "missed=all").startswith("SCHEDULED")
                begin = int(time.time()) + 2
                worker = Worker(servers)
                worker.start()
                while time.time() < begin + 7:
                    time.sleep(draw.uniform(0.3, 0.9))
                    # Mostly at the second, where the work is.
                    time.sleep(1 - time.time() % 1 + draw.uniform(0, 0.02))
                    victim = draw.randrange(2)
                    servers[victim].stop(signal.SIGKILL)
                    servers[victim] = redis.server()
                end = int(time.time())
                # Each second has its job. Any of them may come late: a lease that a killed server had ends after some seconds.
                wanted = all_keys(names, begin, end)
                try:
                    until(lambda: worker.ids.keys() >= wanted, "a job of each second", 0.05)
                except AssertionError:
                    equal(sorted(wanted - worker.ids.keys()), [])
                    raise
                worker.is_over = True
                worker.join(20)
                # No second has two.
                equal({key: found for key, found in worker.ids.items() if len(found) > 1}, {})
            finally:
                for server in servers:
                    server.stop(signal.SIGKILL)


if __name__ == "__main__":
    main()
