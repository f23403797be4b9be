#!/usr/bin/env python3
"""weekwheel-sessiond: what it does that Redis does not, or not in time."""
# tier: check
import contextlib
import http.client as http_client
import re

from sessiond import Sessiond, encoded
from harness import Case, equal, main


def http(port, path, host):
    """The status and body of a GET."""
    with contextlib.closing(http_client.HTTPConnection("127.0.0.1", port, timeout=30)) as web:
        web.request("GET", path, headers={"Host": host})
        answer = web.getresponse()
        return answer.status, answer.read().decode()


class First(Case):
    def test_a_session(self):
        with Sessiond() as server, server.client() as a:
            equal(a.ask("PING"), b"+PONG\r\n")
            equal(a.ask("SET", "a", "b", "EX", 100), b"+OK\r\n")
            equal(a.ask("GET", "a"), b"$1\r\nb\r\n")
            equal(a.ask("TTL", "a"), b":100\r\n")
            equal(a.ask("EXPIRE", "a", 5000, "LT"), b":0\r\n")
            equal(a.ask("EXPIRE", "a", 5000), b":1\r\n")
            equal(a.ask("TTL", "a"), b":5000\r\n")
            equal(a.ask("DEL", "a", "b"), b":1\r\n")
            equal(a.ask("GET", "a"), b"$-1\r\n")
            equal(server.stop(), 0)

    def test_a_pipeline_that_comes_byte_by_byte(self):
        with Sessiond() as server, server.client() as a:
            for byte in encoded("SET", "a", "b\r\n*") + b"GET a\r\n" + encoded("PING"):
                a.send(bytes([byte]))
            equal(a.answer() + a.answer() + a.answer(), b"+OK\r\n$4\r\nb\r\n*\r\n+PONG\r\n")

    def test_health_and_numbers(self):
        with Sessiond("--http", "127.0.0.1:0", "--http-host", "sessions.example") as server, server.client() as a:
            web = re.search(r"serving http://127\.0\.0\.1:(\d+)/", server.said).group(1)
            get = lambda path, host="localhost": http(int(web), path, host)
            equal(get("/livez"), (200, "ok\n"))
            equal(get("/readyz", "sessions.example"), (200, "ok\n"))
            equal(get("/livez", "evil.example")[0], 421)
            equal(get("/nix")[0], 404)
            for key in ("a", "b"):
                equal(a.ask("SET", key, "x", "EX", 100), b"+OK\r\n")
            equal(a.ask("GET", "a") + a.ask("GET", "c"), b"$1\r\nx\r\n$-1\r\n")
            numbers = dict(line.rsplit(" ", 1) for line in get("/metrics")[1].splitlines() if line[0] != "#")
            for name, value in (("keys{database=\"0\"}", 2), ("clients", 1), ("commands_total", 4), ("hits_total", 1),
                                ("misses_total", 1), ("expired_total", 0)):
                equal((name, numbers["weekwheel_sessiond_" + name]), (name, str(value)))
            equal(server.stop(), 0)


if __name__ == "__main__":
    main()
