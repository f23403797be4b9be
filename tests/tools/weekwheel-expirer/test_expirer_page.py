#!/usr/bin/env python3
"""When a Redis's keys end: the page of weekwheel-expirer, in Chromium, the JSON behind it, and `weekwheel sessions http://...`."""
# tier: check, waits
import datetime
import json
import os
import re
import signal
import socket
import time
import urllib.parse

from browser import Browser
from expirer import Expirer, Lazy
from harness import PATIENCE, WEEKWHEEL, Case, check, equal, main, matches, run, until
from masters import LazyCluster, slot_of
from sessiond import Client, Sessiond, encoded

DAY = 86400
SECRET = "a-secret-that-is-long-enough-for-this"
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


def at(server):
    until(lambda: "serving http://" in server.said, "it serves HTTP")
    return re.search(r"serving (http://[0-9.:]+)/", server.said).group(1)


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
                host, port = at(expirer)[7:].split(":")
                with socket.create_connection((host, int(port)), PATIENCE) as client:
                    client.sendall(b"GET /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                    equal(expirer.stop(), 0)


class Keys(Case):
    """What is known of a single key, and how."""

    @staticmethod
    def known(expirer, key):
        return ask(expirer, "/v1/key?key=" + urllib.parse.quote(key, safe=""))

    def test_how_a_deadline_is_known(self):
        strange = b"a b/\xc3\xa4%\xff&key=x"
        with Lazy() as redis, Expirer(redis.url) as expirer:
            expirer.exact()
            end = int(time.time() * 1000) + 1000 * DAY
            with Client(redis.port) as client:
                for key in (b"sess:ada", strange):
                    client.ask("SET", key, "v", "PXAT", end)
                client.ask("SET", "no deadline", "v")
            until(lambda: expirer.metric("known") == 2, "both are known")
            for key in (b"sess:ada", strange):
                found = self.known(expirer, key)
                equal([found[name] for name in ("kept", "exact", "how", "node")], [True, True, "sure", f"127.0.0.1:{redis.port}"])
                equal(datetime.datetime.fromisoformat(found["deadline"].replace("Z", "+00:00")).timestamp() * 1000, end)
                check(0 < found["left"] <= DAY + 1, found)
            for key in ("no deadline", "sess"):
                equal(self.known(expirer, key), {"kept": False, "exact": True})
            equal(expirer.get("/v1/key")[0], 400)
            equal(expirer.get("/v1/key?key=")[0], 400)
            redis.kill()
            expirer.hear("is lost")
            until(lambda: self.known(expirer, "sess:ada")["how"] == "unsure", "it may have changed")
            equal(self.known(expirer, "sess")["kept"], False)

    def test_a_touch_without_a_look_up_makes_it_unsure(self):
        """Deadlines only move on: the new one is looked up at the old one."""
        with Lazy() as redis, Expirer(redis.url, "--only-later") as expirer:
            expirer.exact()
            redis.ask("SET", "a", "v", "EX", DAY)
            until(lambda: expirer.metric("known") == 1, "it is known")
            redis.ask("EXPIRE", "a", 2 * DAY)
            until(lambda: self.known(expirer, "a")["how"] == "unsure", "the change is reported")
            check(self.known(expirer, "a")["left"] <= DAY, "it is the old one")

    def test_by_events_none_is_sure(self):
        with Lazy() as redis:
            redis.ask("CONFIG", "SET", "notify-keyspace-events", "Egx")
            redis.ask("SET", "a", "v", "EX", DAY)
            with Expirer(redis.url, "--changes=events") as expirer:
                expirer.exact()
                equal(self.known(expirer, "a")["how"], "unsure")

    def test_one_that_redis_keeps_is_asked_for(self):
        """It does not answer."""
        with Lazy() as redis, Expirer(redis.url) as expirer:
            expirer.exact()
            redis.ask("SET", "a", "v", "PX", 2000)
            until(lambda: expirer.metric("known") == 1, "it is known")
            redis.process.send_signal(signal.SIGSTOP)
            until(lambda: self.known(expirer, "a").get("how") == "asked", "its deadline has passed")
            redis.process.send_signal(signal.SIGCONT)
            until(lambda: not self.known(expirer, "a")["kept"], "it has ended")

    def test_keys_of_a_cluster(self):
        with LazyCluster() as cluster, Expirer(cluster.url) as expirer:
            expirer.exact(3)
            for number in range(30):
                cluster.ask(f"sess:{number}", ("SET", f"sess:{number}", "v", "EX", DAY))
            until(lambda: expirer.metric("known") == 30, "all are known")
            for number in range(30):
                equal(self.known(expirer, f"sess:{number}")["node"], f"127.0.0.1:{cluster.owner(slot_of(f'sess:{number}')).port}")

    def test_in_a_terminal(self):
        with Lazy() as redis, Expirer(redis.url) as expirer:
            expirer.exact()
            redis.ask("SET", "a b", "v", "EX", 2 * DAY)
            until(lambda: expirer.metric("known") == 1, "it is known")
            words = (WEEKWHEEL, "sessions", "--key", "a b")
            said = run(0, *words, at(expirer)).out
            matches(rf"^'a b' ends in .*, at 20.*Z by the clock of 127.0.0.1:{redis.port}. Redis said so, and has reported", said)
            found = json.loads(run(0, *words, "--json", at(expirer)).out)
            check(DAY * 1000 < found.pop("left_ms") <= 2 * DAY * 1000 + 1, found)
            matches("^20.*Z$", found.pop("deadline"))
            equal(found, {"kept": True, "exact": True, "how": "sure", "node": f"127.0.0.1:{redis.port}"})
            matches("^'sess' is not kept: it has no deadline, is gone", run(0, WEEKWHEEL, "sessions", "-k", "sess", at(expirer)).out)
            none = {"kept": False, "exact": True, "how": None, "deadline": None, "node": None, "left_ms": None}
            equal(json.loads(run(0, WEEKWHEEL, "sessions", "-k", "sess", "--json", at(expirer)).out), none)
            matches("redis-cli pexpiretime KEY", run(2, *words, f"127.0.0.1:{redis.port}").err)
            matches("--key is empty", run(2, WEEKWHEEL, "sessions", "--key", "", at(expirer)).err)


class Command(Case):
    def test_it_shows_what_an_expirer_has_counted(self):
        with Lazy() as redis:
            fill(redis, LIVES)
            with Expirer(redis.url) as expirer:
                expirer.exact()
                found = json.loads(run(0, WEEKWHEEL, "sessions", "--json", at(expirer) + "/").out)
                equal(found["expire_within"], {"minute": 0, "hour": 2, "day": 1, "week": 1, "later": 1, "never": 0})
                equal(found["days"], [3, 0, 1, 0, 0, 0, 0])
                equal([found[name] for name in ("sessions", "other_keys", "largest")], [5, 5, []])
                said = run(0, WEEKWHEEL, "sessions", at(expirer)).out
                matches(r"has 5 sessions\.\n\nThey expire\n", said)
                matches("within an hour +2  ####", said)
                matches("--match or --db", run(2, WEEKWHEEL, "sessions", "--match", "a*", at(expirer)).err)
                # Redis itself speaks another protocol.
                matches("the connection was lost", run(1, WEEKWHEEL, "sessions", f"http://127.0.0.1:{redis.port}").err)

    def test_it_shows_what_a_server_of_sessions_has_counted(self):
        with open("password", "w", encoding="utf-8") as file:
            file.write(SECRET + "\n")
        os.chmod("password", 0o600)
        with Sessiond("--http", "127.0.0.1:0", "--requirepass-file", "password") as server, server.client() as client:
            client.ask("AUTH", SECRET)
            client.ask("SET", "sess:0123456789", "v" * 1000, "EX", 1800)
            client.ask("SET", "sess:forever", "v" * 10)
            matches("this needs a token", run(1, WEEKWHEEL, "sessions", at(server)).err)
            found = json.loads(run(0, WEEKWHEEL, "sessions", "--json", "--token-file", "password", at(server)).out)
            equal([found[name] for name in ("sessions", "value_bytes", "other_keys")], [2, 1010, 0])
            equal([(one["key"], one["cut"], one["bytes"]) for one in found["largest"]],
                  [("sess:01", True, 1000), ("sess:f", True, 10)])
            check(1_700_000 < found["largest"][0]["left_ms"] <= 1_800_000 and found["largest"][1]["left_ms"] is None, found)
            matches("only that knows about single keys", run(1, WEEKWHEEL, "sessions", "--key", "a", "--token-file", "password", at(server)).err)
            matches("1000 B  'sess:01'", run(0, WEEKWHEEL, "sessions", "--token-file", "password", at(server)).out)


class Page(Case):
    def test_what_it_shows(self):
        with Lazy() as redis:
            fill(redis, [*(3600 * n + 1800 for n in range(1, 190))])
            with Expirer(redis.url) as expirer, Browser("--window-size=1200,1700") as browser:
                expirer.exact()
                browser.tell("url", url=at(expirer) + "/")
                browser.until_text("#state", "189 sessions, 1 master")
                browser.until_text("#beyond", r"2[12] end later than in a week, 0 never")
                browser.until_text("#numbers", f"127.0.0.1:{redis.port}")
                until(lambda: browser.run("return document.querySelectorAll('#week button').length") == 168, "the week", 0.05)
                equal(browser.run("return document.getElementById('largest-part').hidden"), True)
                browser.until_text("#pace-title", "Changes of keys a second")
                equal(browser.errors(), [])


if __name__ == "__main__":
    main()
