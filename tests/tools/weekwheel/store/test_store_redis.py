#!/usr/bin/env python3
"""weekwheel fsck, export and import of jobs in Redis. Each test has a Redis of its own."""
# tier: check
import base64
import json
import os
import random
import socket
import subprocess

from harness import PATIENCE, WEEKWHEEL, Case, Redis, alone, check, equal, main, matches, need_redis, seed, until
from harness import exact_objects as objects

SOON = 4102444800  # 2100
# Another id, and rounded times.
ANEW = ("id", "left", "delay", "created")


def encoded(data):
    return base64.b64encode(data).decode()


def put(where, *jobs, options=(), status=0):
    return alone.run(status, "import", *options, where, stdin="".join(json.dumps(job) + "\n" for job in jobs).encode())


def sorted_lines(jobs):
    """Each job without what an import does not keep to the nanosecond. A buried one was due when it was put."""
    lines = []
    for job in jobs:
        left_out = ANEW + (("due",) if job["state"] == "buried" else ())
        lines.append(json.dumps({name: job[name] for name in job if name not in left_out}, sort_keys=True))
    return sorted(lines)


def exported(where, *options):
    return objects(alone.run(0, "export", *options, where).out)


def variety(rng, count):
    for i in range(count):
        job = {"body": encoded(rng.randbytes(rng.randrange(300))), "tube": f"t{rng.randrange(5)}", "due": SOON + i / 8,
               "priority": rng.randrange(1 << 32), "run": rng.randrange(1, 1000), "attempts": rng.randrange(9),
               "backoff": rng.randrange(50) / 4, "clock": rng.choice(["wall", "elapsed"])}
        if rng.randrange(2):
            job["key"] = encoded(b"%d\0\xff" % i)
        if rng.randrange(4) == 0:
            job.update(period=rng.randrange(1, 9999) / 1000, missed=rng.choice(["once", "all", "skip"]), skip=2.5)
        if rng.randrange(6) == 0:
            job.update(state="buried", error="why \u00e4")
        yield job


class StoresInRedis(Case):
    def setUp(self):
        need_redis()
        super().setUp()

    def test_limits_go_to_redis_and_back(self):
        limits = b"".join(b'{"limit": "%s", "tube": "mail"%s, "running": %d, "starts": 100, "per": 60, "burst": 20}\n' % one for one in (
            (b"tube", b"", 5), (b"each", b"", 0), (b"group", b', "group": "AGI="', 1)))
        with Redis() as redis:
            equal(alone.run(0, "import", redis.url, stdin=limits).out, "0 jobs put; 3 limits set\n")
            text = alone.run(0, "export", redis.url).raw
        written = b"".join(b'{"limit":"%s","tube":"mail",%s,"running":%d,"starts":100,"per":60,"burst":20,"weight":1}\n' % one for one in (
            (b"tube", b'"each":false', 5), (b"each", b'"each":true', 0), (b"group", b'"group_base64":"AGI=","each":false', 1)))
        equal(sorted(text.splitlines()), sorted(written.splitlines()))
        equal(alone.run(0, "import", "back", stdin=text).out, "0 jobs put; 3 limits set\n")
        equal(alone.run(0, "export", "back").raw, written)

    def test_a_weight_is_left_out_by_name(self):
        with Redis() as redis:
            said = alone.run(1, "import", redis.url, stdin=b'{"limit": "group", "tube": "mail", "group": "YQ==", "weight": 2}\n').err
            matches("groups in Redis have no weights", said)

    def test_jobs_go_to_redis_and_back(self):
        jobs = list(variety(random.Random(seed()), 2500))
        put("one", *jobs)
        first = alone.run(0, "export", "one")
        with Redis() as redis:
            equal(alone.run(0, "import", redis.url, stdin=first.raw).out, "2500 jobs put\n")
            # To another number of shards, through a file.
            alone.run(0, "export", redis.url, "--output", "file")
            equal(objects(alone.run(0, "import", "--json", "--redis-prefix", "other", "--redis-shards", "3", redis.url, "file").out),
                  [{"put": 2500, "replaced": 0, "left_out": 0}])
            result = alone.run(0, "import", "--redis-prefix", "other", "--redis-shards", "4", redis.url, stdin=b"")
            matches("--redis-shards 4 changes nothing: the store was made with 3;.*another --redis-prefix", result.err)
            said = objects(alone.run(0, "fsck", "--json", redis.url).out)[0]
            equal((said["sound"], said["jobs"], said["shards"], said["reserved"]), (True, 2500, 16, 0))
            said = objects(alone.run(0, "fsck", "--json", redis.url, "--redis-prefix", "other").out)[0]
            equal((said["sound"], said["jobs"], said["shards"]), (True, 2500, 3))
            back = alone.run(0, "export", "--redis-prefix", "other", redis.url)
            equal(back.err, "", "of a store that nobody changes")
            alone.run(0, "import", "two", stdin=back.raw)
        alone.run(0, "fsck", "two")
        equal(sorted_lines(exported("two")), sorted_lines(objects(first.out)))

    def test_times_are_rounded_up_to_microseconds(self):
        with Redis() as redis:
            alone.run(0, "import", redis.url, stdin=b'{"body": "", "due": 4102444800.123456001}\n')
            equal([job["due"] for job in exported(redis.url)], ["2100-01-01T00:00:00.123457000Z"])

    def test_jobs_with_a_key_that_exists_are_left_out(self):
        with Redis() as redis:
            put(redis.url, {"body": encoded(b"old"), "key": "aw==", "due": SOON}, {"body": "", "key": "Yg==", "state": "buried"})
            new = [{"body": encoded(b"new"), "key": "aw=="}, {"body": "", "key": "bmV3"}, {"body": "", "key": "bmV3"}]
            result = put(redis.url, *new, status=1)
            equal(result.out, "1 job put, 2 left out\n")
            matches(r"^standard input:1: job \d+ of tube default has the key 'k' already; .*--replace$", result.err)
            matches(r"^standard input:3: job \d+ of tube default has the key 'new' already", result.err)
            equal(put(redis.url, *new, options=["--replace"]).out, "3 jobs put, 3 in place of others\n")
            equal(sorted(job["body"] for job in exported(redis.url)), ["", "", "new"])
            # More keys than an import remembers of a batch.
            many = [{"body": "", "key": encoded(b"%d" % (i // 2))} for i in range(9000)]
            equal(put(redis.url, *many, status=1).out, "4500 jobs put, 4500 left out\n")
            equal(put(redis.url, *many, status=1).out, "0 jobs put, 9000 left out\n")

    def test_jobs_that_a_worker_has_are_counted(self):
        """A server goes on meanwhile."""
        with Redis() as redis:
            with redis.server() as server:
                with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
                    answers = connection.makefile("rb")
                    put(redis.url, {"body": "eA==", "run": 1000}, {"body": "eA==", "state": "buried"})
                    connection.sendall(b"reserve\r\n")
                    matches("^RESERVED ", answers.readline().decode())
                    matches("^2 jobs in 1 tube: 0 delayed, 0 ready, 1 reserved, 1 buried$", alone.run(0, "fsck", redis.url).out)
                    result = alone.run(0, "export", redis.url)
                    equal(sorted(job["state"] for job in objects(result.out)), ["buried", "reserved"])
                    matches("^1 job had a worker", result.err)

    def test_damage_is_found(self):
        with Redis() as redis:
            put(redis.url, *[{"body": "eA==", "due": SOON, "key": encoded(b"%d" % i)} for i in range(20)],
                options=["--redis-shards", "1"])
            slot = redis.ask("KEYS", "{weekwheel:0}:d:*")[0]
            check(redis.ask("ZREM", slot, "7") == 1, "the place of a job is lost")
            result = alone.run(1, "fsck", redis.url)
            matches("^shard 0: job 7 is not where its record says$", result.out)
            matches("^shard 0: 19 jobs have a place, and there are 20$", result.out)
            matches("^2 problems$", result.out)
            matches("weekwheel export", result.err)
            said = objects(alone.run(1, "fsck", "--json", redis.url).out)[0]
            equal((said["sound"], said["jobs"], len(said["problems"])), (False, 20, 2))
            # All jobs with a record are saved.
            equal(len(exported(redis.url)), 20)
            redis.ask("HSET", "{weekwheel:0}:j", "9", "damaged")
            matches("^shard 0: job 9 has a record that cannot be read$", alone.run(1, "fsck", redis.url).out)
            redis.ask("HSET", "{weekwheel:0}:j", "12", "damaged")
            result = alone.run(1, "export", redis.url)
            matches("2 of 20 jobs cannot be read and were left out", result.err)
            equal(sorted(int(job["id"]) for job in objects(result.out)), [i for i in range(1, 21) if i not in (9, 12)])

    def test_a_store_that_cannot_be_opened_is_explained(self):
        with Redis("--requirepass", "secret word", "--unixsocket", os.path.abspath("redis.sock")) as redis:
            url = redis.url.replace("//", "//:secret%20word@")
            result = alone.run(1, "fsck", redis.url)
            matches("redis://127.0.0.1:.*: Redis at .* NOAUTH", result.err)
            result = alone.run(1, "export", url)
            matches("^warning: everybody on this machine can read the password", result.err)
            matches(r"has no jobs with the prefix 'weekwheel'; give the --redis-prefix", result.err)
            check("secret" not in result.err, result.err)
            matches("^-NOAUTH", redis.ask("DBSIZE"))
            with open("url", "w", encoding="ascii") as out:
                out.write(url + "\n")
            os.chmod("url", 0o600)
            # From a file or from the environment, there is nothing to warn about.
            result = alone.run(0, "import", "--store-file", "url", stdin=b'{"body": ""}\n')
            equal((result.out, result.err), ("1 job put\n", ""))
            result = alone.run(0, "fsck", WEEKWHEELD_STORE=url)
            equal(result.err, "")
            with open("jobs", "wb") as out:
                out.write(b'{"body": ""}\n')
            equal(alone.run(0, "import", "--store-file", "url", "jobs").out, "1 job put\n")
            equal(len(objects(alone.run(0, "export", "--store", f"unix://:secret%20word@{os.path.abspath('redis.sock')}").out)), 2)
            os.chmod("url", 0o644)
            matches("^warning: others may read url", alone.run(0, "fsck", "--store-file", "url").err)
        with Redis() as redis:
            for command in ("fsck", "export", "import"):
                matches("redis://127.0.0.1:.*DB index is out of range", alone.run(1, command, redis.url + "99").err)
        matches("redis://127.0.0.1:.*cannot be reached", alone.run(1, "export", redis.url).err)
        matches("redis://127.0.0.1:.*cannot be reached", alone.run(1, "import", redis.url).err)

    def test_wrong_urls_are_refused(self):
        for url, expected in {"rediss://a?b": "ca=FILE", "http://a": "begins with redis://, rediss:// or unix://", "redis://a:x/": "port",
                              "unix://a": "path of a socket", "redis://": "host"}.items():
            for command in ("fsck", "export", "import"):
                matches(expected, alone.run(2, command, url).err, url)
        for text in ("", "127.0.0.1:6379"):
            matches("--store '%s': expected redis://HOST:PORT/ or unix:///PATH" % text, alone.run(2, "export", "--store", text).err)
        matches("jobs are in one place", alone.run(2, "fsck", "--store", "redis://a", "b").err)
        matches("--redis-prefix is for .*'one' is a directory", alone.run(2, "fsck", "--redis-prefix", "p", "one").err)
        matches("--redis-prefix", alone.run(2, "fsck", "--redis-prefix", "a b", "redis://a").err)
        matches("--redis-shards", alone.run(2, "import", "--redis-shards", "4097", "redis://a").err)
        matches("--redis-timeout", alone.run(2, "export", "--redis-timeout", "0", "redis://a").err)
        matches("--store-file 'missing': expected a file with redis://.*: No such file",
                alone.run(2, "export", "--store-file", "missing").err)
        for line in ("", "s3cret"):
            with open("url", "w", encoding="ascii") as out:
                out.write(line + "\n")
            os.chmod("url", 0o600)
            said = alone.run(2, "fsck", "--store-file", "url").err
            matches("--store-file 'url': expected a file with redis://HOST:PORT/: its first line", said)
            check("s3cret" not in said, said)
        with open("url", "w", encoding="ascii") as out:
            out.write("redis://127.0.0.1:1/\n")
        for options in (("--store", "redis://a", "--store-file", "url"), ("--store-file", "url", "--store", "redis://a")):
            matches("--store and --store-file exclude each other", alone.run(2, "import", *options).err)

    def test_looking_makes_nothing(self):
        with Redis() as redis:
            for command in ("fsck", "export"):
                matches("has no jobs with the prefix 'none'", alone.run(1, command, redis.url, "--redis-prefix", "none").err)
            equal(redis.ask("DBSIZE"), 0)
            equal(put(redis.url).out, "0 jobs put\n")
            matches("^0 jobs in 0 tubes.*\n.*16 shards\nsound$", alone.run(0, "fsck", redis.url).out)
            equal(exported(redis.url), [])

    def test_an_import_that_loses_redis_says_so(self):
        with Redis() as redis:
            process = subprocess.Popen([WEEKWHEEL, "import", "--redis-timeout", "1", redis.url], stdin=subprocess.PIPE,
                                       stderr=subprocess.PIPE, stdout=subprocess.PIPE)
            # More than the program reads ahead.
            lines = b'{"body": "%s"}\n' % (b"A" * 400) * 3000
            process.stdin.write(lines)
            process.stdin.flush()
            until(lambda: redis.ask("DBSIZE") and alone.run(0, "export", redis.url).out.count("\n") >= 1000, "a batch is put")
            redis.kill()
            _, said = process.communicate(lines, PATIENCE)
            equal(process.returncode, 1)
            matches(r"^Some of lines \d+ to \d+ of standard input may have been put, and none after them.$",
                    said.decode())


main()
