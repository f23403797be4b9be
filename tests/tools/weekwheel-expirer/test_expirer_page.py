#!/usr/bin/env python3
"""The page of weekwheel-expirer, in Chromium, and the JSON behind it: when a Redis's keys end."""
# tier: check, waits
import json
import re
import socket

from browser import Browser
from expirer import Expirer, Lazy
from harness import PATIENCE, Case, check, equal, main, until
from sessiond import Client, encoded

DAY = 86400
# Nearer ones may end, or come into another hour, on a slow machine.
LIVES = [1800, 1800, 5400, 2 * DAY + DAY // 2, 10 * DAY]


def fill(redis, lives):
    with Client(redis.port) as client:
        client.send(b"".join(encoded("SET", f"sess:{n:030}", "v", "EX", life) for n, life in enumerate(lives)))
        for _ in lives:
            client.line()


def ask(expirer, path):
    status, body = expirer.get(path)
    equal(status, 200)
    return json.loads(body)


def known(expirer, count):
    until(lambda: ask(expirer, "/v1/stats")["sessions"] == count, "all are known")


class Json(Case):
    def test_keys_are_counted_by_when_they_end(self):
        with Lazy() as redis:
            redis.ask("SET", "no deadline", "v")
            fill(redis, LIVES)
            with Expirer(redis.url) as expirer:
                expirer.exact()
                equal(ask(expirer, "/v1/forecast?span=3600&count=3")["counts"], [2, 1, 0])
                equal(ask(expirer, "/v1/forecast?span=86400&count=7")["counts"], [3, 0, 1, 0, 0, 0, 0])
                said = ask(expirer, "/v1/sessions")
                equal([said[name] for name in ("sessions", "other_keys", "later", "never", "largest")], [5, 5, 1, 0, []])

    def test_numbers(self):
        with Lazy() as redis:
            fill(redis, LIVES)
            with Expirer(redis.url, "--window", "3h") as expirer:
                expirer.exact()
                stats = ask(expirer, "/v1/stats")
                equal([stats[name] for name in ("ready", "sessions", "expired", "window")], [True, 3, 0, 3 * 3600])
                equal(stats["nodes"], [{"node": f"127.0.0.1:{redis.port}", "sessions": 3, "exact": True}])
                check(stats["resident_bytes"] > 1 << 20 and stats["map_bytes"] > 0, stats)
                redis.ask("PEXPIRE", f"sess:{0:030}", 50)
                until(lambda: ask(expirer, "/v1/stats")["expired"] == 1, "it has ended")

    def test_it_is_asked_while_it_loses_redis_and_ends(self):
        with Lazy() as redis:
            fill(redis, [1000] * 50_000)
            with Expirer(redis.url) as expirer:
                expirer.exact()
                redis.kill()
                expirer.hear("is lost")
                # What is known is shown further on.
                equal(ask(expirer, "/v1/sessions")["sessions"], 50_000)
                equal(ask(expirer, "/v1/stats")["ready"], False)
                host, port = re.search(r"serving http://([0-9.]+):(\d+)/", expirer.said).groups()
                with socket.create_connection((host, int(port)), PATIENCE) as client:
                    client.sendall(b"GET /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                    equal(expirer.stop(), 0)


class Page(Case):
    def test_what_it_shows(self):
        with Lazy() as redis:
            fill(redis, [*(3600 * n + 1800 for n in range(1, 190))])
            with Expirer(redis.url) as expirer, Browser("--window-size=1200,1700") as browser:
                expirer.exact()
                at = re.search(r"serving (http://[0-9.:]+)/", expirer.said).group(1)
                browser.tell("url", url=at + "/")
                browser.until_text("#state", "189 sessions, 1 master")
                browser.until_text("#beyond", r"2[12] end later than in a week, 0 never")
                browser.until_text("#numbers", f"127.0.0.1:{redis.port}")
                until(lambda: browser.run("return document.querySelectorAll('#week button').length") == 168, "the week", 0.05)
                equal(browser.run("return document.getElementById('largest-part').hidden"), True)
                browser.until_text("#pace-title", "Changes of keys a second")
                equal(browser.errors(), [])


if __name__ == "__main__":
    main()
