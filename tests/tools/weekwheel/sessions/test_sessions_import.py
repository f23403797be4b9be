#!/usr/bin/env python3
"""weekwheel sessions import: sessions move from a Redis to weekwheel-sessiond, pass after pass, while both are in use."""
# tier: check, waits
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from harness import WEEKWHEEL, Case, Redis, Relay, check, environment, equal, free_port, lack, main, matches, need_redis, run, until
from masters import LazyCluster, slot_of
from sessiond import Sessiond

VALUE = bytes(range(256)) * 3
HOUR = 3600 * 1000
OK = b"+OK\r\n"


def bulk(value):
    value = value.encode() if isinstance(value, str) else value
    return b"$%d\r\n%s\r\n" % (len(value), value)


def certificate(name, signer=None):
    """Make NAME.pem with a certificate and NAME.key with its key, signed by itself or by another."""
    signed = ("-CA", signer + ".pem", "-CAkey", signer + ".key") if signer else ()
    run(0, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", name + ".key", "-out", name + ".pem", *signed)


class Imports(Case):
    def setUp(self):
        need_redis()
        super().setUp()
        self.redis = self.enterContext(Redis())
        self.server = self.enterContext(Sessiond())
        self.client = self.enterContext(self.server.client())

    def url(self, tail=""):
        return f"redis://127.0.0.1:{self.redis.port}{tail}"

    def words(self, *arguments):
        return WEEKWHEEL, "sessions", "import", "--from", self.url(), *arguments, f"127.0.0.1:{self.server.port}"

    def go(self, *arguments, status=0):
        return run(status, *self.words(*arguments))

    def counts(self, *arguments, status=0):
        return json.loads(self.go("--json", *arguments, status=status).out)

    def test_values_and_deadlines_are_taken(self):
        with self.server.client() as client:
            end = int(time.time() * 1000) + HOUR + 7
            for number in range(1000):
                self.redis.ask("SET", f"sess:{number}", f"value {number}", "PXAT", str(end + number))
            self.redis.ask("SET", "forever", "x" * 100000)
            self.redis.ask("EVAL", "redis.call('SET', 'bytes\\0\\r\\n', string.rep('\\0\\1\\255\\r\\n', 100), 'PX', 100000)", "0")
            self.redis.ask("SET", "short", "x", "PX", "1")
            until(lambda: self.redis.ask("EXISTS", "short") == 0, "an end")
            equal(self.counts(), {"read": 1002, "set": 1002, "same": 0, "kept": 0, "removed": 0, "others": 0})
            equal(client.ask("DBSIZE"), b":1002\r\n")
            for number in (0, 1, 999):
                equal(client.ask("GET", f"sess:{number}"), bulk(f"value {number}"))
                equal(client.ask("PEXPIRETIME", f"sess:{number}"), b":%d\r\n" % (end + number))
            equal(client.ask("GET", "forever"), bulk("x" * 100000))
            equal(client.ask("TTL", "forever"), b":-1\r\n")
            equal(client.ask("GET", b"bytes\0\r\n"), bulk(b"\0\1\xff\r\n" * 100))
            # What is there is not set again.
            equal(self.counts(), {"read": 1002, "set": 0, "same": 1002, "kept": 0, "removed": 0, "others": 0})
            self.redis.ask("SET", "sess:0", "another", "PXAT", str(end + HOUR))
            self.redis.ask("SET", "new", "x", "EX", "100")
            equal(self.counts()["set"], 2)
            equal(client.ask("GET", "sess:0"), bulk("another"))

    def test_what_was_used_here_last_stays(self):
        self.redis.ask("MSET", "a", "old", "b", "old")
        for key in "ab":
            self.redis.ask("PEXPIRE", key, str(HOUR))
        equal(self.counts()["set"], 2)
        equal(self.client.ask("SET", "a", "here", "PX", str(2 * HOUR)), OK)
        self.redis.ask("SET", "b", "there", "PX", str(3 * HOUR))
        said = self.go().out
        matches("^2 sessions there; 1 set, 0 as they were, 1 kept as they are here$", said)
        equal(self.client.ask("MGET", "a", "b"), b"*2\r\n" + bulk("here") + bulk("there"))

    def test_only_some_and_other_databases(self):
        self.redis.ask("MSET", "sess:1", "x", "other", "x")
        equal(self.counts("--match", "sess:*", "--db", "3")["set"], 1)
        equal(self.client.ask("DBSIZE"), b":0\r\n")
        equal(self.client.ask("SELECT", "3") + self.client.ask("KEYS", "*"), OK + b"*1\r\n" + bulk("sess:1"))
        result = run(0, WEEKWHEEL, "sessions", "import", "--from", self.url("/5"), f"127.0.0.1:{self.server.port}")
        matches("^0 sessions there; 0 set", result.out)

    def test_a_dry_run_changes_nothing(self):
        self.redis.ask("SET", "a", "x", "EX", "100")
        matches("^1 session there; 1 to be set, 0 as they were$", self.go("--dry-run").out)
        equal(self.client.ask("DBSIZE"), b":0\r\n")

    def test_what_is_no_string_is_named_and_counted(self):
        self.redis.ask("SET", "a", "x")
        for number in range(25):
            self.redis.ask("HSET", f"hash:{number}", "field", "x")
        result = self.go(status=1)
        matches("'hash:[0-9]*' is no string, such as a hash, and is not taken", result.err)
        equal(result.err.count("is not taken"), 20)
        matches("5 more are no strings", result.err)
        matches("^1 session there; 1 set, 0 as they were; 25 keys not taken$", result.out)

    def following(self):
        process = subprocess.Popen(self.words("--follow", "--json"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def test_following_it_takes_and_removes(self):
        """Until it is stopped. What was used here is not removed with the source's, and is not brought back."""
        for key in ("stays", "goes", "used", "logged out"):
            self.redis.ask("SET", key, "x", "PX", str(HOUR))
        process = self.following()
        until(lambda: self.client.ask("DBSIZE") == b":4\r\n", "the first pass")
        equal(self.client.ask("PEXPIRE", "used", str(2 * HOUR)) + self.client.ask("DEL", "logged out"), b":1\r\n:1\r\n")
        self.redis.ask("DEL", "goes", "used")
        self.redis.ask("SET", "new", "x")
        until(lambda: self.client.ask("EXISTS", "goes") == b":0\r\n" and self.client.ask("EXISTS", "new") == b":1\r\n", "a later pass")
        equal(self.client.ask("EXISTS", "stays", "used"), b":2\r\n")
        equal(self.client.ask("EXISTS", "logged out"), b":0\r\n")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
        equal(process.returncode, 0)
        said = json.loads(out)
        equal((said["set"], said["removed"], said["others"]), (5, 1, 0))

    def test_what_was_deleted_here_stays_so_while_the_source_uses_it(self):
        """Set by the import, or used here since: another process of the source touches it, time and again."""
        for key in ("mine", "forever", "used", "over", "stays"):
            self.redis.ask("SET", key, "x", *(() if key == "forever" else ("PX", str(HOUR))))
        process = self.following()
        until(lambda: self.client.ask("DBSIZE") == b":5\r\n", "the first pass")
        # What is over here was not deleted: the source has used it since.
        equal(self.client.ask("PEXPIRE", "over", "1"), b":1\r\n")
        until(lambda: self.client.ask("EXISTS", "over") == b":0\r\n", "an end")
        equal(self.client.ask("SET", "used", "here", "PX", str(3 * HOUR)), OK)
        self.redis.ask("SET", "used", "there", "PX", str(2 * HOUR))
        equal(self.client.ask("PEXPIRE", "stays", str(3 * HOUR)), b":1\r\n")
        self.redis.ask("PEXPIRE", "stays", str(2 * HOUR))
        self.passed("1")
        equal(self.client.ask("GET", "used"), bulk("here"))
        # It is not from the source, and does not go with it.
        self.redis.ask("DEL", "stays")
        equal(self.client.ask("DEL", "mine", "forever", "used"), b":3\r\n")
        for number in range(2, 4):
            self.redis.ask("PEXPIRE", "mine", str(HOUR * number))
            for key in ("forever", "used"):
                self.redis.ask("SET", key, f"again {number}", "PX", str(HOUR * number))
            self.passed(str(number))
            equal(self.client.ask("EXISTS", "mine", "forever", "used"), b":0\r\n")
        equal(self.client.ask("GET", "stays"), bulk("x"))
        # What is gone there, too, may begin anew.
        self.redis.ask("DEL", "mine")
        self.passed("4")
        self.redis.ask("SET", "mine", "new")
        until(lambda: self.client.ask("GET", "mine") == bulk("new"), "a new one")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
        equal((json.loads(out)["kept"], json.loads(out)["removed"]), (8, 0))

    def passed(self, name):
        """Wait for two keys, the second set when the first has come: between them a whole pass has begun and ended."""
        for part in "ab":
            self.redis.ask("SET", f"pass {name}{part}", "x")
            until(lambda part=part: self.client.ask("EXISTS", f"pass {name}{part}") == b":1\r\n", "a pass")

    def test_equal_deadlines_do_not_say_which_is_later(self):
        with Redis("--rename-command", "PEXPIRETIME", "", folder="older") as older:
            end = str(int(time.time() * 1000) + HOUR)
            for key in ("equal", "forever", "later"):
                older.ask("SET", key, "there", *(() if key == "forever" else ("PXAT", end)))
                equal(self.client.ask("SET", key, "here", *(() if key == "forever" else ("PXAT", end))), OK)
            # What is left is rounded, and the clocks are read at different times.
            older.ask("PEXPIRE", "later", str(HOUR + 60000))
            older.ask("PEXPIREAT", "equal", str(int(end) + 500))
            words = [word.replace(self.url(), f"redis://127.0.0.1:{older.port}") for word in self.words("--json")]
            said = json.loads(run(0, *words).out)
            equal((said["set"], said["kept"]), (1, 2))
            equal(self.client.ask("MGET", "equal", "forever", "later"), b"*3\r\n" + bulk("here") * 2 + bulk("there"))

    def test_a_key_that_comes_twice_in_a_page_counts_once(self):
        self.redis.ask("SET", "a", "x")
        page = b"*1\r\n$1\r\na\r\n"
        with Relay(self.redis.port, b"", None, lambda data: data.replace(page, b"*2" + page[2:] + page[4:])) as relay:
            words = [word.replace(self.url(), "redis://" + relay.address) for word in self.words("--json")]
            said = json.loads(run(0, *words).out)
        equal((said["read"], said["set"], said["same"]), (1, 1, 0))

    def stopped(self, *arguments):
        """Begin to import much, and send SIGTERM after some of it."""
        self.redis.ask("EVAL", "for i = 1, 20000 do redis.call('SET', 'k' .. i, string.rep('x', 1000), 'EX', 10000) end", "0")
        left = [5 << 20]

        def stop(data):
            if left[0] > 0 >= left[0] - len(data):
                process.send_signal(signal.SIGTERM)
            left[0] -= len(data)
            return data
        with Relay(self.redis.port, b"", None, stop) as relay:
            words = [word.replace(self.url(), "redis://" + relay.address) for word in self.words(*arguments)]
            process = subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, text=True)
            out, _ = process.communicate()
        return process.returncode, out

    def test_a_pass_can_be_stopped(self):
        equal(self.stopped(), (-signal.SIGTERM, ""))
        equal(self.client.ask("FLUSHALL"), OK)
        equal(self.client.ask("SET", "mine", "x"), OK)
        status, out = self.stopped("--follow", "--json")
        equal(status, 0)
        said = json.loads(out)
        check(0 < said["set"] < 20000, said)
        equal((said["read"], said["removed"]), (said["set"], 0))
        equal(self.client.ask("DBSIZE"), b":%d\r\n" % (said["set"] + 1))

    @unittest.skipUnless(shutil.which("openssl"), lack("openssl"))
    def test_each_side_has_its_own_files_for_tls(self):
        for name, signer in (("ca", None), ("server", "ca"), ("client", "ca"), ("other", None)):
            certificate(name, signer)
        path = os.path.abspath
        port = free_port()
        with Redis("--tls-port", str(port), "--tls-cert-file", path("server.pem"), "--tls-key-file", path("server.key"),
                   "--tls-ca-cert-file", path("ca.pem"), folder="tls") as redis:
            redis.ask("SET", "a", "x")

            def go(status, tail, *arguments):
                return run(status, WEEKWHEEL, "sessions", "import", "--json", "--from", f"rediss://127.0.0.1:{port}/{tail}", *arguments,
                           f"127.0.0.1:{self.server.port}")
            own = ("--tls-ca", path("ca.pem"), "--tls-cert", path("client.pem"), "--tls-key", path("client.key"))
            others = ("--tls-ca", path("other.pem"), "--tls-cert", path("other.pem"), "--tls-key", path("other.key"))
            files = f"?ca={path('ca.pem')}&cert={path('client.pem')}&key={path('client.key')}"
            matches("trust with .ca=FILE in --from", go(1, "", *own).err)
            # The target's certificate is not shown to the source.
            go(1, f"?ca={path('ca.pem')}", *own)
            equal(json.loads(go(0, files, *others).out)["set"], 1)

    def test_a_source_that_goes_is_named(self):
        """In the middle: what is here stays, and another import takes the rest."""
        self.redis.ask("EVAL", "for i = 1, 20000 do redis.call('SET', 'k' .. i, string.rep('x', 1000), 'EX', 10000) end", "0")
        left = [5 << 20]

        def cut(data):
            left[0] -= len(data)
            return data if left[0] > 0 else None
        with Relay(self.redis.port, b"", None, cut) as relay:
            words = [word.replace(self.url(), "redis://" + relay.address) for word in self.words()]
            result = run(1, *words)
        matches(relay.address + ": ", result.err)
        matches("Nothing is lost: the source has all", result.err)
        some = int(re.search(r"; (\d+) set", result.out)[1])
        check(0 < some < 20000, some)
        equal(self.client.ask("DBSIZE"), b":%d\r\n" % some)
        said = self.counts()
        equal((said["set"], said["same"]), (20000 - some, some))

    def test_what_announces_too_much_is_no_server_of_sessions(self):
        """It would be asked again for what fills an array of 16 GB, were it believed."""
        with Relay(self.redis.port, b"", None, lambda data: b"*2147483647\r\n") as relay:
            result = run(1, WEEKWHEEL, "sessions", "import", "--from", "redis://" + relay.address, "--timeout", "1h",
                         f"127.0.0.1:{self.server.port}")
        matches("its answers are not those of Redis", result.err)

    def test_an_older_redis_says_only_what_is_left(self):
        with Redis("--rename-command", "PEXPIRETIME", "", folder="older") as older:
            older.ask("SET", "a", "x", "PX", str(HOUR))
            older.ask("SET", "forever", "x")
            words = [word.replace(self.url(), f"redis://127.0.0.1:{older.port}") for word in self.words("--json")]
            equal(json.loads(run(0, *words).out)["set"], 2)
            check(HOUR - 60000 < int(self.client.ask("PTTL", "a")[1:-2]) <= HOUR, "the time")
            said = json.loads(run(0, *words).out)
            equal((said["set"], said["same"]), (0, 2))

    def test_errors_are_explained(self):
        matches("--from is missing", run(2, WEEKWHEEL, "sessions", "import").err)
        matches("--from: ", run(2, WEEKWHEEL, "sessions", "import", "--from", "http://x").err)
        matches("'x': expected one address", run(2, WEEKWHEEL, "sessions", "import", "--from", self.url(), "x").err)
        matches("is weekwheel-sessiond running there", run(1, WEEKWHEEL, "sessions", "import", "--from", self.url(), "127.0.0.1:1").err)
        matches("127.0.0.1:1", run(1, WEEKWHEEL, "sessions", "import", "--from", "redis://127.0.0.1:1").err)
        self.redis.ask("SET", "large", "x" * (2 << 20))
        self.redis.ask("CONFIG", "SET", "requirepass", "secret")
        matches("NOAUTH .*; give the password in --from or set REDISCLI_AUTH", self.go(status=1).err)
        equal(json.loads(run(0, *self.words("--json"), REDISCLI_AUTH="secret").out)["set"], 1)
        with open("token", "w", encoding="ascii") as file:
            file.write("secret-of-16-characters\n")
        with Sessiond("--requirepass-file", "token") as guarded:
            result = run(1, *self.words()[:-1], f"127.0.0.1:{guarded.port}", REDISCLI_AUTH="secret")
            matches("NOAUTH .*; give --token-file$", result.err)
        with Sessiond("--maxmemory", "1M") as small:
            result = run(1, *self.words()[:-1], f"127.0.0.1:{small.port}", REDISCLI_AUTH="secret")
            matches(f"127.0.0.1:{small.port}: OOM", result.err)

    def test_another_server_of_sessions_is_a_source_too(self):
        with Sessiond() as other, other.client() as there:
            equal(there.ask("SET", "a", VALUE, "PX", str(HOUR)), OK)
            end = there.ask("PEXPIRETIME", "a")
            run(0, WEEKWHEEL, "sessions", "import", "--from", f"redis://127.0.0.1:{other.port}", f"127.0.0.1:{self.server.port}")
            equal(self.client.ask("GET", "a") + self.client.ask("PEXPIRETIME", "a"), bulk(VALUE) + end)
        equal(self.client.ask("EXISTS", "b"), b":0\r\n")


class Clusters(Case):
    KEYS = 300

    def setUp(self):
        need_redis()
        super().setUp()
        self.server = self.enterContext(Sessiond())
        self.client = self.enterContext(self.server.client())

    def words(self, cluster, *arguments):
        # One node is enough, and one that is away costs nothing.
        url = f"redis://127.0.0.1:{free_port()},127.0.0.1:{cluster.nodes[1].port}"
        return WEEKWHEEL, "sessions", "import", "--json", "--from", url, *arguments, f"127.0.0.1:{self.server.port}"

    def begin(self, cluster, *arguments):
        process = subprocess.Popen(self.words(cluster, *arguments), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def fill(self, cluster, end):
        for number in range(self.KEYS):
            cluster.ask(f"sess:{number}", ("SET", f"sess:{number}", f"value {number}", "PXAT", end + number))

    def test_all_masters_are_copied(self):
        end = int(time.time() * 1000) + HOUR
        with LazyCluster() as cluster:
            self.fill(cluster, end)
            said = json.loads(run(0, *self.words(cluster)).out)
            equal((said["read"], said["set"]), (self.KEYS, self.KEYS))
            for number in range(self.KEYS):
                equal(self.client.ask("GET", f"sess:{number}"), bulk(f"value {number}"))
                equal(self.client.ask("PEXPIRETIME", f"sess:{number}"), b":%d\r\n" % (end + number))
            cluster.ask("sess:1", ("SET", "sess:1", "another", "PXAT", end + HOUR))
            said = json.loads(run(0, *self.words(cluster)).out)
            equal((said["set"], said["same"]), (1, self.KEYS - 1))

    def test_keys_on_the_move_are_taken_where_they_are(self):
        with LazyCluster() as cluster:
            keys = [f"{{tag}}{number}" for number in range(20)]
            cluster.ask("tag", *(("SET", key, "x", "PX", HOUR) for key in keys))
            slot = slot_of("tag")
            source = cluster.owner(slot)
            target = next(node for node in cluster.nodes if node is not source)

            def meanwhile():
                source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys[:10])
                self.process = self.begin(cluster)
                until(lambda: self.client.ask("DBSIZE") == b":20\r\n", "those of both servers")
            cluster.move(slot, source, target, meanwhile)
            out, _ = self.process.communicate()
            equal((self.process.returncode, json.loads(out)["read"]), (0, 20))

    def test_following_it_stays_with_the_masters(self):
        """A replica takes over, by itself, while another session goes and one comes."""
        with LazyCluster(replicas=1) as cluster:
            self.fill(cluster, int(time.time() * 1000) + HOUR)
            process = self.begin(cluster, "--follow")
            until(lambda: self.client.ask("DBSIZE") == b":%d\r\n" % self.KEYS, "the first pass")
            master, replica = cluster.nodes[0], cluster.nodes[3]
            until(lambda: replica.ask("DBSIZE") == master.ask("DBSIZE"), "the replica has all")
            master.kill()
            until(lambda: replica.ask("ROLE")[0] == "master", "the replica takes over")
            for number in range(self.KEYS):
                cluster.ask(f"sess:{number}", ("DEL", f"sess:{number}"))
                cluster.ask(f"new:{number}", ("SET", f"new:{number}", "x", "PX", HOUR))
            until(lambda: self.client.ask("EXISTS", *(f"sess:{number}" for number in range(self.KEYS))) == b":0\r\n", "what went has gone")
            until(lambda: self.client.ask("DBSIZE") == b":%d\r\n" % self.KEYS, "what came is there")
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate()
            equal((process.returncode, json.loads(out)["removed"]), (0, self.KEYS))

    def test_several_servers_are_a_cluster(self):
        with Redis() as redis:
            url = f"redis://127.0.0.1:{redis.port},127.0.0.1:{redis.port}"
            matches("several servers in --from are those of a cluster", run(1, WEEKWHEEL, "sessions", "import", "--from", url).err)
        matches("--from: expected redis://", run(2, WEEKWHEEL, "sessions", "import", "--from", "redis+sentinel://a/m").err)


main()
