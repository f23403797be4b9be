#!/usr/bin/env python3
"""weekwheel-sessiond --data: sessions over a restart, a crash, and with a damaged file."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, __file__.rsplit("/tests/", 1)[0] + "/tests/support")
from sessiond import SESSIOND, Sessiond
from weekwheel import Case, equal, main, matches, until

OK = b"+OK\r\n"


def refused(*arguments):
    """What a server says that does not start."""
    done = subprocess.run([SESSIOND, "--listen", "127.0.0.1:0", *arguments], capture_output=True, timeout=60, text=True,
                          check=False)
    assert done.returncode != 0, done
    return done.stderr


def size_of(server, database=0):
    with server.client() as a:
        equal(a.ask("SELECT", database), OK)
        return int(a.ask("DBSIZE")[1:-2])


class Keep(Case):
    def test_over_an_orderly_end(self):
        with Sessiond("--data", "data", "--lifetimes") as server, server.client() as a:
            for number in range(3000):
                equal(a.ask("SET", "sess:%d" % number, "v" * (number % 300), "EX", 1000 + number), OK)
            equal(a.ask("SET", "soon", "x", "PX", 1), OK)
            equal(a.ask("SET", "forever", b"\x00\xff"), OK)
            equal(a.ask("SET", "life", "y", "EX", 500, "LIFETIME", 700), OK)
            equal(a.ask("SET", "large", "z" * 300000, "EX", 100), OK)
            equal(a.ask("SELECT", 3), OK)
            equal(a.ask("SET", "other", "w", "EX", 100), OK)
            equal(a.ask("SET", "gone", "w", "EX", 100), OK)
            equal(a.ask("DEL", "gone"), b":1\r\n")
            equal(server.stop(), 0)
        with Sessiond("--data", "data", "--lifetimes") as server, server.client() as a:
            matches(r"3004 sessions are back from data; [01] have expired", server.said)
            for number in range(0, 3000, 100):
                equal(a.ask("GET", "sess:%d" % number), b"$%d\r\n%s\r\n" % (number % 300, b"v" * (number % 300)))
                left = int(a.ask("TTL", "sess:%d" % number)[1:-2])
                assert 900 + number <= left <= 1000 + number, (number, left)
            equal(a.ask("GET", "forever"), b"$2\r\n\x00\xff\r\n")
            equal(a.ask("TTL", "forever"), b":-1\r\n")
            equal(a.ask("EXPIRE", "life", 5000), b":1\r\n")
            assert 600 < int(a.ask("TTL", "life")[1:-2]) <= 700
            equal(len(a.ask("GET", "large")), 300000 + len("$300000\r\n\r\n"))
            equal(a.ask("EXISTS", "soon"), b":0\r\n")
            equal(size_of(server, 3), 1)

    def test_a_crash_loses_what_was_not_saved(self):
        with Sessiond("--data", "data", "--save-every", "1h") as server, server.client() as a:
            before = int(a.ask("LASTSAVE")[1:-2])
            equal(a.ask("SET", "a", "1", "EX", 100), OK)
            equal(a.ask("SAVE"), OK)
            assert int(a.ask("LASTSAVE")[1:-2]) >= before
            equal(a.ask("SET", "b", "2", "EX", 100), OK)
            server.stop(signal.SIGKILL)
        with Sessiond("--data", "data") as server, server.client() as a:
            equal((a.ask("GET", "a"), a.ask("GET", "b")), (b"$1\r\n1\r\n", b"$-1\r\n"))

    def test_what_has_changed_is_written_from_time_to_time(self):
        with Sessiond("--data", "data", "--save-every", "100ms") as server, server.client() as a:
            equal(a.ask("SET", "a", "1", "EX", 100), OK)
            until(lambda: os.path.exists("data/sessions"), "it is written")
            until(lambda: a.ask("BGSAVE") == b"+Background saving started\r\n", "it is written when asked")
            until(lambda: a.ask("BGSAVE") == b"+Background saving started\r\n", "it has been written again")
            server.stop(signal.SIGKILL)
        with Sessiond("--data", "data") as server:
            equal(size_of(server), 1)

    def test_what_cannot_be_read_is_refused_and_stays(self):
        with Sessiond("--data", "data") as server, server.client() as a:
            for number in range(100):
                equal(a.ask("SET", "k%d" % number, "v", "EX", 100), OK)
            matches("another server has this folder", refused("--data", "data"))
        with open("data/sessions", "rb") as file:
            good = file.read()
        for bad in (good[:-1], good[:10], b"", good[:200] + b"\x01" + good[201:], good[:9] + b"\x07" + good[10:],
                    good[:24] + b"\xff" * 8 + good[32:]):
            with open("data/sessions", "wb") as file:
                file.write(bad)
            matches("data/sessions is damaged at byte .* move it away", refused("--data", "data"))
            with open("data/sessions", "rb") as file:
                equal(file.read(), bad)
        with open("data/sessions", "wb") as file:
            file.write(good)
        with Sessiond("--data", "data") as server:
            equal(size_of(server), 100)

    def test_wrong_words(self):
        matches("--save-every needs --data", refused("--save-every", "1s"))
        matches("from 100ms on", refused("--data", "data", "--save-every", "1ms"))
        matches("No such file", refused("--data", "nix/nix"))
        with Sessiond() as server, server.client() as a:
            matches("start the server with --data DIR", a.ask("SAVE").decode())


if __name__ == "__main__":
    main()
