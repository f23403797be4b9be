#!/usr/bin/env python3
"""What one client may take of the server: its share of a turn, after which the others come, and memory."""
# tier: check
import contextlib
import os
import random
import re
import select
import signal
import socket

from harness import Case, Client, Redis, Server, check, equal, main, matches, need_redis, seed, stopped, until
from web import Web, token_of

MANY = 20000


def http_port(server):
    return int(re.search(r"serving http://[0-9.]+:(\d+)/", server.said).group(1))


def pipeline(client, lines, window=500):
    """The answers to many commands."""
    answers = []
    for first in range(0, len(lines), window):
        client.send("".join(line + "\r\n" for line in lines[first:first + window]))
        answers += [client.answer() for _ in lines[first:first + window]]
    return answers


class Shares(Case):
    """Each test ends a client's long work only after another client was answered."""

    def setUp(self):
        super().setUp()
        server = self.enterContext(Server())
        self.server, self.heavy, self.light = server, server.client(), server.client()
        for client in (self.heavy, self.light):
            self.addCleanup(client.close)

    def asked_meanwhile(self, heavy, line, before=0):
        """What the light client is answered to a line that comes behind what the heavy client does, and some of its own."""
        with stopped(self.server):
            heavy()
            self.light.send("list-tube-used\r\n" * before + line + "\r\n")
        for _ in range(before):
            self.light.answer()
        answer = self.light.answer()
        return dict(entry.split(": ", 1) for entry in answer.split("---\n", 1)[1].splitlines())

    def test_pipelined_commands(self):
        found = self.asked_meanwhile(lambda: self.heavy.send("list-tube-used\r\n" * 5000), "stats")
        # A share has 1,000 at most, and "stats" is short: it does not wait for a turn with time.
        check(int(found["cmd-list-tube-used"]) <= 1000, found)
        equal({self.heavy.answer() for _ in range(5000)}, {"USING default"})

    def test_many_who_reserve_from_many_tubes(self):
        heavy = [self.server.client() for _ in range(30)]
        for client in heavy:
            self.addCleanup(client.close)
            pipeline(client, ["watch tube-%d" % number for number in range(5000)], 5000)
        # One of them waits, so that all others have to wait for the end of the turn.
        heavy[0].send("reserve\r\n")
        self.light.until_waiting()
        with stopped(self.server):
            for client in heavy[1:]:
                client.send("reserve-with-timeout 0\r\n" * 20)
        for client in heavy[1:20]:
            equal({client.answer() for _ in range(20)}, {"TIMED_OUT"})
        # Some of them leave while they wait for their turn.
        for client in heavy[20:]:
            client.close()
        self.light.put(b"x", tube="tube-7")
        equal(heavy[0].answer(), "RESERVED 1 1|x")

    def test_a_kick(self):
        pipeline(self.heavy, ["put 0 3600 60 1\r\nx"] * MANY)
        found = self.asked_meanwhile(lambda: self.heavy.send("kick %d\r\nlist-tube-used\r\n" % (2 * MANY)),
                                     "stats-tube default")
        check(int(found["current-jobs-ready"]) < MANY, found)
        equal(self.heavy.answer(), "KICKED %d" % MANY)
        equal(self.heavy.answer(), "USING default")

    def test_a_kick_of_buried_jobs_leaves_delayed_ones(self):
        for number in range(1, 301):
            self.heavy.put()
            equal(self.heavy.ask("reserve-job %d" % number), "RESERVED %d 1|x" % number)
            equal(self.heavy.ask("bury %d 0" % number), "BURIED")
        self.heavy.put(delay=3600)
        equal(self.heavy.ask("kick 200"), "KICKED 200")
        equal(self.heavy.ask("kick 200"), "KICKED 100")
        equal(self.heavy.ask("kick 200"), "KICKED 1")
        equal(self.heavy.ask("kick 200"), "KICKED 0")

    def test_the_end_of_a_client_with_many_jobs(self):
        pipeline(self.light, ["put 0 0 60 1\r\nx"] * MANY)
        pipeline(self.heavy, ["reserve"] * MANY)
        found = self.asked_meanwhile(self.heavy.close, "stats-tube default", 1001)
        check(0 < int(found["current-jobs-reserved"]) < MANY, found)
        self.light.until_stats("current-jobs-ready", MANY)

    def test_the_end_of_a_client_that_watches_many_tubes(self):
        pipeline(self.heavy, ["watch tube-%d" % number for number in range(MANY)])
        found = self.asked_meanwhile(self.heavy.close, "stats", 1001)
        check(1 < int(found["current-tubes"]) < MANY, found)
        self.light.until_stats("current-tubes", 1)

    def test_a_server_that_ends_finishes_what_closed_clients_left(self):
        pipeline(self.light, ["put 0 0 60 1\r\nx"] * MANY)
        pipeline(self.heavy, ["reserve"] * MANY)
        with stopped(self.server):
            self.heavy.close()
            self.server.process.send_signal(signal.SIGTERM)
        equal(self.server.process.wait(), 0)


class Leases(Case):
    def test_the_first_of_many_to_end_is_known(self):
        random.seed(seed())
        with Server("--clock", "virtual") as server, server.client() as client:
            ends, now = {}, 0
            for number in range(1, 101):
                length = random.randrange(100, 10000)
                client.put(ttr=length)
                client.ask("reserve")
                ends[number] = length
            while ends:
                first = min(ends, key=ends.get)
                # With some more than a second left it is not said, and with less it is.
                if ends[first] - now > 2:
                    client.ask("advance %d" % (ends[first] - 2 - now))
                    now = ends[first] - 2
                    equal(client.ask("reserve-with-timeout 0"), "TIMED_OUT")
                client.ask("advance %d" % (ends[first] - 1 - now))
                now = ends[first] - 1
                equal(client.ask("reserve-with-timeout 0"), "DEADLINE_SOON")
                for number in [number for number in ends if ends[number] == ends[first]]:
                    equal(client.ask("delete %d" % number), "DELETED")
                    del ends[number]
                if ends and random.random() < 0.3:
                    other = random.choice(list(ends))
                    if ends[other] > now + 3:
                        equal(client.ask("delete %d" % other), "DELETED")
                        del ends[other]


class Bounds(Case):
    def server(self, *arguments):
        server = self.enterContext(Server("--http", "127.0.0.1:0", *arguments))
        client = server.client()
        self.addCleanup(client.close)
        return server, client

    def number(self, server, name):
        return next(int(line.split()[1]) for line in server.metrics() if line.startswith("weekwheeld_" + name + " "))

    def peak(self, server, most, what):
        """The memory of the process was never more than so many KB; a sanitizer keeps what is freed."""
        with open("/proc/%d/status" % server.process.pid, encoding="ascii") as file:
            used = int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1))
        check(used < most or os.environ.get("SANITIZE"), "%s: %d KB" % (what, used))

    def test_clients_that_read_nothing_share_the_buffers(self):
        server, light = self.server("--max-buffers", "8388608")
        light.put(b"x" * 60000)
        heavy = [server.client() for _ in range(20)]
        for client in heavy:
            self.addCleanup(client.close)
            client.send("peek 1\r\n" * 1000)
        until(lambda: self.number(server, "buffer_bytes") > 5 << 20, "they take most of it")
        check(self.number(server, "buffer_bytes") <= 8 << 20, "not more")
        # One that reads is answered, and so is each of the others once it reads.
        equal(light.ask("peek 1"), "FOUND 1 60000|" + "x" * 60000)
        for client in heavy[:3]:
            equal({client.answer() for _ in range(1000)}, {"FOUND 1 60000|" + "x" * 60000})

    def test_the_longest_body_is_dropped(self):
        server, light = self.server("--max-buffers", "4194304", "--max-job-size", "8000000")
        with server.client() as heavy:
            heavy.send(b"put 0 0 60 6000000\r\n" + b"x" * 6000000 + b"\r\nlist-tube-used\r\n")
            equal(light.put(b"y" * 1000000), "INSERTED 1")
            equal(heavy.answer(), "OUT_OF_MEMORY")
            equal(heavy.answer(), "USING default")
        equal(self.number(server, "bound_clients_ended_total"), 1)
        server.stop()
        matches("--max-buffers allows: the client with the most, .* loses them", server.said)

    def test_an_answer_beyond_the_buffers_ends_its_client(self):
        server, light = self.server("--max-buffers", "1048576")
        for _ in range(30):
            light.put(b"x" * 60000)
        with server.client() as heavy:
            heavy.send("list-delayed body=yes\r\n")
            check(heavy.is_closed(), "it is closed")
        equal(light.ask("list-tube-used"), "USING default")

    def test_answers_by_http_that_nobody_reads(self):
        server, light = self.server("--max-buffers", "16777216")
        for _ in range(60):
            light.put(b'"' * 60000, delay=1000)  # each byte is two in JSON
        for _ in range(10):
            heavy = socket.create_connection(("127.0.0.1", http_port(server)), 60)
            self.addCleanup(heavy.close)
            heavy.sendall(b"GET /v1/jobs?limit=60&body=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
            equal(heavy.recv(12), b"HTTP/1.1 200")
        until(lambda: self.number(server, "bound_clients_ended_total") >= 7, "some of them are closed")
        until(lambda: 1 << 20 < self.number(server, "buffer_bytes") <= 16 << 20, "what the others have is counted")
        equal(light.ask("list-tube-used"), "USING default")

    def test_the_client_with_the_most_is_ended_alone(self):
        server, light = self.server("--max-buffers", "1048576")
        for _ in range(30):
            light.put(b"x" * 60000)
        others = [server.client() for _ in range(5)]
        for number, client in enumerate(others):
            self.addCleanup(client.close)
            client.send(b"put 0 0 60 50000\r\n" + b"y" * 20000)
            until(lambda: self.number(server, "buffer_bytes") > 20000 * (number + 1), "a part of a body is there")
        with server.client() as heavy:
            heavy.send("list-delayed body=yes\r\n")
            check(heavy.is_closed(), "it is closed")
        for client in others:
            client.send(b"y" * 30000 + b"\r\n")
            matches("INSERTED", client.answer())
        equal(self.number(server, "bound_clients_ended_total"), 1)

    def test_jobs_are_refused_at_the_bound_of_memory(self):
        server, client = self.server("--max-memory", "16777216")
        body = b"x" * 60000
        while (answer := client.put(body)) != "OUT_OF_MEMORY":
            matches("INSERTED", answer)
        found = client.numbers("stats")
        check(int(found["memory-bytes"]) > 12 << 20, found)
        equal(found["memory-bytes-max"], "16777216")
        # What there is can be done, and makes room.
        for number in range(1, 101):
            equal(client.ask("delete %d" % number), "DELETED")
        until(lambda: client.put(body).startswith("INSERTED"), "there is room again")

    def test_tubes(self):
        _, client = self.server("--max-tubes", "3", "--max-watched", "2")
        equal(client.ask("watch a"), "WATCHING 2")
        equal(client.ask("watch b"), "OUT_OF_MEMORY")
        equal(client.ask("watch a"), "WATCHING 2")
        equal(client.ask("use b"), "USING b")
        equal(client.ask("use c"), "OUT_OF_MEMORY")
        equal(client.ask("list-tube-used"), "USING b")
        equal(client.ask("use a"), "USING a")
        equal(client.ask("use c"), "USING c")

    def test_quotas_of_jobs(self):
        server, client = self.server("--max-jobs", "5", "--max-tube-jobs", "3")
        equal(pipeline(client, ["put 0 100 60 1\r\nx"] * 4), ["INSERTED %d" % n for n in (1, 2, 3)] + ["OUT_OF_MEMORY"])
        client.ask("use other")
        equal(client.ask("put-key 0 100 60 1 k\r\nx"), "INSERTED 4")
        equal(pipeline(client, ["put 0 0 60 1\r\nx"] * 3), ["INSERTED 5"] + ["OUT_OF_MEMORY"] * 2)
        # What replaces another takes no place.
        equal(client.ask("put-key 0 100 60 1 k\r\ny"), "REPLACED 4")
        equal(client.ask("put-key 0 100 60 1 l\r\ny"), "OUT_OF_MEMORY")
        equal(self.number(server, "quota_refusals_total"), 4)
        equal(server.get("/readyz")[0], 200)
        equal(client.ask("delete 1"), "DELETED")
        matches("INSERTED", client.put())
        equal(client.put(), "OUT_OF_MEMORY")
        server.stop()
        equal(server.said.count("as many as --max-tube-jobs allows"), 1)
        equal(server.said.count("as many as --max-jobs allows"), 1)

    def test_quotas_hold_for_schedules(self):
        server, client = self.server("--clock", "virtual", "--max-jobs", "4", "--max-tube-jobs", "2")
        line = "put-schedule 0 0 60 1 %s cron=%%40every%%201h\r\nx"
        matches("SCHEDULED", client.ask(line % "a"))
        matches("SCHEDULED", client.ask(line % "b"))
        equal(client.ask(line % "c"), "OUT_OF_MEMORY")
        matches("SCHEDULED", client.ask(line % "a"))
        # Each makes one job, and there is room for two. What waits for room is made when a job is done.
        matches("ADVANCED", client.ask("advance 3601"))
        equal(client.numbers("stats-tube default")["current-jobs-ready"], "2")
        matches("ADVANCED", client.ask("advance 3601"))
        equal(client.numbers("stats-tube default")["current-jobs-ready"], "2")
        equal(client.ask("run-schedule a"), "OUT_OF_MEMORY")
        matches("RESERVED", client.ask("reserve-with-timeout 0"))
        equal(client.ask("delete 3"), "DELETED")
        matches("ADVANCED", client.ask("advance 2"))
        equal(client.numbers("stats-tube default")["current-jobs-ready"], "2")

    def test_watching_takes_no_more_than_there_is(self):
        server, client = self.server("--max-memory", "16777216")
        names = ["watch tube-%d" % number for number in range(5000)]
        heavy = [server.client() for _ in range(20)]
        for one in heavy:
            self.addCleanup(one.close)
            pipeline(one, names)
        check(self.number(server, "memory_bytes") < 16 << 20, "the bound")
        # There is room for others, and those who make room are let in.
        matches("INSERTED", client.put(b"x" * 1000))
        with server.client() as worker:
            equal(worker.ask("watch tube-1"), "WATCHING 2")
            equal(worker.ask("reserve"), "RESERVED 1 1000|" + "x" * 1000)

    def test_answers_of_one_turn(self):
        server, light = self.server("--max-buffers", "4194304")
        light.put(b"x" * 60000)
        for _ in range(30):
            light.put(b"y" * 60000)
        heavy = [server.client() for _ in range(100)]
        with stopped(server):
            for one in heavy:
                self.addCleanup(one.close)
                one.send("list-delayed body=yes\r\n")
        equal(light.ask("list-tube-used"), "USING default")
        self.peak(server, 100000, "not 100 answers at once")

    def memory(self, server, of):
        with open("/proc/%d/status" % server.process.pid, encoding="ascii") as file:
            return int(re.search(of + r":\s+(\d+)", file.read()).group(1)) << 10

    @contextlib.contextmanager
    def at_once(self, server, count, port, bound, *parts):
        """Clients say all that the system takes of this before the server goes on. Its memory keeps the bound of buffers."""
        clients = [self.enterContext(socket.create_connection(("127.0.0.1", port), 60)) for _ in range(count)]
        for client in clients:
            client.sendall(parts[0])
        until(lambda: self.number(server, "connections") + self.number(server, "http_connections") >= count, "all are there")
        idle = self.memory(server, "VmRSS")
        with stopped(server):
            for client in clients:
                client.setblocking(False)
                for part in parts[1:]:
                    with contextlib.suppress(BlockingIOError):
                        client.send(part)
        yield clients
        taken = self.memory(server, "VmHWM") - idle
        # Beside buffers, libmicrohttpd has some memory for each connection, and what it has just read of it.
        most = bound * 13 // 10 + count * 65536
        print("at most %d of %d bytes" % (taken, most))
        check(taken < most or os.environ.get("SANITIZE"), "%d bytes" % taken)

    def test_lists_of_one_turn(self):
        for path in ("/list?body=true&limit=100", "/v1/jobs?body=true&limit=100"):
            server, light = self.server("--max-buffers", "33554432")
            for _ in range(100):
                light.put(b"x" * 60000, delay=1000)
            request = ("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path).encode()
            with self.at_once(server, 100, http_port(server), 32 << 20, request[:10], request[10:]):
                equal(light.ask("list-tube-used"), "USING default")
                # Whoever asks for little is answered, behind them.
                equal(server.get(path.split("?", maxsplit=1)[0] + "?limit=1")[0], 200)
            until(lambda: self.number(server, "buffer_bytes") <= 32 << 20, "what they have is counted")

    def test_bodies_of_one_turn(self):
        server, light = self.server("--max-buffers", "8388608", "--max-job-size", "16000000")
        with self.at_once(server, 150, server.port, 8 << 20, b"put 0 0 60 16000000\r\n", *[b"x" * 100000] * 40):
            matches("INSERTED", light.put())
            until(lambda: self.number(server, "bound_clients_ended_total") > 0, "some lose their bodies")
            matches("INSERTED", light.put())

    def test_bodies_of_one_turn_by_http(self):
        token = token_of("admin", "admin:*")
        server, _ = self.server("--max-buffers", "8388608", "--max-job-size", "16000000", "--auth-file", "tokens")
        self.number = lambda server, name: next(
            int(line.split()[1]) for line in Web(server, token).text("/metrics").splitlines()
            if line.startswith("weekwheeld_" + name + " "))
        head = "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n" \
            "Content-Length: 16000000\r\n\r\n" % token
        with self.at_once(server, 150, http_port(server), 8 << 20, head.encode(), *[b" " * 100000] * 40):
            with Web(server, token) as web:
                web.good("POST", "jobs", {"body": "x"})
                until(lambda: self.number(server, "bound_clients_ended_total") > 0, "some lose their bodies")
                web.good("POST", "jobs", {"body": "x"})

    def begin_bodies(self, server, size, least, *before):
        """Clients begin bodies of this size, which gets its memory at once, until buffers take so much."""
        while self.number(server, "buffer_bytes") < least:
            for _ in range(5):
                client = server.client()
                self.addCleanup(client.close)
                for line in before:
                    client.ask(line)
                client.send("put 0 0 60 %d\r\nx" % size)

    def test_a_worker_by_http_makes_room(self):
        token = token_of("admin", "admin:*")
        server, _ = self.server("--max-buffers", "1048576", "--auth-file", "tokens")
        with Web(server, token) as web:
            self.number = lambda server, name: next(
                int(line.split()[1]) for line in web.text("/metrics").splitlines() if line.startswith("weekwheeld_" + name + " "))
            web.good("POST", "jobs", {"body": "x"})
            # Each takes too little to be ended for it, and together they leave no room for a list.
            self.begin_bodies(server, 2500, 1000000, "auth " + token)
            lease = web.good("POST", "leases", {})["leases"][0]
            web.good("POST", "jobs/%s/finish" % lease["id"], {"token": lease["token"]})
            equal(self.number(server, "bound_clients_ended_total"), 0)

    def test_a_worker_by_http_that_has_to_leave_does_not_wait_on(self):
        token = token_of("admin", "admin:*")
        # Its time to wait is never up.
        server, _ = self.server("--clock", "virtual", "--max-buffers", "6291456", "--max-job-size", "8000000", "--auth-file",
                                "tokens")
        self.number = lambda server, name: next(
            int(line.split()[1]) for line in Web(server, token).text("/metrics").splitlines()
            if line.startswith("weekwheeld_" + name + " "))
        with Web(server, token) as worker, contextlib.ExitStack() as stack:
            worker.begin("POST", "leases", b'{"wait":20}' + b" " * 2400000)
            until(lambda: self.number(server, "waiting") == 1, "it waits")
            others = [stack.enter_context(server.client()) for _ in range(3)]
            for client in others:
                equal(client.ask("auth " + token), "OK")
                client.send(b"put 0 0 60 1500000\r\n" + b"x" * 1400000)
            until(lambda: self.number(server, "bound_clients_ended_total") > 0, "it has to leave")
            until(lambda: self.number(server, "buffer_bytes") < 6291456, "it has left")
            for client in others:
                client.send(b"x" * 100000 + b"\r\n")
                matches("INSERTED", client.answer())
            equal(self.number(server, "bound_clients_ended_total"), 1)

    def test_a_list_goes_on_when_others_have_lost_bodies(self):
        server, _ = self.server("--max-buffers", "8388608")
        # Many more have to lose theirs than lose them at a time, and meanwhile nobody says anything.
        self.begin_bodies(server, 5800, 8300000)
        equal(server.get("/list")[0], 200)
        check(self.number(server, "bound_clients_ended_total") > 100, "they lose them")

    def test_puts_while_redis_is_silent(self):
        need_redis()
        with Redis() as redis, redis.server("--max-buffers", "16777216", "--max-job-size", "3000000", "--redis-timeout",
                                            "60") as server, contextlib.ExitStack() as stack:
            clients = [stack.enter_context(server.client()) for _ in range(100)]
            redis.process.send_signal(signal.SIGSTOP)
            try:
                for client in clients:
                    client.send(b"put 0 0 60 2000000\r\n" + b"x" * 2000000 + b"\r\n")
                until(lambda: len(select.select([client.socket for client in clients], [], [], 0)[0]) >= 90, "most are refused")
                self.peak(server, 150000, "not what all of them sent")
            finally:
                redis.process.send_signal(signal.SIGCONT)
            answers = [client.answer().split()[0] for client in clients]
            check(2 <= answers.count("INSERTED") <= 10, answers)
            equal(set(answers), {"INSERTED", "OUT_OF_MEMORY"})
            matches("INSERTED", clients[0].put())

    def test_clients_of_one_address(self):
        server, client = self.server("--max-connections-per-address", "2", "--unix", "socket")
        with server.client() as second:
            equal(second.ask("list-tube-used"), "USING default")
            with server.client() as third:
                check(third.is_closed(), "it is turned away")
            for _ in range(3):
                with socket.socket(socket.AF_UNIX) as local:
                    local.connect("socket")
                    equal(Client(local).ask("list-tube-used"), "USING default")
        client.until_stats("current-connections", 1)
        with server.client() as second:
            equal(second.ask("list-tube-used"), "USING default")


main()
