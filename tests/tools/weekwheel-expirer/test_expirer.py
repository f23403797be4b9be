#!/usr/bin/env python3
"""weekwheel-expirer beside real Redis servers that expire nothing by themselves: what is told was asked for in time."""
# tier: check, waits
import os
import re
import shlex
import shutil
import signal
import socket
import threading
import time
import unittest

from expirer import EXPIRER, Ends, Expirer, Lazy
from harness import ROOT, Case, Redis, check, close_listener, equal, free_port, lack, main, matches, run, until
from masters import Sentinel
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
                at = now_ms(redis) + 3000
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
                redis.ask("SET", key, "v", "EX", 1000)
            until(lambda: expirer.metric("known") == 6, "all are known")
            redis.ask("EXPIRE", "later", 2000)
            redis.ask("PERSIST", "persisted")
            redis.ask("DEL", "deleted")
            redis.ask("RENAME", "renamed", "new")
            redis.ask("SET", "set", "another")
            redis.ask("PEXPIRE", "earlier", 100)
            equal(ends.wait("earlier"), ["earlier"])
            until(lambda: expirer.metric("known") == 2, "two are left")
            # Redis deletes at once, and tells no end, what a deadline finds passed when it is set: 1 ms may be, on a busy machine.
            redis.ask("PEXPIRE", "new", 100)
            equal(ends.wait("new"), ["earlier", "new"])
            redis.ask("PEXPIRE", "later", 100)
            equal(ends.wait("later"), ["earlier", "new", "later"])
            equal(redis.ask("EXISTS", "persisted", "set"), 2)

    def test_only_later_looks_nothing_up_for_a_touch(self):
        with Lazy() as redis, Ends(redis) as ends, Expirer(redis.url, "--only-later") as expirer:
            expirer.exact()
            redis.ask("SET", "touched", "v", "EX", 1000)
            until(lambda: expirer.metric("known") == 1, "it is known")
            looks, heard = expirer.metric("looked_up_total"), expirer.metric("heard_total")
            for _ in range(100):
                redis.ask("EXPIRE", "touched", 2000)
            until(lambda: expirer.metric("heard_total") >= heard + 100, "all touches are heard")
            equal(expirer.metric("looked_up_total"), looks)
            # Whichever deadline is found first, the last one counts.
            redis.ask("SET", "moved", "v", "PX", 300)
            redis.ask("PEXPIRE", "moved", 600)
            ends.wait("moved")

    def test_only_what_matches_and_only_one_database(self):
        with Lazy() as redis, Ends(redis, 3) as ends, Expirer(redis.url + "3", "--match", "sess:[ab]*") as expirer:
            expirer.exact()
            pipeline(redis, [("SET", "sess:a", "v", "PX", 50), ("SELECT", 3), ("SET", "cache:a", "v", "PX", 50),
                             ("SET", "sess:c", "v", "PX", 50), ("SET", "sess:b", "v", "EX", 1000)])
            until(lambda: expirer.metric("known") == 1, "one is known")
            pipeline(redis, [("SELECT", 3), ("PEXPIRE", "sess:b", 100)])
            equal(ends.wait("sess:b"), ["sess:b"])
            until(lambda: expirer.metric("known") == 0, "none is left")

    def test_without_pexpiretime(self):
        with Lazy("--rename-command", "PEXPIRETIME", "") as redis, Ends(redis) as ends:
            at = now_ms(redis) + 1000
            pipeline(redis, [("SET", f"key:{i}", "v", "PXAT", at) for i in range(KEYS)])
            with Expirer(redis.url):
                redis.ask("SET", "key", "v", "PX", 1200)
                ends.wait("key", *(f"key:{i}" for i in range(KEYS)))


class DeafRedis:
    """A server that answers as Redis until it is asked for many long keys at once, and then reads no more."""

    KEYS, LENGTH = 256, 60_000

    def __init__(self, times=b":-2\r\n"):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        self.ended = threading.Event()
        self.answers = {b"HELLO": encoded("server", "redis", "mode", "standalone", "role", "master"), b"CLIENT": b":1\r\n",
                        b"CONFIG": b"-ERR unknown command 'CONFIG'\r\n",
                        b"SUBSCRIBE": b"*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n", b"EXISTS": b":0\r\n",
                        b"PEXPIRETIME": times, b"PING": b"+PONG\r\n", b"TIME": encoded("1700000000", "0")}
        self.scans = 0
        self.threads = []

    def __enter__(self):
        self.threads.append(threading.Thread(target=self.accept))
        self.threads[0].start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        close_listener(self.listener)
        for thread in self.threads:
            thread.join()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.threads.append(threading.Thread(target=self.serve, args=(client,)))
            self.threads[-1].start()

    def scan(self):
        """The first is a try."""
        self.scans += 1
        count = 0 if self.scans == 1 else self.KEYS
        return b"*2\r\n$1\r\n0\r\n" + encoded(*(f"{i:0{self.LENGTH}}" for i in range(count)))

    def serve(self, client):
        with client, client.makefile("rb") as stream:
            try:
                while head := stream.readline():
                    words = []
                    for _ in range(int(head[1:])):
                        words.append(stream.read(int(stream.readline()[1:]) + 2)[:-2])
                    if self.scans > 1 and words[0] == b"PEXPIRETIME":
                        self.ended.wait()
                        return
                    client.sendall(self.scan() if words[0] == b"SCAN" else self.answers[words[0]])
            except OSError:
                pass


class Faults(Case):
    def test_a_flush_begins_a_pass(self):
        with Lazy() as redis, Ends(redis) as ends, Expirer(redis.url) as expirer:
            expirer.exact()
            pipeline(redis, [("SET", f"key:{i}", "v", "EX", 1000) for i in range(KEYS)])
            until(lambda: expirer.metric("known") == KEYS, "all are known")
            redis.ask("FLUSHALL")
            expirer.hear("A database was flushed")
            until(lambda: expirer.metric("exact") == 1 and expirer.metric("known") == 0, "none is known")
            redis.ask("SET", "after", "v", "PX", 50)
            ends.wait("after")

    def test_many_flushes_begin_few_passes_and_are_told_once(self):
        with Lazy() as redis, Expirer(redis.url) as expirer:
            expirer.exact()
            began = time.monotonic()
            for _ in range(50):
                redis.ask("FLUSHDB")
                redis.ask("PING")
            until(lambda: expirer.metric("passes_total") > 1, "a pass begins")
            # No more than one a second, besides the first pass.
            check(expirer.metric("passes_total") <= 2 + time.monotonic() - began, expirer.said)
            equal(expirer.said.count("was flushed"), 1)
            equal(expirer.said.count("Exact from now on"), 1)

    @staticmethod
    def stops_amid_changes(redis, expirer):
        """Whether some still wait to be looked up: this process may get no processor until all of them were."""
        redis.ask("EVAL", f"for i = 1, {5 * OTHERS} do redis.call('SET', 'key:' .. i, 'v', 'EX', 1000) end", 0)
        redis.process.send_signal(signal.SIGSTOP)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            if expirer.metric("waiting") > 0 and "has been silent" in expirer.said:
                return True
            time.sleep(0.02)
        return False

    def test_changes_that_wait_make_it_not_exact(self):
        with Lazy() as redis, Expirer(redis.url) as expirer:
            expirer.exact()
            while not self.stops_amid_changes(redis, expirer):
                redis.process.send_signal(signal.SIGCONT)
            expirer.hear("has waited for a second")
            until(lambda: expirer.metric("exact") == 0, "the numbers say so, too")
            check(expirer.metric("waiting") > 0 and expirer.metric("waiting_bytes") > 0, "they are counted")
            status, text = expirer.get("/readyz")
            equal(status, 503)
            matches("has waited for a second", text)
            redis.process.send_signal(signal.SIGCONT)
            expirer.hear("are looked up in time again")
            until(lambda: expirer.metric("exact") == 1 and expirer.metric("waiting") == 0, "none waits")

    def test_it_ends_while_redis_takes_nothing(self):
        with DeafRedis() as redis, Expirer(redis.url) as expirer:
            expirer.hear("has been silent")
            equal(expirer.stop(), 0)
            check("is lost" not in expirer.said, expirer.said)

    def test_redis_that_loads_is_asked_again(self):
        with DeafRedis(b"-LOADING Redis is loading the dataset in memory\r\n") as redis, Expirer(redis.url) as expirer:
            expirer.hear("PEXPIRETIME.*LOADING")

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
                redis.kill()
                expirer.hear("is lost: ", 2)
            # It ends, and has heard of no other master.
            matches(r"Redis at \S+ is left: it is asked no more\. \(after ", expirer.said)

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
            self.refused(f"redis://blind:secret@127.0.0.1:{redis.port}", "rights.*; the key that was tried is 'cart:'", "--match=cart:*")
            self.refused(f"redis://deaf:wrong@127.0.0.1:{redis.port}", "WRONGPASS .*: check user, password and rights")
            redis.ask("CONFIG", "SET", "requirepass", "secret")
            self.refused(redis.url, "NOAUTH .*: check user, password and rights")
            for url in (redis.url, replica.url):
                equal(run(1, EXPIRER, url).out, "")

    def test_other_servers(self):
        listener = old_redis()
        self.refused(f"redis://127.0.0.1:{listener.getsockname()[1]}", "a Redis from version 6 on is needed")
        close_listener(listener)
        with Redis() as node:
            self.refused(f"redis://127.0.0.1:{free_port()},127.0.0.1:{node.port}", "names several hosts, but .* no node of a cluster")
            self.refused(f"redis+sentinel://127.0.0.1:{node.port}/m", "no Sentinel: for a Redis write redis://")
            sentinel = Sentinel(node)
        with sentinel:
            self.refused(f"redis://127.0.0.1:{sentinel.port}", "is a Sentinel: write redis.sentinel://")
            self.refused(sentinel.url + "y", 'knows no master "my": SENTINEL MASTERS')

    def test_wrong_options(self):
        for words, pattern in ((["http://a"], "begins with redis://"), (["redis+sentinel://a"], "the name of the master"), ([], "URL: expected"),
                               (["redis://a", "redis://b"], "is given already"),
                               (["redis://a", "--redis=redis://b"], "--redis is given twice"), (["--redis=redis://b", "redis://a"], "is given already"),
                               (["--user", "a", "redis://a"], "--password-file"),
                               (["rediss://a/?ca=/none.pem"], "the file of authorities /none.pem: No such file"),
                               (["--listen", "127.0.0.1:0", "redis://a"], "listen")):
            matches(pattern, run(2, EXPIRER, *words).err)

    def test_no_message_shows_a_password(self):
        with open("twice", "w", encoding="utf-8") as file:
            file.write("redis = redis://u:pw1@a\nredis = redis://u:pw2@b\n")
        for words in (["redis://u:pw1@a", "redis://u:pw2@b"], ["--redis=redis://u:pw1@a", "redis://u:pw2@b"],
                      ["--redis=redis://u:pw1@a", "--redis=redis://u:pw2@b"], ["--config=twice"], ["http://u:pw1@a"]):
            said = run(2, EXPIRER, *words).err
            check("pw" not in said, said)


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

    @unittest.skipUnless(shutil.which("openssl"), lack("openssl"))
    def test_tls_and_a_socket(self):
        run(0, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key", "-out", "cert")
        port, cert, place = free_port(), os.path.abspath("cert"), os.path.abspath("socket")
        with Lazy("--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", os.path.abspath("key"), "--unixsocket", place,
                  "--tls-auth-clients", "no") as redis, Ends(redis) as ends:
            for number, url in enumerate((f"rediss://127.0.0.1:{port}/?ca={cert}", f"unix://{place}")):
                with Expirer(url) as expirer:
                    expirer.exact()
                    pipeline(redis, [("SET", f"key:{number}:{i}", "v", "PX", 300) for i in range(KEYS)])
                    ends.wait(*(f"key:{number}:{i}" for i in range(KEYS)))


class Manual(Case):
    with open(os.path.join(ROOT, "man", "weekwheel-expirer.1"), encoding="utf-8") as file:
        text = file.read().replace("\\-", "-").replace("\\(aq", "'")

    def test_its_rights_suffice_and_none_is_too_many(self):
        rights = shlex.split(re.findall(r"^ACL SETUSER expirer (.*)$", self.text, re.M)[0])
        old = shlex.split(re.findall(r"^ACL SETUSER expirer (.*)$", self.text, re.M)[1])
        equal(sorted(set(rights) - {"%R~*", "+pexpiretime"}), sorted(set(old) - {"~*", "resetchannels", "+hello"}))
        with Lazy() as redis, Ends(redis) as ends:
            url = f"redis://expirer:PASSWORD@127.0.0.1:{redis.port}"
            for number, words in enumerate((rights, old, [word.replace("%R~*", "%R~sess:*") for word in rights])):
                redis.ask("ACL", "DELUSER", "expirer")
                equal(redis.ask("ACL", "SETUSER", "expirer", *words), "+OK")
                with Expirer(url + "/0", *(("--match", "sess:*") if number == 2 else ())) as expirer:
                    expirer.exact()
                    redis.ask("SET", f"sess:{number}", "v", "PX", 50)
                    ends.wait(f"sess:{number}")
            # Those it can do without: a name in CLIENT LIST, PING and SELECT for a database of its own, one of two ways to ask.
            for word in set(rights) - {"on", ">PASSWORD", "+client|setname", "+ping", "+select", "+pexpiretime", "+pttl"}:
                redis.ask("ACL", "DELUSER", "expirer")
                redis.ask("ACL", "SETUSER", "expirer", *(right for right in rights if right != word))
                matches("NOPERM .*: check user, password and rights", run(1, EXPIRER, url).err, word)

    def test_keys_that_its_rights_do_not_cover_are_left_out(self):
        rights = shlex.split(re.findall(r"^ACL SETUSER expirer (.*)$", self.text, re.M)[0])
        with Lazy() as redis, Ends(redis) as ends:
            redis.ask("ACL", "SETUSER", "expirer", *rights)
            pipeline(redis, [("SET", key, "v", "PX", 60000) for key in ("", "cache:a", "sess:a")])
            with Expirer(f"redis://expirer:PASSWORD@127.0.0.1:{redis.port}") as expirer:
                expirer.exact()
                until(lambda: expirer.metric("known") == 2, "those are known that its rights cover")
                redis.ask("ACL", "SETUSER", "expirer", "resetkeys", "%R~sess:*")
                pipeline(redis, [("SET", key, "v", "PX", 100) for key in ("", "cache:a", "sess:a")])
                ends.wait("sess:a")
                until(lambda: expirer.metric("known") == 0, "none is kept")
                check("is lost" not in expirer.said, expirer.said)

    def test_the_log_says_why_redis_stays_lost(self):
        rights = shlex.split(re.findall(r"^ACL SETUSER expirer (.*)$", self.text, re.M)[0])
        with Lazy() as redis:
            redis.ask("ACL", "SETUSER", "expirer", *rights)
            with Expirer(f"redis://expirer:PASSWORD@127.0.0.1:{redis.port}") as expirer:
                expirer.exact()
                redis.ask("ACL", "SETUSER", "expirer", "-exists")
                redis.ask("SET", "a", "v", "PX", 100)
                expirer.hear("is lost: NOPERM .*'?exists'?")
                # At its next login it tries each right, and names the remedy.
                expirer.hear("is still lost: .*NOPERM .*exists.* has the rights that it needs")
                redis.ask("ACL", "SETUSER", "expirer", "+exists", "resetpass", ">other")
                expirer.hear("is still lost: .*WRONGPASS ")
                redis.ask("ACL", "SETUSER", "expirer", ">PASSWORD")
                expirer.exact(2)

    def test_each_option_has_an_entry(self):
        options = re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", run(0, EXPIRER, "--help").out, re.M)
        said = [option for line in re.findall(r"^\.TP\n(.*)$", self.text, re.M) for option in re.findall(r"--[a-z-]+", line)]
        equal(said, options)

    def test_each_number_is_named(self):
        with Lazy() as redis, Expirer(redis.url) as expirer:
            names = re.findall(r"^# TYPE weekwheel_expirer_(\S+)", expirer.get("/metrics")[1], re.M)
            section = re.search(r"^\.SH HEALTH AND NUMBERS\n(.*?)^\.SH", self.text, re.M | re.S)[1]
            own = [name for name in names if not re.match("build_info|state|uptime|auth|http", name)]
            for name in own:
                check(name in section, name)


main()
