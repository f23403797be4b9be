#!/usr/bin/env python3
"""weekwheel-expirer beside real Redis servers that expire nothing by themselves: what is told was asked for in time."""
# tier: check, waits
import os
import signal
import socket
import threading

from expirer import EXPIRER, Ends, Expirer, Lazy
from harness import Case, Redis, check, close_listener, equal, free_port, main, matches, run, until
from sessiond import Client, encoded

KEYS, OTHERS = 1000, 20_000


def pipeline(redis, commands):
    """Send commands at once, and read their answers."""
    with Client(redis.port) as client:
        client.send(b"".join(encoded(*command) for command in commands))
        for _ in commands:
            client.line()


def now_ms(redis):
    seconds, rest = redis.ask("TIME")
    return int(seconds) * 1000 + int(rest) // 1000


class Times(Case):
    def test_all_of_one_deadline_end_and_none_is_asked_for_early(self):
        with Lazy() as redis, Ends(redis) as ends:
            pipeline(redis, [("SET", f"other:{i}", "v", "EX", 1000 + i) for i in range(OTHERS)] +
                     [("SET", f"none:{i}", "v") for i in range(100)])
            with Expirer(redis.url) as expirer:
                expirer.exact()
                equal(expirer.metric("known"), OTHERS)
                equal(expirer.get("/readyz"), (200, "ok\n"))
                at = now_ms(redis) + 1000
                pipeline(redis, [("SET", f"key:{i}", "v", "PXAT", at) for i in range(KEYS)])
                equal(len(ends.wait(*(f"key:{i}" for i in range(KEYS)))), KEYS)
                check(now_ms(redis) > at, "the deadline has passed")
                until(lambda: expirer.metric("told_total") == KEYS, "all are counted")
                equal((expirer.metric("due_total"), expirer.metric("later_total")), (KEYS, 0))
                equal(expirer.metric("lateness_seconds_count"), KEYS)
                equal(expirer.metric("known"), OTHERS)

    def test_keys_from_before_the_start_end(self):
        with Lazy() as redis, Ends(redis) as ends:
            at = now_ms(redis) + 1500
            pipeline(redis, [("SET", f"key:{i}", "v", "PXAT", at) for i in range(KEYS)])
            with Expirer(redis.url):
                ends.wait(*(f"key:{i}" for i in range(KEYS)))

    def test_changes_are_followed(self):
        with Lazy() as redis, Ends(redis) as ends, Expirer(redis.url) as expirer:
            expirer.exact()
            for key in ("earlier", "later", "persisted", "deleted", "renamed", "set"):
                redis.ask("SET", key, "v", "PX", 60000 if key == "earlier" else 1000)
            until(lambda: expirer.metric("known") == 6, "all are known")
            redis.ask("PEXPIRE", "earlier", 100)
            redis.ask("PEXPIRE", "later", 60000)
            redis.ask("PERSIST", "persisted")
            redis.ask("DEL", "deleted")
            redis.ask("RENAME", "renamed", "new")
            redis.ask("SET", "set", "another")
            equal(ends.wait("earlier"), ["earlier"])
            equal(ends.wait("new"), ["earlier", "new"])
            until(lambda: expirer.metric("known") == 1, "one is left")
            redis.ask("PEXPIRE", "later", 1)
            equal(ends.wait("later"), ["earlier", "new", "later"])
            equal(redis.ask("EXISTS", "persisted", "set"), 2)

    def test_only_later_looks_nothing_up_for_a_touch(self):
        with Lazy() as redis, Ends(redis) as ends, Expirer(redis.url, "--only-later") as expirer:
            expirer.exact()
            redis.ask("SET", "a", "v", "PX", 2000)
            until(lambda: expirer.metric("known") == 1, "it is known")
            looks, heard = expirer.metric("looked_up_total"), expirer.metric("heard_total")
            for _ in range(100):
                redis.ask("PEXPIRE", "a", 3000)
            until(lambda: expirer.metric("heard_total") >= heard + 100, "all touches are heard")
            equal(expirer.metric("looked_up_total"), looks)
            ends.wait("a")
            equal(expirer.metric("later_total"), 1)

    def test_only_what_matches_and_only_one_database(self):
        with Lazy() as redis, Ends(redis, 3) as ends, Expirer(redis.url + "3", "--match", "sess:[ab]*") as expirer:
            expirer.exact()
            pipeline(redis, [("SET", "sess:a", "v", "PX", 50), ("SELECT", 3), ("SET", "cache:a", "v", "PX", 50),
                             ("SET", "sess:c", "v", "PX", 50), ("SET", "sess:b", "v", "PX", 300)])
            equal(ends.wait("sess:b"), ["sess:b"])
            equal(expirer.metric("due_total"), 1)

    def test_without_pexpiretime(self):
        with Lazy("--rename-command", "PEXPIRETIME", "") as redis, Ends(redis) as ends:
            at = now_ms(redis) + 1000
            pipeline(redis, [("SET", f"key:{i}", "v", "PXAT", at) for i in range(KEYS)])
            with Expirer(redis.url):
                redis.ask("SET", "key", "v", "PX", 1200)
                ends.wait("key", *(f"key:{i}" for i in range(KEYS)))


class Faults(Case):
    def test_a_flush_begins_a_pass(self):
        with Lazy() as redis, Ends(redis) as ends, Expirer(redis.url) as expirer:
            expirer.exact()
            pipeline(redis, [("SET", f"key:{i}", "v", "EX", 1000) for i in range(KEYS)])
            until(lambda: expirer.metric("known") == KEYS, "all are known")
            redis.ask("FLUSHALL")
            expirer.hear("A database was flushed")
            expirer.exact(2)
            until(lambda: expirer.metric("known") == 0, "none is known")
            redis.ask("SET", "after", "v", "PX", 50)
            ends.wait("after")

    def test_redis_starts_anew(self):
        with Lazy() as redis, Expirer(redis.url) as expirer:
            expirer.exact()
            redis.ask("SET", "kept", "v", "EX", 1000)
            redis.kill()
            expirer.hear("is lost: ")
            equal(expirer.get("/readyz")[0], 503)
            redis.start()
            redis.be_lazy()
            expirer.exact(2)
            with Ends(redis) as ends:
                redis.ask("PEXPIRE", "kept", 50)
                ends.wait("kept")
            equal(expirer.get("/readyz")[0], 200)

    def test_it_waits_for_a_redis_that_is_not_there_yet(self):
        with Lazy() as redis:
            redis.kill()
            with Expirer(redis.url) as expirer:
                expirer.hear("is lost: ")
                redis.start()
                expirer.exact()

    def test_a_stopped_redis_is_asked_when_it_goes_on(self):
        with Lazy() as redis, Ends(redis) as ends, Expirer(redis.url) as expirer:
            expirer.exact()
            pipeline(redis, [("SET", f"key:{i}", "v", "PX", 500) for i in range(KEYS)])
            redis.process.send_signal(signal.SIGSTOP)
            expirer.hear("has been silent")
            redis.process.send_signal(signal.SIGCONT)
            ends.wait(*(f"key:{i}" for i in range(KEYS)))
            expirer.hear("answers again")

    def test_connections_that_are_cut_are_made_anew(self):
        with Lazy() as redis, Ends(redis) as ends, Expirer(redis.url) as expirer:
            expirer.exact()
            for times, (kind, key) in enumerate((("pubsub", "one"), ("normal", "two")), 2):
                redis.ask("SET", key, "v", "EX", 1000)
                ends.client.socket.close()
                redis.ask("CLIENT", "KILL", "TYPE", kind)
                expirer.exact(times)
                ends = Ends(redis)
                redis.ask("PEXPIRE", key, 50)
                ends.wait(key)
            ends.client.socket.close()

    def test_a_master_that_becomes_a_replica_is_left(self):
        with Lazy() as redis, Expirer(redis.url) as expirer:
            expirer.exact()
            redis.ask("REPLICAOF", "127.0.0.1", free_port())
            expirer.hear("it is a replica now")
            redis.ask("REPLICAOF", "NO", "ONE")
            expirer.exact(2)


def old_redis():
    """A server that knows no HELLO. Returns its socket."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(client):
        with client:
            while data := client.recv(4096):
                client.sendall(b"+PONG\r\n" if b"PING" in data else b"-ERR unknown command 'HELLO'\r\n")

    def accept():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


class Refused(Case):
    def refused(self, url, pattern, *options, status=1):
        matches(pattern, run(status, EXPIRER, *options, url).err)

    def test_what_is_wrong_is_named_with_the_remedy(self):
        with Redis() as redis, Redis(folder="replica") as replica:
            replica.ask("REPLICAOF", "127.0.0.1", redis.port)
            self.refused(replica.url, "is a replica, where nothing expires: give the address of its master")
            self.refused(redis.url + "99", "DB index is out of range: check the address")
            for name, rules in (("nothing", ()), ("deaf", ("allkeys", "+@all", "resetchannels")),
                                ("blind", ("~sess:*", "+@all", "allchannels"))):
                redis.ask("ACL", "SETUSER", name, "on", ">secret", *rules)
                self.refused(f"redis://{name}:secret@127.0.0.1:{redis.port}", "NOPERM .*: check user, password and rights")
            self.refused(f"redis://deaf:wrong@127.0.0.1:{redis.port}", "WRONGPASS .*: check user, password and rights")
            redis.ask("CONFIG", "SET", "requirepass", "secret")
            self.refused(redis.url, "NOAUTH .*: check user, password and rights")
            for url in (redis.url, replica.url):
                equal(run(1, EXPIRER, url).out, "")

    def test_other_servers(self):
        listener = old_redis()
        self.refused(f"redis://127.0.0.1:{listener.getsockname()[1]}", "a Redis from version 6 on is needed")
        close_listener(listener)
        with Redis("--cluster-enabled", "yes") as node:
            self.refused(node.url, "a node of a cluster, which this version does not serve")

    def test_wrong_options(self):
        for words, pattern in ((["http://a"], "begins with redis://"), (["redis://a,b"], "several hosts"), ([], "URL: expected"),
                               (["redis://a", "redis://b"], "is given already"), (["--user", "a", "redis://a"], "--password-file"),
                               (["--listen", "127.0.0.1:0", "redis://a"], "listen")):
            matches(pattern, run(2, EXPIRER, *words).err)


class Settings(Case):
    def test_a_file_and_a_password(self):
        with Lazy() as redis, Ends(redis) as ends:
            redis.ask("ACL", "SETUSER", "watcher", "on", ">secret", "allkeys", "allchannels", "+@all")
            for name, text in (("password", "secret\n"), ("config", f"redis = {redis.url}\nuser = watcher\npassword-file = password\n"
                                                          "match = sess:*\nlog-format = json\nhttp = 127.0.0.1:0\n")):
                with open(name, "w", encoding="utf-8") as file:
                    file.write(text)
            os.chmod("password", 0o600)
            with Expirer("--config=config") as expirer:
                expirer.hear('"message":"Exact from now on')
                redis.ask("SET", "sess:1", "v", "PX", 50)
                ends.wait("sess:1")


main()
