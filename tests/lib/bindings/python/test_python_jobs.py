#!/usr/bin/env python3
"""The client of jobs of the Python package, for threads and for asyncio: verbs, leases, workers, tokens, TLS, and servers
that refuse, break and come back. A server on a virtual clock makes the time."""
# tier: check
import asyncio
import datetime
import hashlib
import inspect
import logging
import os
import re
import shutil
import signal
import socket
import ssl
import threading
import unittest
import warnings
from unittest import mock

import binding
from harness import PATIENCE, Beanstalkd, Case, Server, check, equal, free_port, lack, main, run, until

from weekwheel import jobs
from weekwheel.jobs import AsyncClient, AsyncWorker, Client, Worker

logging.getLogger("weekwheel.jobs").addHandler(logging.NullHandler())


class WithServer(Case):
    """A test has a server whose clock stands still, and a client."""

    def setUp(self):
        super().setUp()
        self.server = Server("--clock", "virtual")
        self.addCleanup(self.server.__exit__)
        self.client = Client(self.server.address)
        self.addCleanup(self.client.close)

    def refuses(self, kind, call, *arguments, **options):
        with self.assertRaises(kind) as raised:
            call(*arguments, **options)
        return raised.exception


class Verbs(WithServer):
    def test_a_job_is_put_reserved_and_deleted(self):
        client = self.client
        put = client.put(b"\r\n\0 body")
        equal((put.outcome, put.is_put, put.version), ("inserted", True, None))
        equal(client.peek(put.id), b"\r\n\0 body")
        with client.reserve() as job:
            equal((job.id, job.body), (put.id, b"\r\n\0 body"))
            equal(job.stats()["state"], "reserved")
        check(job.is_finished, "deleted")
        equal(client.reserve(0), None)
        self.refuses(jobs.NotFound, client.peek, put.id)

    def test_defaults_are_those_of_the_other_clients(self):
        for id in (self.client.put("x").id, self.client.put("x", key="k").id):
            stats = self.client.stats_job(id)
            equal((stats["pri"], stats["ttr"], stats["delay"]), (1024, 60, 0))
        self.client.put_schedule("s", "0 3 * * *")
        equal(self.client.stats_job(self.client.run_schedule("s"))["pri"], 1024)

    def test_delays_and_times(self):
        client = self.client
        client.put("half", delay=0.5)
        client.put("three", delay=datetime.timedelta(seconds=3))
        now = client.advance(0)
        client.put("at", at=now + 2.25)
        client.put("date", at=datetime.datetime.fromtimestamp(now + 2.5, datetime.timezone.utc))
        equal(client.forecast(1, 4), [1, 0, 2, 1])
        taken = []
        for step in (0.4, 0.1, 1.75, 0.25, 0.5):
            client.advance(step)
            with client.reserve(0) or Nothing() as job:
                taken.append(job.text)
        equal(taken, ["", "half", "at", "date", "three"])

    def test_keys(self):
        client = self.client
        first = client.put("one", key="a b/%\0ä", delay=9)
        equal(client.put("two", key="a b/%\0ä", delay=9), jobs.Put(first.id, "replaced", None))
        equal(client.peek_key("a b/%\0ä"), (first.id, b"two"))
        equal(client.put("x", key="a b/%\0ä", mode="if-absent"), jobs.Put(first.id, "kept", 2))
        equal(client.stats_key("a b/%\0ä")["state"], "delayed")
        self.refuses(jobs.Stale, client.put, "x", key="a b/%\0ä", version=1)
        self.refuses(jobs.Stale, client.move_key, "a b/%\0ä", 5, version=1)
        equal(client.move_key("a b/%\0ä", 5), 3)
        equal(client.move(first.id, at=client.advance(0) + 100), 4)
        equal(client.jobs(id=first.id)[0]["left"], 100)
        self.refuses(jobs.Stale, client.delete_key, "a b/%\0ä", version=1)
        check(client.delete_key("a b/%\0ä"), "nobody runs it")
        self.refuses(jobs.NotFound, client.delete_key, "a b/%\0ä")
        client.put("minus", key="-", delay=0, spread=0.001)
        equal(client.peek_key("-")[1], b"minus")
        job = client.reserve(0)
        check(not client.delete_key(b"-"), "it runs")
        self.refuses(jobs.NotFound, job.delete)

    def test_headers_travel_with_a_job(self):
        client, trace = self.client, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        put = client.put("body", headers={"Traceparent": trace, "empty": ""})
        with client.reserve(0) as job:
            equal((job.text, job.headers), ("body", {"traceparent": trace, "empty": ""}))
            equal((client.peek(put.id), client.peek_next("ready")), (b"body", None))
            job.release(delay=0)
        with client.reserve_job(put.id) as job:
            equal((job.text, job.headers), ("body", {"traceparent": trace, "empty": ""}))
        client.put("none", headers={})
        with client.reserve(0) as job:
            equal((job.text, job.headers), ("none", {}))
        for bad in ({"a b": "x"}, {"a": "x\r\ny"}, {"a": " x"}, {"": "x"}, {"a": "é"}, {"a": "x\n"}):
            with self.assertRaises(ValueError):
                client.put("x", headers=bad)

    def test_a_client_takes_what_it_knows(self):
        put = self.client.put("new", code=12)
        equal(self.client.jobs(id=put.id)[0]["code"], 12)
        with jobs.Client(self.server.address, code=11) as old:
            equal(old.reserve(0), None)
        with jobs.Client(self.server.address, code=12) as new, new.reserve(0) as job:
            equal((job.id, job.text), (put.id, "new"))
        for bad in (-1, 1 << 31):
            with self.assertRaises(ValueError):
                jobs.Client(code=bad)

    def test_a_job_follows_another(self):
        client, then = self.client, {"tube": "after", "body": "n\u00e4chster", "then": {"tube": "last"}}
        client.put("first", headers={"a": "b"}, then=then)
        equal(client.jobs()[0]["then"], then)
        with client.reserve(0) as job:
            equal((job.text, job.headers), ("first", {"a": "b"}))
        equal([(job["tube"], job["then"]) for job in client.jobs()], [("after", {"tube": "last"})])
        client.put("x", then={})
        with self.assertRaises(jobs.Refused):
            client.put("x", then={"tub": "after"})

    def test_lists_have_names_as_they_were_given(self):
        client = self.client
        odd = {"key": "ключ 50%/é", "group": "grün"}
        put = client.put(b"\0\xff", tube="123", keep=60, delay=5, expire=600, expired="bury", **odd)
        client.put("x", tube="123", key=b"\xff", delay=5)
        client.put_schedule("nächtlich", "0 3 * * *", group="grün", tube="123")
        client.limit("123", running=1, group="grün")
        listed, not_text = client.jobs(tube="123", prefix="ключ")[0], client.jobs(tube="123", prefix=b"\xff")[0]
        equal((listed["key"], listed["expire"], listed["expired"]), (odd["key"], 600, "bury"))
        client.move_key(listed["key"], 6, tube=listed["tube"])
        client.move_key(not_text["key"], 7, tube="123")
        equal(client.jobs(id=put.id, bodies=True)[0]["body"], b"\0\xff")
        schedule = client.schedules(tube="123")[0]
        equal((schedule["name"], schedule["group"]), ("nächtlich", "grün"))
        client.pause_schedule(schedule["name"], tube="123")
        equal(client.limits()[0]["group"], "grün")
        equal((client.stats_tube("123")["name"], client.stats_job(put.id)["tube"]), ("123", "123"))
        client.reserve_job(put.id).delete()
        equal(client.history(tube="123")[0]["key"], odd["key"])

    def test_modes_of_keys(self):
        client = self.client
        unique = client.put("x", key="u", unique=10)
        equal((client.put("y", key="u", unique=10).outcome, unique.version), ("kept", 1))
        client.reserve(0).delete()
        ended = client.put("z", key="u", unique=10)
        equal((ended.outcome, ended.is_put), ("ended", False))
        client.put("x", key="d", delay=5, debounce=8)
        client.advance(4)
        client.put("y", key="d", delay=5, debounce=8)
        equal(client.jobs(prefix="d")[0]["left"], 4)
        client.put("late", key="k", delay=50)
        equal(client.put("later", key="k", delay=60, mode="keep-earlier").outcome, "kept")
        equal(client.put("later", key="k", delay=60, mode="keep-later").outcome, "replaced")

    def test_a_job_that_fails_waits_for_its_backoff_and_is_buried_at_last(self):
        client = self.client
        client.put("x", attempts=2, backoff=10, priority=7, tube="work")
        with self.assertRaises(ZeroDivisionError):
            with client.reserve(0, tubes=["work"]):
                1 / 0
        one = client.jobs(tube="work")[0]
        equal((one["state"], one["error"], one["priority"]), ("delayed", "ZeroDivisionError: division by zero", 7))
        client.advance(10)
        job = client.reserve(0, tubes=["work"])
        equal(job.release(error="again"), False)
        equal(client.jobs(tube="work", states=["buried"])[0]["error"], "again")
        equal(client.kick(5, tube="work"), 1)
        client.reserve(0, tubes=["work"]).bury(error="-")
        equal(client.peek_next("buried", tube="work")[1], b"x")
        client.kick_job(job.id)
        job = client.reserve_job(job.id)
        equal(job.release(delay=1.5), True)
        equal(client.jobs(id=job.id)[0]["left"], 1.5)
        equal(client.peek_next("ready", tube="work"), None)

    def test_repeats_reports_and_history(self):
        client = self.client
        client.put("x", key="daily", every=86400, keep=10**6, missed="all")
        for number in range(3):
            with client.reserve(0) as job:
                job.report(f"run {number}")
            client.advance(86400)
        runs = client.history(reports=True)
        equal([(run["outcome"], run["report"]) for run in runs],
              [("finished", b"run 2"), ("finished", b"run 1"), ("finished", b"run 0")])
        equal(len(client.history(limit=2, id=job.id)), 2)

    def test_lists_of_any_length(self):
        for number in range(1203):
            self.client.put(str(number), tube="many")
        listed = self.client.jobs(tube="many", bodies=True)
        equal([job["body"] for job in listed], [str(number).encode() for number in range(1203)])
        equal(len(self.client.jobs(tube="many", limit=7)), 7)
        equal(self.client.jobs(tube="none"), [])
        now = self.client.advance(0)
        self.client.put("x", at=now + 100)
        equal(len(self.client.jobs(start=now + 99, end=now + 101)), 1)

    def test_limits_pauses_and_numbers(self):
        client = self.client
        client.limit("mail", running=1, starts=10, per=2, burst=3)
        client.limit("mail", running=2, group="g", weight=4)
        client.limit("mail", running=3, each=True)
        equal(sorted((one["running"], one["weight"]) for one in client.limits(tube="mail")), [(1, 1), (2, 4), (3, 1)])
        client.put("x", tube="mail")
        client.put("y", tube="mail", group="g")
        check(client.reserve(0, tubes=["mail"]), "one runs")
        equal(client.reserve(0), None)
        client.limit("mail")
        client.pause("mail", 60)
        equal(client.stats_tube("mail")["pause"], 60)
        equal(client.reserve(0, tubes=["mail"]), None)
        client.pause("mail", 0)
        check(client.reserve(0, tubes=["mail"]), "the other")
        equal((client.stats()["current-jobs-reserved"], sorted(client.tubes())), (2, ["default", "mail"]))

    def test_schedules(self):
        client = self.client
        at = client.put_schedule("backup", "0 3 * * *", "all", zone="UTC", tube="nightly", spread=0.5, keep=60,
                                 expire=90)
        check(at % 86400 == 3 * 3600 or at % 86400 <= 3 * 3600 + 1, at)
        one = client.schedules(schedule="backup", tube="nightly", bodies=True)[0]
        equal((one["cron"], one["body"], len(one["times"]), one["expire"]), ("0 3 * * *", b"all", 10, 90))
        client.put_schedule("backup", "@daily", tube="nightly", if_absent=True)
        equal(client.schedules()[0]["cron"], "0 3 * * *")
        client.pause_schedule("backup", tube="nightly")
        client.resume_schedule("backup", tube="nightly")
        equal(client.peek(client.run_schedule("backup", tube="nightly")), b"all")
        error = self.refuses(jobs.BadSchedule, client.put_schedule, "x", "0 3 * * x")
        equal((error.field, error.at), ("cron", 8))
        check(error.reason and "cron is wrong at byte 8" in str(error), error)
        client.delete_schedule("backup", tube="nightly")
        self.refuses(jobs.NotFound, client.run_schedule, "backup", tube="nightly")

    def test_each_tube_is_the_one_that_is_named(self):
        client = Client(self.server.address, tube="own")
        client.put("1")
        client.put("2", tube="other")
        client.put("3")
        equal([client.stats_tube(tube)["current-jobs-ready"] for tube in ("own", "other")], [2, 1])
        equal([client.reserve(0, tubes=tubes).text for tubes in (["other"], None, ["default", "own"])], ["2", "1", "3"])
        for tube in ("", "-a", "a b", "a\r\nput 0 0 1 1", "x" * 201, "ä"):
            self.refuses(ValueError, client.put, "x", tube=tube)
            self.refuses(ValueError, client.reserve, 0, tubes=[tube])
            self.refuses(ValueError, Client, tube=tube)
        self.refuses(ValueError, client.reserve, 0, tubes=[])
        equal(client.put("4").outcome, "inserted")
        client.close()

    def test_refusals_have_the_servers_word_and_a_remedy(self):
        error = self.refuses(jobs.NotFound, self.client.delete, 99)
        equal(error.answer, "NOT_FOUND")
        equal(str(error), "delete 99: there is none, or another connection has it reserved (NOT_FOUND)")
        error = self.refuses(jobs.TooBig, self.client.put, "x" * 70000)
        check("--max-job-size" in str(error), error)
        self.refuses(jobs.BadFormat, self.client.kick, -1)
        self.refuses(ValueError, self.client.put, "x", delay=-1)
        check("timedelta" in str(self.refuses(TypeError, self.client.put, "x", delay="10m")), "a remedy")
        check("json" in str(self.refuses(TypeError, self.client.put, {"a": 1})), "a remedy")
        check("key=" in str(self.refuses(ValueError, self.client.put, "x", debounce=5)), "a remedy")
        equal(self.client.put("the connection goes on").outcome, "inserted")
        with self.client.reserve(0) as job:
            self.refuses(jobs.Reserved, self.client.move, job.id, 5)

    def test_what_would_be_read_otherwise_is_not_sent(self):
        client = self.client
        kept = client.put("kept").id
        body = f"delete {kept}\r\ndelete {kept}"
        for kind, options in ((ValueError, {"key": "ä" * 400}), (ValueError, {"group": "g" * 2100}), (ValueError, {"priority": -1}),
                              (TypeError, {"priority": 1.5}), (TypeError, {"priority": "0"}), (ValueError, {"priority": 2**32}),
                              (ValueError, {"key": "k", "mode": f"replace\r\n\r\ndelete {kept}"})):
            self.refuses(kind, client.put, body, **options)
        self.refuses(ValueError, client.put_schedule, "x" * 2100, "@daily", body)
        for call in (client.delete, client.move, client.kick_job, client.peek, client.reserve_job, client.stats_job):
            self.refuses(ValueError, call, f"99\r\ndelete {kept}")
        self.refuses(ValueError, client.jobs, states=[f"ready\r\ndelete {kept}"])
        equal(client.put("x", key="ä" * 100, group="ä" * 100, delay=5).outcome, "inserted")
        with client.reserve(0) as job:
            equal(job.text, "kept")
            for end in (job.release, job.bury):
                self.refuses(ValueError, end, error="x", priority=f"0 - -\r\ndelete {kept}")

    def test_an_expired_lease_and_a_deadline(self):
        self.client.put("x", ttr=5)
        job = self.client.reserve(0)
        self.client.advance(4.5)
        error = self.refuses(jobs.DeadlineSoon, self.client.reserve, 5)
        check("DEADLINE_SOON" in str(error), error)
        job.touch()
        self.client.advance(4)
        equal(job.stats()["state"], "reserved")
        self.client.advance(2)
        equal(job.stats()["state"], "ready")
        self.refuses(jobs.NotFound, job.release)
        check(not job.is_finished, "it was not released")

    def test_both_clients_have_the_same_methods(self):
        def methods(kind):
            return {name: list(inspect.signature(method).parameters) for name, method in vars(kind).items()
                    if callable(method) and not name.startswith("_")}

        asynchronous = methods(AsyncClient)
        del asynchronous["another"]
        equal(asynchronous, methods(Client))
        equal(methods(jobs.AsyncJob), methods(jobs.Job))


class Nothing:
    """Instead of a job."""
    text = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Connections(WithServer):
    def test_a_lease_ends_with_its_connection(self):
        self.client.put("x")
        job = self.client.reserve(0)
        self.client.close()
        self.refuses(jobs.LeaseLost, job.delete)
        again = self.client.reserve(5)
        self.refuses(jobs.LeaseLost, job.delete)
        again.delete()

    def test_a_server_that_goes_and_comes_back(self):
        port = free_port()
        client = Client(f"127.0.0.1:{port}")
        check("Start weekwheeld there" in str(self.refuses(jobs.ConnectionLost, client.put, "x")), "it is not there")
        for _ in range(2):
            with listening(port):
                equal(client.put("x", tube="t").id, 1)
            check("may have been carried out" in str(self.refuses(jobs.ConnectionLost, client.put, "z")), "it is gone")
            self.refuses(jobs.ConnectionLost, client.put, "z")

    def test_one_that_does_not_answer_and_one_that_is_no_server_of_jobs(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            client = Client("127.0.0.1:%d" % silent.getsockname()[1], timeout=0.05)
            self.refuses(jobs.ConnectionLost, client.stats)
            check(client._file is None, "an answer may still come: the connection is closed")
            threading.Thread(target=lambda: talk(silent), daemon=True).start()
            client = Client("127.0.0.1:%d" % silent.getsockname()[1])
            check("no server of jobs" in str(self.refuses(jobs.JobsError, client.stats)), "it says OK HTTP")

    def test_threads_share_a_client(self):
        def work(number):
            for i in range(100):
                self.client.put(f"{number} {i}", tube="t%d" % number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(4):
            equal([job["body"] for job in self.client.jobs(tube="t%d" % number, bodies=True)],
                  [f"{number} {i}".encode() for i in range(100)])

    def test_a_child_has_a_connection_of_its_own(self):
        self.client.put("x")
        job = self.client.reserve(0)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                try:
                    job.delete()
                except jobs.LeaseLost:
                    status = 0 if self.client.put("of the child").id == 2 else 2
            finally:
                os._exit(status)
        equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        job.delete()

    def test_a_child_need_not_wait_for_a_thread_of_its_parent(self):
        thread = threading.Thread(target=self.client.reserve)
        thread.start()
        with Client(self.server.address) as other:
            until(lambda: other.stats()["current-waiting"] == 1, "the thread waits")
            child = os.fork()
            if child == 0:
                signal.alarm(PATIENCE)
                os._exit(0 if self.client.put("x", tube="child").id == 1 else 1)
            equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            other.put("end")
        thread.join()

    def test_a_handler_of_a_signal_does_not_take_an_answer(self):
        heard = []

        def handler(*_):
            with self.assertRaises(RuntimeError):
                self.client.put("x")
            heard.append(True)
            with Client(self.server.address) as other:
                other.put("of the handler")

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, handler))
        with Client(self.server.address) as other:
            main_thread = threading.get_ident()

            def interrupt():
                until(lambda: other.stats()["current-waiting"] == 1, "it waits")
                signal.pthread_kill(main_thread, signal.SIGUSR1)

            thread = threading.Thread(target=interrupt)
            thread.start()
            equal(self.client.reserve().text, "of the handler")
            thread.join()
        equal(heard, [True])

    def test_addresses(self):
        from weekwheel.jobs.address import Address
        for text, host, port, path, tls in (
                ("a.b:1", "a.b", 1, "", False), ("[::1]:11300", "::1", 11300, "", False),
                ("tls:a:2", "a", 2, "", True), ("tls:[::1]:2", "::1", 2, "", True), ("unix:/a:b", "", 0, "/a:b", False)):
            equal(Address.of(text), Address(text, host, port, path, tls))
        for text in ("a", ":1", "a:b", "http://a:1/", "a:123456"):
            self.refuses(ValueError, Client, text)
        os.environ["WEEKWHEEL_SERVER"] = "there:1"
        equal(Client().address.host, "there")
        del os.environ["WEEKWHEEL_SERVER"]
        equal(Client().address.text, "127.0.0.1:11300")

    def test_a_machine_that_is_gone_is_heard_of(self):
        async def asynchronous():
            async with AsyncClient(self.server.address) as client:
                await client.stats()
                return options(client._streams[1].get_extra_info("socket"))

        def options(connection):
            return [connection.getsockopt(*option) for option in ((socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                                                                   (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE))]

        self.client.stats()
        equal([options(self.client._socket), asyncio.run(asynchronous())], [[1, 60], [1, 60]])

    def test_a_socket_of_unix(self):
        with Server("--unix", self.folder + "/socket") as _, Client(f"unix:{self.folder}/socket") as client:
            equal(client.put("x").id, 1)
            asyncio.run(self.async_unix())

    async def async_unix(self):
        async with AsyncClient(f"unix:{self.folder}/socket") as client:
            equal(await client.peek(1), b"x")

    def test_tokens(self):
        token = "the-token-of-a-mailer"
        with open("tokens", "w", encoding="ascii") as file:
            file.write("mailer sha256:%s work:mail put:mail\n" % hashlib.sha256(token.encode()).hexdigest())
        os.chmod("tokens", 0o600)
        with Server("--auth-file", "tokens") as server:
            with Client(server.address, tube="mail", token=token) as client:
                client.put("x")
                client.reserve(0).delete()
                check("--auth-file" in str(self.refuses(jobs.Denied, client.put, "x", tube="other")), "a remedy")
                equal(client.put("y").outcome, "inserted")
                client.close()
                client.reserve(0, tubes=["mail"]).delete()
            with Client(server.address, tube="mail") as client:
                self.refuses(jobs.Denied, client.put, "x")
            with Client(server.address, token="x" * 16) as client:
                check("the token" in str(self.refuses(jobs.Denied, client.stats)), "it is wrong")
            os.environ["WEEKWHEEL_TOKEN"] = token
            try:
                with Client(server.address, tube="mail") as client:
                    client.put("x")
            finally:
                del os.environ["WEEKWHEEL_TOKEN"]
            self.refuses(ValueError, Client, token="a b")
            asyncio.run(self.async_token(server.address, token))

    async def async_token(self, address, token):
        async with AsyncClient(address, tube="mail", token=token) as client:
            check(await client.put("x"), "put")
        async with AsyncClient(address, token="x" * 16) as client:
            with self.assertRaises(jobs.Denied):
                await client.stats()

    @unittest.skipUnless(shutil.which("openssl"), lack("openssl"))
    def test_tls(self):
        run(0, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "30", "-subj", "/CN=server", "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out",
            "cert.pem")
        with Server("--listen", "tls:127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem") as server:
            line = ""
            while "listening on tls:" not in line:
                line = server.process.stderr.readline()
            address = f"tls:localhost:{re.search(r':([0-9]+)$', line.strip()).group(1)}"
            with Client(address, tls=ssl.create_default_context(cafile="cert.pem")) as client:
                client.put("x" * 60000)
                equal(len(client.reserve(0).body), 60000)
            with Client(address) as client:
                check("certificate" in str(self.refuses(jobs.ConnectionLost, client.stats)), "it is not known")
            os.environ["WEEKWHEEL_TLS_CA"] = "cert.pem"
            try:
                with Client(address) as client:
                    client.put("y")
                asyncio.run(self.async_tls(address))
            finally:
                del os.environ["WEEKWHEEL_TLS_CA"]

    async def async_tls(self, address):
        async with AsyncClient(address) as client:
            equal((await client.put("z")).outcome, "inserted")

    def test_beanstalkd(self):
        with Beanstalkd() as server, Client(f"127.0.0.1:{server.port}") as client:
            equal(client.put("put 0 0 1 1", tube="a").outcome, "inserted")
            for call in (lambda: client.put("delete 1", key="k"), lambda: client.put("delete 1", delay=0.5),
                         lambda: client.put_schedule("x", "@daily", "delete 1")):
                self.refuses(jobs.Unsupported, call)
            equal(client.peek(1), b"put 0 0 1 1")
            with self.assertRaises(ValueError):
                with client.reserve(0, tubes=["a"]):
                    raise ValueError
            job = client.reserve(0)
            equal(job, None)
            client.reserve(0, tubes=["a"]).bury(error="it does not take reasons")
            equal(client.kick(1, tube="a"), 1)
            with client.reserve(0, tubes=["a"]) as job:
                equal(job.text, "put 0 0 1 1")


def listening(port):
    """A server on this port, too."""
    server = Server("--listen", f"127.0.0.1:{port}")
    while f"127.0.0.1:{port}" not in server.said:
        server.said += server.process.stderr.readline()
    return server


def talk(server):
    """Answer as something else would."""
    for _ in range(3):
        connection = server.accept()[0]
        with connection:
            if connection.recv(100):
                connection.sendall(b"OK HTTP\r\n")


class Played:
    """A server that answers each line as a test wants, with a text or nothing. `lines` are what it heard."""

    def __init__(self, answer):
        self.lines, self.answer = [], answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.talk, args=(client,), daemon=True).start()

    def talk(self, client):
        with client, client.makefile("r", newline="") as file:
            for line in file:
                self.lines.append(line.rstrip("\r\n"))
                said = "HEADERS" if line == "headers\r\n" else self.answer(self.lines[-1])
                if said:
                    client.sendall(said.encode() + b"\r\n")


class Refusals(unittest.TestCase):
    def test_a_job_whose_tube_is_refused_is_put_nowhere(self):
        server = Played(lambda line: "OUT_OF_MEMORY" if line == "use full" else line.replace("use", "USING") if line[:4] == "use "
                        else "INSERTED 1" if line[:4] == "put " else None)
        with Client(server.address) as client:
            client.put("x", tube="good")
            with self.assertRaises(jobs.Full):
                client.put("x", tube="full")
            client.put("x", tube="good")
            with self.assertRaises(jobs.Full):
                client.put("x", tube="full")
        equal([line for line in server.lines if line[:3] in ("use", "put")],
              ["use good", "put 1024 0 60 1", "use full", "put 1024 0 60 1", "use full"])

    def test_a_worker_goes_on_when_the_server_has_failed_for_a_while(self):
        answers = iter(["INTERNAL_ERROR", "OUT_OF_MEMORY", "RESERVED 1 1\r\nx"])

        def answer(line):
            if line.startswith(("watch", "ignore")):
                return "WATCHING 1"
            return next(answers) if line.startswith("reserve") else "DELETED" if line.startswith("delete") else None

        done = []

        def handle(job):
            done.append(job.text)
            worker.stop()

        worker = Worker(Client(Played(answer).address), handle, tubes=["t"])
        worker.run()
        equal(done, ["x"])


class Workers(WithServer):
    def test_a_job_without_a_backoff_waits_all_the_same(self):
        failures = []

        def handle(job):
            failures.append(job.text)
            raise ValueError(job.text)

        self.client.put("its own", tube="t", backoff=30)
        self.client.put("none", tube="t")
        equal(Worker(self.client, handle, tubes=["t"]).run(drain=True), 0)
        equal(failures, ["its own", "none"])
        left = {job["body"]: job["left"] for job in self.client.jobs(tube="t", bodies=True)}
        check(20 < left[b"its own"] <= 30 and 0 < left[b"none"] <= 1, left)

    def test_a_job_without_a_limit_is_buried_after_so_many_failures(self):
        def fail(job):
            raise ValueError(job.text)

        self.client.put("its own", tube="t", attempts=3, backoff=1)
        self.client.put("none", tube="t")
        for attempts, passed in ((3, 0), (3, 1), (2, 2)):
            self.client.advance(passed)
            equal(Worker(self.client, fail, tubes=["t"], attempts=attempts).run(drain=True), 0)
            equal([job["body"] for job in self.client.jobs(tube="t", states=["buried"], bodies=True)],
                  [b"its own", b"none"][-passed:] if passed == 2 else [])

    def test_a_job_that_is_put_again_while_it_runs_is_done_again(self):
        done = []

        def handle(job):
            done.append(job.text)
            if job.text != "third":
                self.client.put("second" if job.text == "first" else "third", key="k", tube="t")
            if job.text == "second":
                raise jobs.Bury("never")

        self.client.put("first", key="k", tube="t")
        equal(Worker(self.client, handle, tubes=["t"]).run(drain=True), 2)
        equal(done, ["first", "second", "third"])
        equal(list(self.client.jobs(tube="t")), [])

    def test_a_worker_says_how_each_job_ended(self):
        done = []

        def handle(job):
            done.append(job.text)
            if job.text == "fails":
                raise ValueError("no such address")
            if job.text == "bury":
                raise jobs.Bury("never")
            if job.text == "itself":
                job.release(delay=9)

        for text in ("good", "fails", "bury", "itself"):
            self.client.put(text, tube="t", attempts=3, backoff=60)
        equal(Worker(self.client, handle, tubes=["t"]).run(drain=True), 2)
        equal(done, ["good", "fails", "bury", "itself"])
        listed = {job["body"]: (job["state"], job["error"]) for job in self.client.jobs(tube="t", bodies=True)}
        equal(listed, {b"fails": ("delayed", "ValueError: no such address"), b"bury": ("buried", "never"),
                       b"itself": ("delayed", "")})

    def test_a_reason_may_be_any_text(self):
        def fail(_job):
            raise ValueError("no \0 file \udcff")

        def bury(_job):
            raise jobs.Bury("\udcff")

        for handle, reason in ((fail, "ValueError: no   file \\udcff"), (bury, "\\udcff")):
            put = self.client.put("x")
            with self.assertLogs("weekwheel.jobs") if handle == fail else Nothing():
                equal(Worker(self.client, handle).run(drain=True), 0)
            equal(self.client.jobs(id=put.id)[0]["error"], reason)
        with self.assertRaises(ValueError):
            with self.client.reserve_job(put.id) as job:
                fail(job)
        check("udcff" in self.client.jobs(id=put.id)[0]["error"], "it is released")

    def test_an_interrupt_gives_the_job_back_and_ends_the_worker(self):
        def handle(_job):
            raise KeyboardInterrupt

        self.client.put("x")
        with self.assertRaises(KeyboardInterrupt):
            Worker(self.client, handle).run()
        equal(self.client.jobs()[0]["state"], "ready")

    def test_a_worker_connects_again_and_stops(self):
        port, done = free_port(), []
        worker = Worker(Client(f"127.0.0.1:{port}"), lambda job: done.append(job.text))
        thread = threading.Thread(target=worker.run)
        for text in ("before", "after"):
            with listening(port) as server, Client(server.address) as client:
                client.put(text)
                if not thread.is_alive():
                    thread.start()
                until(lambda: client.stats()["cmd-delete"] == 1, "it works")
        worker.stop()
        thread.join()
        equal(done, ["before", "after"])


class Loops(WithServer):
    def test_a_client_goes_on_in_another_event_loop(self):
        client = AsyncClient(self.server.address)
        jobs_of = []

        async def twice():
            await asyncio.gather(*(client.put("x", tube="t") for _ in range(3)))
            jobs_of.append(await client.reserve(0, tubes=["t"]))

        for _ in range(3):
            with warnings.catch_warnings(action="ignore", category=ResourceWarning):  # nobody has closed it
                asyncio.run(twice())
        until(lambda: self.client.stats()["current-connections"] == 2, "those of former loops are closed")
        with self.assertRaises(jobs.LeaseLost):
            asyncio.run(jobs_of[0].delete())

        async def while_another_runs():
            await client.stats()
            with self.assertRaises(RuntimeError):
                await asyncio.to_thread(lambda: asyncio.run(client.stats()))
            await client.stats()
            await client.close()

        asyncio.run(while_another_runs())


class Asynchronous(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.server = Server("--clock", "virtual")
        self.client = AsyncClient(self.server.address)

    async def asyncTearDown(self):
        await self.client.close()
        self.server.__exit__()

    async def test_verbs(self):
        client = self.client
        put = await client.put("x", key="k", delay=5)
        await client.advance(5)
        async with await client.reserve() as job:
            equal((job.id, job.text, (await job.stats())["state"]), (put.id, "x", "reserved"))
        equal(await client.reserve(0), None)
        with self.assertRaises(jobs.NotFound):
            await client.delete(put.id)
        await client.put("[1]", tube="a", attempts=2)
        with self.assertRaises(ZeroDivisionError):
            async with await client.reserve(0, tubes=["a"]) as job:
                1 / 0
        job = await client.reserve(0)
        equal(job, None)
        job = await client.reserve(0, tubes=["a"])
        equal(job.json(), [1])
        await job.touch()
        await job.report("x")
        equal(await job.release(error="x"), False)
        await (await client.reserve_job(job.id)).bury(error="y")
        equal((await client.jobs(tube="a"))[0]["error"], "y")

    async def test_a_cancelled_reserve_closes_the_connection_and_loses_no_job(self):
        task = asyncio.create_task(self.client.reserve())
        async with AsyncClient(self.server.address) as other:
            while (await other.stats())["current-waiting"] != 1:
                pass
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await other.put("x")
            equal((await self.client.stats())["current-jobs-ready"], 1, "the answer is that of this command")
            equal((await self.client.reserve(5)).text, "x")

    async def test_a_lease_ends_with_its_connection(self):
        await self.client.put("x")
        job = await self.client.reserve(0)
        await self.client.close()
        with self.assertRaises(jobs.LeaseLost):
            await job.delete()

    async def test_tasks_share_a_client(self):
        puts = await asyncio.gather(*(self.client.put(str(i), tube="t%d" % (i % 3)) for i in range(100)))
        equal(sorted(put.id for put in puts), list(range(1, 101)))
        for i in range(3):
            equal(len(await self.client.jobs(tube="t%d" % i)), 34 if i == 0 else 33)

    async def test_workers_work_at_once_and_stop(self):
        at_once, most, done = 0, 0, []
        full = asyncio.Event()

        async def handle(job):
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            if at_once == 4:
                full.set()
            await full.wait()
            at_once -= 1
            done.append(job.text)
            if job.text == "3":
                raise jobs.Bury("never")
            if len(done) == 20:
                worker.stop()

        for i in range(20):
            await self.client.put(str(i))
        worker = AsyncWorker(self.client, handle, concurrency=4)
        equal(await asyncio.wait_for(worker.run(), PATIENCE), 19)
        equal((most, len(done)), (4, 20))
        equal((await self.client.stats())["current-jobs-buried"], 1)
        await self.client.put("last")
        full.set()
        equal(await AsyncWorker(self.client, handle, concurrency=2).run(drain=True), 1)

    async def test_a_handler_may_be_a_plain_function(self):
        done = []
        await self.client.put("x")
        equal(await AsyncWorker(self.client, lambda job: done.append(job.text)).run(drain=True), 1)
        equal((done, await self.client.jobs()), (["x"], []))
        for kind in (AsyncWorker, Worker):
            with self.assertRaises(TypeError):
                kind(self.client, None)
        with self.assertRaises(ValueError):
            AsyncWorker(self.client, print, concurrency=0)

    async def test_a_cancelled_worker_gives_its_job_back(self):
        begun = asyncio.Event()

        async def handle(_job):
            begun.set()
            await asyncio.sleep(PATIENCE)

        await self.client.put("x")
        task = asyncio.create_task(AsyncWorker(self.client, handle).run())
        await begun.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        equal((await self.client.jobs())[0]["state"], "ready")

    async def test_a_cancellation_loses_no_job_that_has_just_come(self):
        await self.client.put("x")
        reserve = self.client.reserve

        async def late(*arguments, **options):
            job = await reserve(*arguments, **options)
            asyncio.get_running_loop().call_soon(task.cancel)
            return job

        self.client.reserve = late
        # One of the tasks of run, which cancels them a turn later.
        task = asyncio.create_task(AsyncWorker(self.client, lambda _job: self.fail("it was cancelled"))._work(self.client, False))
        with self.assertRaises(asyncio.CancelledError):
            await task
        equal((await self.client.jobs())[0]["state"], "ready")

    async def test_a_worker_that_is_refused_raises_what_the_server_says(self):
        for worker in (AsyncWorker(self.client, print, tubes=["a b"]), AsyncWorker(self.client, print, tubes=["a b"], concurrency=3)):
            with self.assertRaises(ValueError):
                await worker.run()

    async def test_a_worker_stops_while_its_server_is_away(self):
        worker = AsyncWorker(AsyncClient(f"127.0.0.1:{free_port()}"), print)
        with mock.patch("weekwheel.jobs.aio.FIRST_PAUSE", 2 * PATIENCE), self.assertLogs("weekwheel.jobs") as logs:
            task = asyncio.create_task(worker.run())
            while not logs.records:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            worker.stop()
            equal(await asyncio.wait_for(task, PATIENCE), 0)

    async def test_a_server_that_does_not_answer(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            client = AsyncClient("127.0.0.1:%d" % silent.getsockname()[1], timeout=0.05)
            # On a busy machine, not even to the attempt to connect.
            with self.assertRaisesRegex(jobs.ConnectionLost, "no answer came in time"):
                await client.stats()

    async def test_a_server_that_is_not_there_or_goes(self):
        client = AsyncClient(f"127.0.0.1:{free_port()}")
        with self.assertRaises(jobs.ConnectionLost):
            await client.stats()
        await self.client.put("x")
        self.server.stop()
        with self.assertRaisesRegex(jobs.ConnectionLost, "the server closed it|reset"):
            await self.client.put("y")


if __name__ == "__main__":
    main()
