#!/usr/bin/env python3
"""/v1/events: what becomes of jobs, as it happens."""
# tier: check, threads
import contextlib
import http.client
import signal

from harness import Case, check, equal, main, matches, until
from web import ByRedis, Events, Stores, Web, token_of


class All:
    """What every store has."""

    def test_the_life_of_a_job(self):
        with self.server() as server, Web(server, self.token) as web, Events(server, self.token) as events, \
                server.client() as a:
            equal(events.begun["lost"], False)
            made = web.good("POST", "jobs", {"tube": "mail", "key": "user ä", "body": "x", "delay": 60})
            name, data = events.next()
            matches(r"^20\d\d-\d\d-\d\dT[\d:.]+Z$", data.pop("time"))
            left = data.pop("left")
            check(59 < left <= 60, left)
            equal((name, data), ("put", {"tube": "mail", "id": made["id"], "key": "user ä", "version": 1}))
            # By the protocol, too.
            equal(a.ask("kick-job " + made["id"]), "KICKED")
            equal(self.known(events)[0], "kicked")
            a.ask("watch mail")
            matches("RESERVED", a.ask("reserve"))
            name, data = self.known(events)
            equal((name, data["tube"], data["key"], data["attempt"]), ("started", "mail", "user ä", 1))
            equal(a.ask("release %s 0 0" % made["id"]), "RELEASED")
            name, data = self.known(events)
            equal((name, data["tube"], data["key"]), ("released", "mail", "user ä"))
            lease, = web.good("POST", "leases", {"tubes": ["mail"]})["leases"]
            web.good("POST", "jobs/%s/bury" % made["id"], {"token": lease["token"], "error": 'no "<way>"'})
            name, data = self.known(events, 2)
            equal((name, data["tube"], data["error"]), ("buried", "mail", 'no "<way>"'))
            web.good("POST", "tubes/mail/kick")
            lease, = web.good("POST", "leases", {"tubes": ["mail"]})["leases"]
            web.good("POST", "jobs/%s/finish" % made["id"], {"token": lease["token"]})
            equal(self.known(events, 3)[0], "finished")
            web.good("PUT", "tubes/mail/keys/k", {"body": "x", "delay": 60})
            web.good("DELETE", "tubes/mail/keys/k")
            name, data = self.known(events, 2)
            equal((name, data["key"]), ("cancelled", "k"))

    def known(self, events, count=1):
        """The last of the next ones; over Redis, messages that tubes may have ready jobs come between them."""
        while count > 0:
            name, data = events.next()
            count -= "id" in data or "key" in data or name == "kicked"
        return name, data

    def test_a_schedule(self):
        with self.server() as server, Web(server, self.token) as web, Events(server, self.token, "?tube=mail") as events:
            web.good("PUT", "tubes/other/schedules/n", {"cron": "@daily"})
            web.good("PUT", "tubes/mail/schedules/n%20m", {"cron": "@daily"})
            name, data = events.next()
            del data["time"]
            equal((name, data), ("schedule", {"tube": "mail", "name": "n m", "version": 1, "removed": False}))
            web.good("DELETE", "tubes/mail/schedules/n%20m")
            equal(events.next()[1]["removed"], True)

    def test_whose_events(self):
        with self.server() as server, Web(server, self.token) as web, contextlib.ExitStack() as stack:
            def read(token, query=""):
                return stack.enter_context(Events(server, token, query))

            every, some, reader = read(self.token), read(self.token, "?tube=a,mail&tube=b"), read(self.reader)
            for tube in ("a", "b", "c", "mail"):
                web.good("POST", "jobs", {"tube": tube, "delay": 1000})
            equal([each.next()[1]["tube"] for each in (every,) * 4], ["a", "b", "c", "mail"])
            equal([each.next()[1]["tube"] for each in (some,) * 3], ["a", "b", "mail"])
            equal(reader.next()[1]["tube"], "mail")
            for status, field, token, query in ((401, None, None, ""), (403, "tube", self.reader, "?tube=mail,a"),
                                                (403, None, self.mailer, ""), (400, "tube", self.token, "?tube=,"),
                                                (400, "tube", self.token, "?tube=a%20b"), (400, "x", self.token, "?x=1")):
                refused = read(token, query)
                equal((refused.status, refused.problem.get("field")), (status, field), refused.problem)

    def test_who_comes_back_misses_nothing(self):
        with self.server() as server, Web(server, self.token) as web:
            with Events(server, self.token) as events:
                web.good("POST", "jobs", {"body": "1", "delay": 1000})
                equal(events.next()[1]["id"], web.good("GET", "jobs")["jobs"][0]["id"])
                last = events.last
            ids = [web.good("POST", "jobs", {"body": "x", "delay": 1000})["id"] for _ in range(5)]
            with Events(server, self.token, last=last) as events:
                equal(events.begun["lost"], False)
                equal([events.next()[1]["id"] for _ in ids], ids)
                equal(events.last.rsplit("-", 1)[1], "6")
            for wrong in ("x", last.rsplit("-", 1)[0] + "-7", "0123456789abcdef-1"):
                with Events(server, self.token, last=wrong) as events:
                    equal(events.begun["lost"], True, wrong)
            # The ring has 4,096.
            for _ in range(5):
                web.good("POST", "jobs", [{"body": "x", "delay": 1000}] * 1000)
            with Events(server, self.token, last=last) as events:
                equal(events.begun["lost"], True)


class Embedded(All):
    def test_times(self):
        with self.server("--clock", "virtual") as server, Web(server, self.token) as web, server.client() as a, \
                Events(server, self.token) as events:
            web.good("POST", "jobs", {"body": "x", "delay": 10, "run": 5, "attempts": 2})
            a.ask("advance 10")
            web.good("POST", "leases", {})
            a.ask("advance 5")
            web.good("POST", "leases", {})
            a.ask("advance 5")
            equal(events.names(6), ["put", "due", "started", "timed-out", "started", "buried"])


class InMemory(Embedded, Stores, Case):
    def test_streams_are_bounded(self):
        with self.server() as server, Web(server, self.token) as web, contextlib.ExitStack() as stack:
            streams = [stack.enter_context(Events(server, self.token)) for _ in range(16)]
            one_more = Events(server, self.token)
            equal(one_more.status, 503)
            one_more.__exit__()
            streams.pop().__exit__()

            # Whoever has gone makes room for who comes.
            def is_let_in():
                with Events(server, self.token) as events:
                    return events.status == 200

            until(is_let_in, "a place is free")
            web.good("POST", "jobs", {"body": "x"})
            equal({each.next()[0] for each in streams}, {"put"})

    def test_a_slow_reader_is_ended(self):
        with self.server() as server, Web(server, self.token) as web, Events(server, self.token) as quick, \
                Events(server, self.token, room=4096) as slow:
            for n in range(30):
                web.good("POST", "jobs", [{"key": "%d/%d/" % (n, i) + "k" * 180, "delay": 1000} for i in range(1000)])
                equal(quick.names(1000), ["put"] * 1000)
            names = []
            with contextlib.suppress(ConnectionError):
                while slow.next():
                    names.append(0)
            check(0 < len(names) < 30000, len(names))
            matches("weekwheeld_events_overtaken_total 1$", web.text("/metrics"))
            # It comes back.
            with Events(server, self.token, last=slow.last) as events:
                equal(events.begun["lost"], True)
            server.stop()
            matches("readers of /v1/events are too slow", server.said)

    def test_a_stream_without_events_beats(self):
        """Otherwise a proxy on the way would take it for dead."""
        with self.server() as server, Events(server, self.token) as events:
            while not (line := events.answer.readline()).startswith(b":"):
                check(line == b"\n", line)

    def test_a_token_that_has_changed(self):
        with self.server() as server, Web(server, self.token) as web, Events(server, self.reader) as events:
            token_of("another", "read:*")
            server.process.send_signal(signal.SIGHUP)
            equal(events.next(), None)
            with Events(server, self.reader, last=events.last) as events:
                web.good("POST", "jobs", {"tube": "mail", "body": "x"})
                equal(events.next()[0], "put")

    def test_the_end(self):
        with self.server() as server, Events(server, self.token) as events:
            server.stop()
            with contextlib.suppress(ConnectionError, http.client.IncompleteRead):
                equal(events.next(), None)


class OnDisk(Embedded, Stores, Case):
    arguments = ("--data", "jobs")


class InRedis(All, ByRedis, Case):
    def test_jobs_that_may_be_ready(self):
        with self.server() as server, Web(server, self.token) as web, Events(server, self.token) as events:
            web.good("POST", "leases", {"tubes": ["mail"]})
            web.good("POST", "jobs", {"tube": "mail", "body": "x", "delay": 0.2})
            equal(events.next()[0], "put")
            name, data = events.next()
            equal((name, data["tube"], "id" in data), ("due", "mail", False))

    def test_the_end_of_a_server_that_knows_a_lease(self):
        with self.server() as server, Web(server, self.token) as web, Events(server, self.token) as events:
            web.good("POST", "jobs", {"tube": "mail", "body": "x"})
            web.good("POST", "leases", {"tubes": ["mail"]})
            while events.next()[0] != "started":
                pass
            equal(server.stop(), 0)


main()
