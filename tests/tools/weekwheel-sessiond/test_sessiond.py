#!/usr/bin/env python3
"""weekwheel-sessiond: what it does that Redis does not, or not in time."""
import sys

sys.path.insert(0, __file__.rsplit("/tests/", 1)[0] + "/tests/support")
from sessiond import Sessiond, encoded
from weekwheel import Case, equal, main


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


if __name__ == "__main__":
    main()
