#!/usr/bin/env python3
"""HTTP: whatever its clients do, a health check gets in, and it tells what is so."""
# tier: check
import contextlib
import http.client
import json
import re
import select
import signal
import socket
import unittest

from harness import PATIENCE, Case, Redis, Server, check, descriptors, equal, main, matches, need_redis, until


def http_port(server):
    return int(re.search(r"serving http://[0-9.]+:(\d+)/", server.said).group(1))


def connect(server, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", http_port(server)), PATIENCE, (source, 0))


def health(server, path="/readyz"):
    status, text = server.get(path + "?format=json")
    return status, json.loads(text)


def is_well(server):
    """Behind the first line may be what slows it down."""
    status, text = server.get("/healthz")
    equal((status, text.splitlines()[0]), (200, "ok"))


class Places(Case):
    """There are 1,024, and 512 for an address."""

    @classmethod
    def setUpClass(cls):
        if descriptors(9000) < 9000:
            raise unittest.SkipTest("skipped: fewer places, as the limit of open files (ulimit -Hn) is below 9000")

    def test_slow_clients_take_no_place_away(self):
        with Server("--http", "127.0.0.1:0") as server, contextlib.ExitStack() as stack:
            for number in range(700):
                client = stack.enter_context(connect(server))
                client.send((b"", b"G", b"GET /met", b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: ")[number % 4])
                if number % 100 == 99:
                    is_well(server)
                    assert "weekwheeld_connections 0" in server.metrics()
            equal(server.stop(), 0)
        matches("warning: HTTP has no place left", server.said)
        equal(server.said.count("HTTP has no place left"), 1)

    def test_clients_that_do_not_read(self):
        """Their answers are larger than what the sockets take."""
        with Server("--http", "127.0.0.1:0") as server, server.client() as a, contextlib.ExitStack() as stack:
            for _ in range(100):
                a.put(60000 * b"x", delay=1000)
            for _ in range(80):
                client = stack.enter_context(connect(server))
                client.send(b"GET /v1/jobs?limit=100&body=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
            is_well(server)
            equal(server.stop(), 0)

    def test_clients_that_do_not_read_leave_the_store_to_others(self):
        with Server("--http", "127.0.0.1:0") as server, server.client() as a, contextlib.ExitStack() as stack:
            for _ in range(100):
                a.put(60000 * b"x", delay=1000)
            for _ in range(8):
                client = stack.enter_context(connect(server))
                client.send(b"GET /v1/jobs?limit=100&body=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
                equal(client.recv(12), b"HTTP/1.1 200")
            status, text = server.get("/v1/jobs?limit=1")
            equal((status, text.count('"id"')), (200, 1))
            equal(server.stop(), 0)

    def test_an_address_does_not_take_the_places_of_others(self):
        with Server("--http", "127.0.0.1:0") as server, contextlib.ExitStack() as stack:
            first = stack.enter_context(connect(server, "127.0.0.3"))
            for _ in range(1200):
                stack.enter_context(connect(server, "127.0.0.2"))
            is_well(server)
            first.send(b"GET /livez HTTP/1.0\r\n\r\n")
            matches(r"HTTP/1.[01] 200 ", first.recv(1000).decode())


    def test_a_connection_serves_many_requests(self):
        with Server("--http", "127.0.0.1:0") as server, connect(server) as client:
            web = http.client.HTTPConnection("127.0.0.1", http_port(server))
            web.sock = client
            for path in ("/", "/page.css", "/livez", "/readyz", "/metrics", "/list", "/nothing", "/v1/stats") * 2:
                web.request("GET", path)
                answer = web.getresponse()
                answer.read()
                equal((path, answer.getheader("Connection")), (path, None))
            equal(web.sock, client)


class Health(Case):
    def test_ready_and_alive(self):
        with Server("--http", "127.0.0.1:0") as server, server.client() as a:
            for path in ("/livez", "/readyz", "/healthz"):
                equal(server.get(path), (200, "ok\n"))
                equal(server.get(path, "HEAD"), (200, ""))
            equal(health(server), (200, {"ready": True, "reads": True, "writes": True, "reasons": [], "nodes": []}))
            server.process.send_signal(signal.SIGUSR1)
            until(lambda: a.put() == "DRAINING", "it drains")
            for path in ("/readyz", "/healthz"):
                status, text = server.get(path)
                equal((status, text), (503, "not ready: jobs cannot be written:\ndraining: jobs are no longer accepted\n"))
                status, told = health(server, path)
                equal((status, told["ready"], told["reads"], told["writes"]), (503, False, True, False))
                equal(told["reasons"], ["draining: jobs are no longer accepted"])
            equal(server.get("/livez"), (200, "ok\n"))

    def test_redis_that_is_silent(self):
        """Health asks nobody, so it does not wait for a node that hangs."""
        need_redis()
        with Redis() as redis, redis.server("--http", "127.0.0.1:0", "--redis-timeout", "0.5") as server:
            status, told = health(server)
            equal((status, told["ready"], len(told["nodes"])), (200, True, 1))
            equal((told["nodes"][0]["state"], told["nodes"][0]["reads"], told["nodes"][0]["writes"]), ("serves", True, True))
            redis.process.send_signal(signal.SIGSTOP)
            try:
                until(lambda: health(server)[0] == 503, "it is found out")
                status, told = health(server)
                equal((told["reads"], told["writes"], told["nodes"][0]["writes"]), (False, False, False))
                matches("^node .* shards cannot be read or written", told["reasons"][0])
                equal(server.get("/livez"), (200, "ok\n"))
            finally:
                redis.process.send_signal(signal.SIGCONT)
            until(lambda: server.get("/readyz") == (200, "ok\n"), "it is back")

    def test_the_loop_does_not_wait_for_redis(self):
        """While Redis hangs, lists and metrics wait alone, and only so many of the latter."""
        need_redis()
        with Redis() as redis, redis.server("--http", "127.0.0.1:0", "--redis-timeout", "60") as server, \
                server.client() as a, contextlib.ExitStack() as stack:
            a.put()
            redis.process.send_signal(signal.SIGSTOP)
            try:
                asked = [stack.enter_context(connect(server)) for _ in range(8)]
                for number, client in enumerate(asked):
                    client.send(b"GET /%s HTTP/1.0\r\n\r\n" % (b"v1/jobs", b"metrics")[number % 2])
                status, text = server.get("/metrics")
                equal(status, 503)
                matches("try again", text)
                equal(server.get("/livez"), (200, "ok\n"))
                equal(server.get("/readyz")[0] in (200, 503), True)
                equal(a.ask("use t"), "USING t")
                equal(select.select(asked, [], [], 0)[0], [])
            finally:
                redis.process.send_signal(signal.SIGCONT)
            for client in asked:
                matches(r"^HTTP/1.[01] 200 ", client.recv(1000).decode())
            equal(server.stop(), 0)

    def test_an_end_while_redis_hangs(self):
        need_redis()
        with Redis() as redis, redis.server("--http", "127.0.0.1:0", "--redis-timeout", "1") as server, \
                connect(server) as client:
            redis.process.send_signal(signal.SIGSTOP)
            try:
                client.send(b"GET /v1/jobs HTTP/1.0\r\n\r\n")
                equal(server.get("/livez"), (200, "ok\n"))
                server.stop()
                equal(server.process.returncode in (0, 1), True, server.said)
            finally:
                redis.process.send_signal(signal.SIGCONT)


class Counts(Case):
    def test_tubes_and_run_time(self):
        with Server("--http", "127.0.0.1:0", "--clock", "virtual") as server, server.client() as a:
            equal(a.ask("watch x"), "WATCHING 2")
            for _ in range(4):
                a.put(tube="x")
            for how in ("delete %d", "release %d 0 0", "bury %d 0", "delete %d"):
                number = a.ask("reserve").split()[1]
                a.ask("advance 2")
                a.ask(how % int(number))
            found = server.metrics()
            for name, count in (("put", 4), ("delivered", 4), ("done", 2), ("failed", 1), ("buried", 1)):
                assert 'weekwheeld_tube_%s_total{tube="x"} %d' % (name, count) in found, name
                assert 'weekwheeld_tube_%s_total{tube="-others"} 0' % name in found, name
            for line in ('_bucket{le="1"} 0', '_bucket{le="2.5"} 4', '_bucket{le="+Inf"} 4', "_count 4"):
                assert "weekwheeld_job_run_seconds" + line in found, line
            equal(server.stop(), 0)

    def test_the_week_to_come_and_what_the_workers_can_do(self):
        with Server("--http", "127.0.0.1:0", "--clock", "virtual") as server, server.client() as a:
            def pace():
                found = [line for line in server.metrics() if line.startswith("weekwheeld_pace_per_second ")]
                equal(json.loads(server.get("/v1/forecast")[1])["pace"], float(found[0].split()[1]))
                return "%.3f" % float(found[0].split()[1])

            def work(jobs):
                for _ in range(jobs):
                    a.put()
                    equal(a.ask("delete " + a.ask("reserve").split()[1]), "DELETED")

            for hour in (0, 3, 3, 167):
                a.put(delay=3600 * hour + 1)
            found = server.metrics()
            for hour, count in ((0, 1), (1, 0), (3, 2), (167, 1)):
                assert 'weekwheeld_forecast_jobs{hours="%d"} %d' % (hour, count) in found, hour
            equal(pace(), "0.000")
            # One in a minute is enough for 60 in an hour, and not for 61.
            work(1)
            rate = json.loads(server.get("/v1/forecast")[1])["pace"]
            check(60 / 3600 / rate <= 1 < 61 / 3600 / rate, rate)
            # The fullest minute counts, for a day.
            work(29)
            a.ask("advance 60")
            work(6)
            equal(pace(), "0.500")
            a.ask("advance %d" % (22 * 3600))
            equal(pace(), "0.500")
            a.ask("advance %d" % (3 * 3600))
            equal(pace(), "0.000")
            work(12)
            equal(pace(), "0.200")
            equal(server.stop(), 0)

    def test_tubes_beyond_the_bound(self):
        with Server("--http", "127.0.0.1:0") as server, server.client() as a:
            for number in range(1003):
                a.put(tube="t%d" % number)
            a.put(tube="t7")
            found = server.metrics()
            equal(sum(line.startswith("weekwheeld_tube_put_total{") for line in found), 1001)
            assert 'weekwheeld_tube_put_total{tube="t7"} 2' in found
            assert 'weekwheeld_tube_put_total{tube="-others"} 3' in found
            equal(sum(line.startswith("weekwheeld_tube_jobs{") for line in found), 4 * 1001)
            assert 'weekwheeld_tube_jobs{tube="-others",state="ready"} 3' in found
            equal(server.stop(), 0)


main()
