#!/usr/bin/env python3
"""Idle clients, of the server's protocol and by HTTP, take no descriptors that a server needs for its files."""
# tier: check
import contextlib
import os
import re
import resource
import socket
import subprocess

from harness import BUILD, PATIENCE, Case, Server, check, descriptors, equal, main, matches, until
from sessiond import Sessiond

NOBODY = "no client is let in for now"
# A journal of jobs that gets so many bytes needs another file.
BODY, BODIES = b"x" * 60000, 120


def limited(number):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))


def connected(port):
    one = socket.socket()
    one.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        one.connect(("127.0.0.1", port))
    return one


def open_files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


class Descriptors(Case):
    def setUp(self):
        super().setUp()
        descriptors(2000)

    def crowd(self, server, limit):
        """Idle clients at each port, until nobody is let in."""
        http = int(re.search(r"serving http://127\.0\.0\.1:(\d+)/", server.said)[1])
        idle = [connected(port) for port in (server.port, http) for _ in range(limit)]
        said = ""
        while NOBODY not in said:
            said = server.process.stderr.readline()
            check(said, "it still serves")
        until(lambda: open_files(server) >= limit // 2, "they are in")
        return idle

    def leave(self, server, idle):
        files = open_files(server)
        for one in idle:
            one.close()
        until(lambda: open_files(server) < files, "they have left")

    def test_jobs(self):
        for limit in 48, 128, 300:
            with Server("--data", f"data{limit}", "--http", "127.0.0.1:0", before=limited(limit)) as server, server.client() as client:
                idle = self.crowd(server, limit)
                kept = limit - open_files(server)
                check(kept >= min(64, limit // 4) - 3, (limit, kept))
                for _ in range(BODIES):
                    matches("^INSERTED", client.put(BODY))
                equal(client.ask("delete 1"), "DELETED")
                self.leave(server, idle)
                with server.client() as another:
                    matches("^INSERTED", another.put(b"y"))

    def test_sessions(self):
        for limit in 48, 128, 300:
            with Sessiond("--threads", "1", "--data", f"data{limit}", "--http", "127.0.0.1:0", preexec=limited(limit)) as server, \
                    server.client() as client:
                equal(client.ask("SET", "a", "1"), b"+OK\r\n")
                idle = self.crowd(server, limit)
                for _ in range(3):
                    equal(client.ask("SAVE"), b"+OK\r\n")
                    equal(client.ask("APPEND", "a", "1")[:1], b":")
                self.leave(server, idle)
                with server.client() as another:
                    equal(another.ask("GET", "a"), b"$4\r\n1111\r\n")

    def test_http_has_places_when_the_protocol_has_none(self):
        for kind, before in ((Server, "before"), (Sessiond, "preexec")):
            with kind("--http", "127.0.0.1:0", **{before: limited(128)}) as server:
                idle = [connected(server.port) for _ in range(256)]
                while NOBODY not in server.process.stderr.readline():
                    pass
                equal(server.get("/livez")[0], 200)
                self.leave(server, idle)

    def test_a_client_in_clear_takes_one(self):
        for kind in (Server, Sessiond):
            with kind("--http", "127.0.0.1:0") as server:
                equal(server.get("/livez")[0], 200)
                http = int(re.search(r"serving http://127\.0\.0\.1:(\d+)/", server.said)[1])
                with contextlib.ExitStack() as stack:
                    clients = [stack.enter_context(socket.create_connection(("127.0.0.1", http), PATIENCE)) for _ in range(10)]
                    for client in clients:
                        client.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                        check(client.recv(65536).startswith(b"HTTP/1.1 200"), "it is served")
                    files = open_files(server)
                until(lambda f=files, s=server: open_files(s) == f - len(clients), "each has had one")

    def test_a_limit_that_lets_nobody_in(self):
        for program in "weekwheeld", "weekwheel-sessiond":
            more = ["--data", program] + (["--threads", "2"] if program == "weekwheel-sessiond" else [])
            with subprocess.Popen([os.path.join(BUILD, "bin", program), "--listen", "127.0.0.1:0", *more], stderr=subprocess.PIPE,
                                  text=True, preexec_fn=limited(22)) as process:
                matches(r'a limit of 22 open files \("ulimit -n"\) lets no client in', process.communicate(timeout=PATIENCE)[1])
                equal(process.returncode, 1)


if __name__ == "__main__":
    main()
