#!/usr/bin/env python3
"""weekwheel-sessiond --expired-to: each expiry becomes a job at another server, whatever that one answers."""
# tier: check, threads
import datetime
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

from sessiond import SESSIOND, Sessiond
from harness import (PATIENCE, WEEKWHEEL, Beanstalkd, Case, Server, close_listener, equal, free_port, main, matches, run,
                     until)

OK = b"+OK\r\n"


def to(port, tube="ended"):
    return ("--expired-to", f"beanstalk://127.0.0.1:{port}/{tube}", "--http", "127.0.0.1:0")


def numbers(server):
    """What its metrics say of --expired-to, by the last word of each name."""
    found = re.findall(r"^weekwheel_sessiond_expired_to_(\w+?)(?:_total)? ([0-9.]+)$", server.get("/metrics")[1], re.M)
    return {name: float(value) for name, value in found}


def until_number(server, name, value):
    until(lambda: numbers(server)[name] == value, f"{name} is {value}: {numbers(server)}")


def jobs_of(client, count, tube="ended"):
    """Take so many jobs out of the tube: what they say."""
    client.ask("watch " + tube)
    told = []
    while len(told) < count:
        answer = client.ask("reserve-with-timeout %d" % PATIENCE)
        matches("^RESERVED ", answer)
        told.append(json.loads(answer.split("|", 1)[1]))
        equal(client.ask("delete " + answer.split()[1]), "DELETED")
    equal(client.ask("reserve-with-timeout 0"), "TIMED_OUT")
    return told


def millis(text):
    """A time as jobs have it, in ms of Unix time."""
    matches(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", text)
    whole = datetime.datetime.fromisoformat(text[:-5] + "+00:00")
    return int(whole.timestamp()) * 1000 + int(text[-4:-1])


class Fake:
    """A server whose answer to each put is what `answer(body)` returns: a line, bytes, or None, which ends the connection.
    It knows only beanstalkd's verbs, and counts connections."""

    def __init__(self, answer, port=0):
        self.answer, self.bodies, self.connections = answer, [], 0
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        close_listener(self.listener)

    def accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, connection.makefile("rb") as file:
            while line := file.readline().decode():
                words = line.split()
                said = "UNKNOWN_COMMAND"
                if words[0] == "put":
                    self.bodies.append(json.loads(file.read(int(words[4]) + 2)))
                    said = self.answer(self.bodies[-1])
                elif words[0] == "use":
                    said = "USING " + words[1]
                if said is None:
                    return
                try:
                    connection.sendall(said if isinstance(said, bytes) else said.encode() + b"\r\n")
                except OSError:
                    return


class ExpiredTo(Case):
    def test_an_expiry_becomes_a_job(self):
        with Server("--memory") as other, other.client() as jobs, \
                Sessiond(*to(other.port), "--clock", "virtual") as server, server.client() as a:
            equal(a.ask("SET", "sess:1", '{"user":"Zoë"}\n\0', "EX", 1800), OK)
            equal(a.ask("SET", b"\xff\x00", b"\x00\xfe", "PX", 2500), OK)
            equal(a.ask("SET", "", "", "EX", 1801), OK)
            equal(a.ask("SET", "stays", "x"), OK)
            equal(a.ask("SET", "deleted", "x", "EX", 100), OK)
            equal(a.ask("DEL", "deleted"), b":1\r\n")
            equal(a.ask("SELECT", 3), OK)
            equal(a.ask("SET", "other", "y", "EX", 1802), OK)
            end = int(a.ask("PEXPIRETIME", "other")[1:-2]) - 1802000
            equal(a.ask("ADVANCE", 3600000), OK)
            told = jobs_of(jobs, 4)
            equal([job.pop("why") for job in told], ["expired"] * 4)
            equal(len({job.pop("id") for job in told}), 4)
            equal(sorted(millis(job.pop("deadline")) - end for job in told), [2500, 1800000, 1801000, 1802000])
            equal(sorted(told, key=str), sorted([
                {"database": 0, "key": "sess:1", "value": '{"user":"Zoë"}\n\0'},
                {"database": 0, "key_base64": "/wA=", "value_base64": "AP4="},
                {"database": 0, "key": "", "value": ""},
                {"database": 3, "key": "other", "value": "y"}], key=str))
            until_number(server, "told", 4)
            equal(numbers(server)["waiting"], 0)

    def test_an_eviction_says_so(self):
        with Server("--memory") as other, other.client() as jobs, \
                Sessiond(*to(other.port), "--maxmemory", "1M", "--maxmemory-policy", "allkeys-lru") as server, \
                server.client() as a:
            ends = {}
            for number in range(40):
                ends["k%d" % number] = now = int(time.time()) + 1000 + number if number % 2 else None
                equal(a.ask("SET", "k%d" % number, "v" * 300000, *(["EXAT", now] if now else [])), OK)
            told = jobs_of(jobs, 40 - int(a.ask("DBSIZE")[1:-2]))
            equal({job["why"] for job in told}, {"evicted"})
            for job in told:
                end = job["deadline"] and millis(job["deadline"]) // 1000
                equal(end, ends.pop(job["key"]))
            assert all(a.ask("EXISTS", key) == b":1\r\n" for key in ends), ends
            until_number(server, "told", len(told))

    def test_beanstalkd_is_told_too(self):
        with Beanstalkd() as other, other.client() as jobs, Sessiond(*to(other.port)) as server, server.client() as a:
            equal(a.ask("SET", "small", "v", "PX", 1), OK)
            equal(a.ask("SET", "large", "v" * 70000, "PX", 1), OK)
            told = {job["key"]: job for job in jobs_of(jobs, 2)}
            equal(told["small"]["value"], "v")
            equal((told["large"]["value"], told["large"]["value_size"]), (None, 70000))
            until_number(server, "told", 2)
            equal(numbers(server)["shortened"], 1)

    def test_what_expires_while_the_other_server_is_away_waits(self):
        port = free_port()
        with Sessiond(*to(port)) as server, server.client() as a:
            for number in range(1000):
                equal(a.ask("SET", "k%d" % number, "v", "PX", 1), OK)
            until_number(server, "waiting", 1000)
            matches(r"(?s)^ok\n.*expiries wait to be reported: 127.0.0.1:\d+: Connection refused", server.get("/readyz")[1])
            with Server("--memory", "--listen", "127.0.0.1:%d" % port) as other, other.client() as jobs:
                told = jobs_of(jobs, 1000)
                equal(sorted(int(job["key"][1:]) for job in told), list(range(1000)))
                until_number(server, "told", 1000)
            equal(server.stop(), 0, server.said)
            matches("expiries are reported to 127.0.0.1:.* again", server.said)

    def test_a_lost_answer_puts_no_job_twice_at_weekwheeld(self):
        """The connection ends when the other server has the jobs, and before it has said so."""
        port, cuts = free_port(), [3]

        class Cut:
            def __init__(self, there):
                self.listener = socket.create_server(("127.0.0.1", port))
                self.there = there
                threading.Thread(target=self.serve, daemon=True).start()

            def serve(self):
                while True:
                    near = self.listener.accept()[0]
                    far = socket.create_connection(("127.0.0.1", self.there))
                    threading.Thread(target=self.copy, args=(near, far, False), daemon=True).start()
                    threading.Thread(target=self.copy, args=(far, near, True), daemon=True).start()

            def copy(self, source, sink, is_answer):
                try:
                    while data := source.recv(65536):
                        if is_answer and b"INSERTED" in data and cuts[0]:
                            cuts[0] -= 1
                            break
                        sink.sendall(data)
                except OSError:
                    pass
                for end in (source, sink):
                    try:
                        end.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass

        with Server("--memory") as other, other.client() as jobs, Sessiond(*to(port)) as server, server.client() as a:
            Cut(other.port)
            for number in range(100):
                equal(a.ask("SET", "k%d" % number, "v", "PX", 1), OK)
            until_number(server, "told", 100)
            assert cuts[0] < 3, cuts
            equal(len(jobs_of(jobs, 100)), 100)

    def test_hostile_answers(self):
        """Whatever is answered at first, all is told in the end."""
        for word in ("DRAINING", "OUT_OF_MEMORY", "INTERNAL_ERROR", "DENIED", "BAD_FORMAT", "EXPECTED_CRLF", "NONSENSE", "",
                     b"\r\n", b"\0\r\n", b"x" * 300, b"INSERTED 1\n", None):
            refusals = [2]

            def answer(_, word=word, refusals=refusals):
                if refusals[0]:
                    refusals[0] -= 1
                    return word
                return "INSERTED 5"

            with self.subTest(word), Fake(answer) as other, Sessiond(*to(other.port)) as server, server.client() as a:
                for number in range(3):
                    equal(a.ask("SET", "k%d" % number, "v", "PX", 1), OK)
                until_number(server, "told", 3)
                equal({body["key"] for body in other.bodies}, {"k0", "k1", "k2"})
                equal(server.stop(), 0, server.said)
                matches("expiries wait to be reported", server.said)

    def test_a_job_that_is_too_big(self):
        with Fake(lambda body: "JOB_TOO_BIG" if body["value"] or body["key"] == "long" else "BURIED 1") as other, \
                Sessiond(*to(other.port)) as server, server.client() as a:
            for key in ("a", "long", "b"):
                equal(a.ask("SET", key, "value", "PX", 1), OK)
            until_number(server, "told", 2)
            until_number(server, "refused", 1)
            equal(numbers(server)["waiting"], 0)
            equal({body["key"] for body in other.bodies if body["value"] is None}, {"a", "b", "long"})

    def test_at_the_bound_values_go_first_and_then_the_oldest(self):
        port = free_port()
        with Sessiond(*to(port), "--expired-max", "1M") as server, server.client() as a:
            for number in range(200):
                equal(a.ask("SET", "k%d" % number, "v" * 10000, "PX", 1), OK)
            until_number(server, "waiting", 200)
            between = numbers(server)["shortened"]
            assert 100 < between < 150, between
            for number in range(200, 10000):
                a.send(b"*5\r\n$3\r\nSET\r\n$5\r\nk%04d\r\n$1\r\nv\r\n$2\r\nPX\r\n$1\r\n1\r\n" % number)
            for number in range(200, 10000):
                equal(a.answer(), OK)
            until(lambda: numbers(server)["dropped"] + numbers(server)["waiting"] == 10000, "all have expired")
            assert numbers(server)["bytes"] <= 1 << 20
            waiting = int(numbers(server)["waiting"])
            matches("--expired-max", server.get("/readyz")[1])
            with Server("--memory", "--listen", "127.0.0.1:%d" % port) as other, other.client() as jobs:
                told = jobs_of(jobs, waiting)
            equal(server.stop(), 0, server.said)
            keys = [int(job["key"][1:]) for job in told]
            assert keys[0] < 1000 and max(keys) == 9999 and min(keys) > 0, keys
            matches("the oldest expiries that wait to be reported are dropped", server.said)

    def test_at_the_end_it_tells_what_it_has(self):
        held = threading.Event()

        def answer(_):
            held.wait(PATIENCE)
            return "INSERTED 1"

        with Fake(answer) as other, Sessiond(*to(other.port)) as server, server.client() as a:
            for number in range(1000):
                equal(a.ask("SET", "k%d" % number, "v", "PX", 1), OK)
            until_number(server, "waiting", 1000)
            server.process.send_signal(signal.SIGTERM)
            held.set()
            equal(server.ended(), 0)
            equal(len({body["key"] for body in other.bodies}), 1000)
            assert "could not be told" not in server.said, server.said
        with Sessiond(*to(free_port())) as server, server.client() as a:
            equal(a.ask("SET", "k", "v", "PX", 1), OK)
            until_number(server, "waiting", 1)
            equal(server.stop(), 0, server.said)
            matches("1 expiries could not be reported to .*: they are lost; --data", server.said)

    @unittest.skipUnless(shutil.which("openssl"), "there is no openssl to make certificates")
    def test_tls_and_a_token(self):
        run(0, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem")
        tokens = run(0, WEEKWHEEL, "token", "--token-file", "good", "sessions", "put:ended").out
        tokens += run(0, WEEKWHEEL, "token", "--token-file", "poor", "others", "put:others").out
        run(0, WEEKWHEEL, "token", "--token-file", "unknown", "stranger", "put:ended")
        with open("tokens", "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(tokens + run(0, WEEKWHEEL, "token", "--token-file", "all", "all", "admin,work,put,read:*").out)
        port = free_port()
        with Server("--listen", "tls:127.0.0.1:%d" % port, "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--auth-file",
                    "tokens") as other, other.client() as jobs:
            with open("all", encoding="ascii") as file:
                equal(jobs.ask("auth " + file.read().strip()), "OK")
            url = f"beanstalks://localhost:{port}/ended"
            for more, reason in (
                    ((), "TLS failed: .*certificate"),
                    (("--expired-ca", "cert.pem"), "DENIED"),
                    (("--expired-ca", "cert.pem", "--expired-token-file", "poor"), "DENIED"),
                    (("--expired-ca", "cert.pem", "--expired-token-file", "unknown"), "does not know the token"),
                    (("--expired-ca", "cert.pem", "--expired-token-file", "good"), None)):
                with Sessiond("--expired-to", url, "--http", "127.0.0.1:0", *more) as server, server.client() as a:
                    equal(a.ask("SET", "k", "v" * 3000000, "PX", 1), OK)
                    if reason:
                        until(lambda server=server, reason=reason: re.search(reason, server.get("/readyz")[1]), reason)
                        equal(numbers(server)["told"], 0)
                    else:
                        until_number(server, "told", 1)
            equal(jobs_of(jobs, 1)[0]["value_size"], 3000000)

    def test_a_tube_that_takes_only_requests(self):
        with Server("--push", "ended") as other, Sessiond(*to(other.port)) as server, server.client() as a:
            equal(a.ask("SET", "k", "v", "PX", 1), OK)
            until(lambda: "takes only requests" in server.get("/readyz")[1], "it says so")
            equal(numbers(server)["waiting"], 1)

    def test_wrong_words(self):
        for arguments, expected in (
                (["--expired-to", "127.0.0.1:11300"], "beanstalk://HOST:PORT/TUBE"),
                (["--expired-to", "beanstalk://h:1"], "beanstalk://HOST:PORT/TUBE"),
                (["--expired-to", "beanstalk://h:1/a b"], "beanstalk://HOST:PORT/TUBE"),
                (["--expired-to", "beanstalk://h:0/a"], "beanstalk://HOST:PORT/TUBE"),
                (["--expired-to", "beanstalk://[::1/a"], "beanstalk://HOST:PORT/TUBE"),
                (["--expired-max", "1M"], "--expired-max is for --expired-to"),
                (["--expired-token-file", os.devnull, "--expired-to", "beanstalk://h/a"], "its first line is empty")):
            done = subprocess.run([SESSIOND, *arguments], capture_output=True, timeout=60, text=True, check=False)
            equal(done.returncode, 2, arguments)
            matches(expected, done.stderr)


if __name__ == "__main__":
    main()
