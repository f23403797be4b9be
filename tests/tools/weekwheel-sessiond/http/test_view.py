#!/usr/bin/env python3
"""The page of weekwheel-sessiond, in Chromium, and the JSON behind it. WW_SCREENSHOTS=FOLDER keeps pictures of it."""
# tier: long, threads
import hashlib
import json
import os
import re
import socket
import time
import urllib.error
import urllib.request

from browser import Browser
from sessiond import Sessiond, encoded
from harness import PATIENCE, Case, check, equal, main, matches, until

DAY = 86400
EVIL = "<img src=x onerror=document.title='evil'>"


def start(*arguments):
    return Sessiond("--http", "127.0.0.1:0", *arguments)


def url(server):
    until(lambda: "serving" in server.said, "it serves HTTP")
    return re.search(r"serving (http://[0-9.:]+)/", server.said).group(1)


def ask(server, path, status=200, method="GET"):
    try:
        with urllib.request.urlopen(urllib.request.Request(url(server) + path, method=method), timeout=PATIENCE) as answer:
            equal(status, 200)
            return json.load(answer)
    except urllib.error.HTTPError as error:
        equal(error.code, status)
        return error.read().decode()


def fill(client, *lives):
    """Sessions that live so many seconds."""
    client.send(b"".join(encoded("SET", f"sess:{n:030}", "x" * (n % 50), "EX", life) for n, life in enumerate(lives)))
    for _ in lives:
        equal(client.answer(), b"+OK\r\n")


class Json(Case):
    def test_sessions_are_counted_by_when_they_end(self):
        with start("--clock", "virtual") as server, server.client() as a:
            fill(a, 5, 5, 59, 60, 3599, 3600, 2 * DAY, 7 * DAY - 1, 8 * DAY)
            a.ask("SET", "stays", "y" * 1000)
            a.ask("SELECT", 3)
            fill(a, 5)
            seconds = ask(server, "/v1/forecast?span=1&count=60")
            equal(seconds["span"], 1)
            equal({second: count for second, count in enumerate(seconds["counts"]) if count}, {5: 3, 59: 1})
            equal(ask(server, "/v1/forecast?span=60&count=60")["counts"], [4, 1] + 57 * [0] + [1])
            equal(ask(server, "/v1/forecast?span=86400&count=9")["counts"], [7, 0, 1, 0, 0, 0, 1, 0, 0])
            equal(sum(ask(server, "/v1/forecast?span=604800&count=10080")["counts"]), 9)
            # What has been counted goes on with the time.
            a.ask("ADVANCE", 5000)
            equal(ask(server, "/v1/forecast?span=1&count=5")["counts"], [3, 0, 0, 0, 0])
            a.ask("ADVANCE", 50000)
            equal(ask(server, "/v1/forecast?span=1&count=10")["counts"], [0, 0, 0, 0, 1, 1, 0, 0, 0, 0])
            all_of_it = ask(server, "/v1/sessions")
            equal([all_of_it[name] for name in ("sessions", "later", "never")], [11, 1, 1])
            # Expiry itself is seen at once, without a census.
            equal([ask(server, "/v1/stats")[name] for name in ("sessions", "expired")], [8, 3])

    def test_keys_are_shown_in_part(self):
        with start("--clock", "virtual") as server, server.client() as a:
            a.ask("SET", "sess:0123456789abcdefghijklmnopqrstuv", "z" * 5000, "EX", 100)
            a.ask("SET", "pin", "z" * 4000)
            a.ask("SET", b"\xff\xfe\xfd\"", "z" * 3000)
            largest = ask(server, "/v1/sessions")["largest"]
            equal(largest, [{"database": 0, "key": "sess:0123456789a", "bytes": 5000, "left": 100},
                            {"database": 0, "key": "p", "bytes": 4000, "left": None},
                            {"database": 0, "key": "\ufffd\ufffd", "bytes": 3000, "left": None}])

    def test_numbers(self):
        with start("--maxmemory", "100M") as server, server.client() as a:
            fill(a, 100, 100)
            a.ask("GET", f"sess:{0:030}")
            a.ask("GET", "none")
            stats = ask(server, "/v1/stats")
            equal([stats[name] for name in ("ready", "sessions", "clients", "commands", "hits", "misses", "most_bytes")],
                  [True, 2, 1, 4, 1, 1, 100 << 20])
            equal(stats["databases"], [{"database": 0, "sessions": 2}])
            check(stats["resident_bytes"] > 1 << 20 and stats["received_bytes"] > 100, stats)

    def test_what_is_refused(self):
        with start() as server:
            for query in ("span=0", "span=604801", "count=0", "count=10081", "span=x", "count=-1", "span=", "count=1e3"):
                matches("span=1 to 604800", ask(server, "/v1/forecast?" + query, 400))
            matches("/v1/stats", ask(server, "/v1/nothing", 404))
            matches("only GET", ask(server, "/v1/sessions", 405, "DELETE"))

    def test_who_waits_when_the_server_ends(self):
        with start() as server, server.client() as a:
            for first in range(0, 100000, 1000):
                a.send(b"".join(encoded("SET", first + n, "x", "EX", 1000) for n in range(1000)))
                for _ in range(1000):
                    a.line()
            host, port = url(server)[7:].split(":")
            with socket.create_connection((host, int(port)), PATIENCE) as client:
                client.sendall(b"GET /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                equal(server.stop(), 0)


class Page(Case):
    def test_what_it_shows(self):
        with start() as server, server.client() as a, Browser("--window-size=1200,1700") as browser:
            # The first ends when a slow browser has long seen all of them.
            fill(a, *(600 + n * 37 for n in range(400)), *(3600 * n for n in range(1, 190)))
            a.ask("SET", EVIL * 3, "z" * 100000, "EX", 3600)
            browser.tell("url", url=url(server) + "/")
            browser.until_text("#state", "590 sessions, 1 client")
            browser.until_text("#largest", "97.7 KiB")
            browser.until_text("#beyond", r"21 end later than in a week, 0 never")
            until(lambda: browser.run("return document.querySelectorAll('#week button').length") == 168, "the week", 0.05)
            equal(browser.run("return document.querySelectorAll('#wheels svg').length"), 4)
            matches("<img", browser.text("#largest"))
            equal(browser.run("return document.title + document.querySelectorAll('main img').length"), "weekwheel: sessions0")
            equal(browser.run("return getComputedStyle(document.getElementById('login')).display"), "none")
            # An hour, by keyboard.
            browser.run("document.querySelector('[data-hour=\"0\"]').focus()")
            browser.type("[data-hour='0']", "\ue014")
            browser.type("[data-hour='1']", "\ue007")
            browser.until_text("#minutes h3", "sessions in the hour")
            # What happens shows.
            end = time.monotonic() + PATIENCE
            while not browser.run("return paces.some((pace) => pace > 10)") and time.monotonic() < end:
                a.ask("GET", "none")
            browser.until_text("#pace", r"at most [0-9,]+ in the last")
            browser.until_text("#numbers", "Lookups that found one")
            browser.picture("page-sessions")
            # One by one: ThreadSanitizer knows at most 64 locks of a thread.
            for key in [EVIL * 3, *(f"sess:{n:030}" for n in range(589))]:
                a.ask("DEL", key)
            browser.until_text("#state", "0 sessions, 1 client")
            until(lambda: browser.run("return document.querySelector('#wheels .sum').textContent") == "0", "empty wheels", 0.05)
            browser.until_text("#largest-none", "no session")
            equal(browser.errors(), [])
            size = browser.run("return [...performance.getEntriesByType('navigation'), "
                               "...performance.getEntriesByType('resource')].reduce((a, e) => a + e.transferSize, 0)")
            check(0 < size < 100000, size)

    def test_a_token(self):
        with open("tokens", "w", encoding="utf-8") as file:
            for name, right in (("site", "read,write:sess:*"), ("looker", "read:*")):
                file.write(f"{name} sha256:{hashlib.sha256((name + 40 * 'x').encode()).hexdigest()} {right}\n")
        os.chmod("tokens", 0o600)
        with start("--auth-file", "tokens") as server, Browser("--window-size=1200,1700") as browser:
            browser.tell("url", url=url(server) + "/")
            browser.until_text("#state", "this needs a token")
            for name, said in (("site", "may not look at all keys"), ("looker", "0 sessions, ")):
                browser.type("#token", name + 40 * "x")
                browser.click("#login button")
                browser.until_text("#state", said)
            until(lambda: browser.run("return document.querySelectorAll('#week button').length") == 168, "the week", 0.05)


if __name__ == "__main__":
    main()
