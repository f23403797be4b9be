#!/usr/bin/env python3
"""weekwheel-expirer --data: what is known outlasts it, and what its directory may be."""
# tier: check, waits
import errno
import os

from expirer import EXPIRER, Expirer, Lazy, told
from faults import FOREVER, SIZE, SYNC, WRITE, Plan
from harness import Case, Server, check, equal, free_port, main, matches, run, until
from masters import LazyCluster, slot_of
from sessiond import Sessiond


def to(redis, port, **env):
    return Expirer(redis.url, "--data", "data", "--expired-to", f"beanstalk://127.0.0.1:{port}/ended", **env)


def files():
    return sorted(name for name in os.listdir("data") if name.startswith("journal."))


class Data(Case):
    def test_what_ends_meanwhile_is_told_and_what_was_deleted_may_be(self):
        with Lazy() as redis, Server() as other, other.client() as jobs:
            for is_killed in (0, 1):
                with to(redis, other.port) as expirer:
                    expirer.exact()
                    for key in ("ended", "deleted", "moved", "early"):
                        redis.ask("SET", key, "v", "PX", 2500)
                    redis.ask("SET", "later", "v", "EX", 1000)
                    until(lambda expirer=expirer: expirer.metric("known") == 5, "all are known")
                    if is_killed:
                        expirer.kill()
                redis.ask("PEXPIRE", "moved", 5000)
                redis.ask("DEL", "deleted", "later")
                until(lambda: redis.ask("PTTL", "early") < 0, "all have ended, this one last")
                with to(redis, other.port) as expirer:
                    bodies = told(jobs, 4)
                    equal({body["why"] for key, body in bodies.items() if key != "moved"}, {"gone"})
                    equal(sorted(bodies), ["deleted", "early", "ended", "moved"])
                    until(lambda expirer=expirer: expirer.metric("known") == 0, "none is left when all keys are gone through")

    def test_what_waits_outlasts_a_kill(self):
        port = free_port()
        with Lazy() as redis:
            with to(redis, port) as expirer:
                expirer.exact()
                for i in range(100):
                    redis.ask("SET", f"key:{i}", "v", "PX", 2500)
                until(lambda: expirer.metric("expired_to_waiting") == 100, "all wait")
                expirer.kill()
            # No key is there any more: they are known from the journal alone.
            with to(redis, port) as expirer, Server("--listen", f"127.0.0.1:{port}") as other, other.client() as jobs:
                equal(len(told(jobs, 100)), 100)
                until(lambda: expirer.metric("expired_to_told_total") == 100, "all are told")
            with to(redis, port) as expirer:
                expirer.exact()
                equal(expirer.metric("expired_to_waiting"), 0)

    def test_starts_that_are_cut_short_lose_no_key(self):
        """Each begins another file, and the first one still has the keys."""
        with Lazy() as redis, Server() as other, other.client() as jobs:
            with to(redis, other.port) as expirer:
                expirer.exact()
                for i in range(20):
                    redis.ask("SET", f"key:{i}", "v", "PX", 2000)
                until(lambda: expirer.metric("known") == 20, "all are known")
                expirer.kill()
            for _ in range(6):
                with Expirer(f"redis://127.0.0.1:{free_port()}", "--data", "data", "--expired-to", "beanstalk://127.0.0.1:1/t") as expirer:
                    expirer.hear("Connection refused")
                    expirer.kill()
            equal("journal.1" in files(), True)
            until(lambda: redis.ask("PTTL", "key:19") < 0, "all have ended, this one last")
            with to(redis, other.port):
                equal(len(told(jobs, 20)), 20)

    def test_each_node_of_a_cluster_gets_its_keys_back(self):
        with LazyCluster() as cluster, Server() as other, other.client() as jobs:
            source, target = cluster.nodes[0], cluster.nodes[1]
            keys = [f"key:{i}" for i in range(100)]
            moving = next(key for key in keys if cluster.owner(slot_of(key)) is source)
            for is_killed in (0, 1, 1):
                with to(cluster, other.port) as expirer:
                    expirer.exact(3)
                    for key in keys:
                        cluster.ask(key, ("SET", key, "v", "PX", 6000))
                    until(lambda expirer=expirer: expirer.metric("known") == len(keys), "all are known")
                    # A key that has moved before is another node's when it starts again.
                    cluster.move(slot_of(moving), source, target)
                    source, target = target, source
                    until(lambda expirer=expirer: expirer.metric("known") == len(keys), "the new owner knows it too")
                    if is_killed:
                        expirer.kill()
                until(lambda: all(cluster.ask(key, ("PTTL", key))[0].startswith(":-") for key in keys), "all have ended")
                with to(cluster, other.port) as expirer:
                    equal({body["why"] for body in told(jobs, len(keys)).values()}, {"gone"})
                    until(lambda: len(files()) == 1, "the files before are removed")
                    equal(expirer.metric("known"), 0)

    def test_no_file_is_large(self):
        with Lazy() as redis, Server() as other, other.client() as jobs:
            with to(redis, other.port) as expirer:
                expirer.exact()
                redis.ask("EVAL", "for i = 1, 9000 do redis.call('SET', i .. string.rep('x', 4000), 'v', 'EX', 1000) end", "0")
                until(lambda: expirer.metric("known") == 9000, "all are known")
                expirer.kill()
            check(len(files()) > 2, files())
            for name in files():
                check(os.stat(os.path.join("data", name)).st_size < 20 << 20, name)
            # What the last file says of a key of the first one holds.
            redis.ask("DEL", "1" + 4000 * "x")
            with to(redis, other.port) as expirer:
                expirer.exact()
                until(lambda: expirer.metric("known") == 8999, "what is gone is forgotten")
                until(lambda: "journal.1" not in files(), "the files before are removed")
                equal(expirer.metric("expired_to_told_total"), 0)

    def test_a_directory_of_another_program_is_refused(self):
        for program, name in (("", "index.db"), ("-sessiond", "sessions")):
            folder = "of" + name
            with Server("--data", folder) if not program else Sessiond("--data", folder):
                pass
            before = {path: os.stat(os.path.join(folder, path)).st_size for path in os.listdir(folder)}
            words = ("--expired-to", "beanstalk://127.0.0.1:1/t", "--data", folder, "redis://127.0.0.1:1")
            matches("keeps its data there, and nothing was changed", run(1, EXPIRER, *words).err)
            # What the journal's head says is enough.
            os.rename(os.path.join(folder, name), name)
            matches("keeps its data there, and nothing was changed", run(1, EXPIRER, *words).err)
            os.rename(name, os.path.join(folder, name))
            equal({path: os.stat(os.path.join(folder, path)).st_size for path in os.listdir(folder)}, before)

    def test_a_full_disk_stops_nothing(self):
        plan = Plan()
        with Lazy() as redis, Server() as other, other.client() as jobs:
            with to(redis, other.port, **plan.environment) as expirer:
                expirer.exact()
                plan.set(1, FOREVER, errno.ENOSPC, WRITE | SIZE, file="journal")
                redis.ask("SET", "full", "v", "PX", 2500)
                expirer.hear("cannot be written")
                redis.ask("SET", "meanwhile", "v", "EX", 1000)
                equal(list(told(jobs, 1)), ["full"])
                plan.set(0)
                expirer.hear("is written again")
                looks = expirer.metric("looked_up_total")
                redis.ask("PEXPIRE", "meanwhile", 3000)
                until(lambda: expirer.metric("looked_up_total") > looks, "that was learned")
                expirer.kill()
            until(lambda: redis.ask("PTTL", "meanwhile") < 0, "it has ended while nobody is there")
            with to(redis, other.port):
                equal(told(jobs, 1)["meanwhile"]["why"], "gone")

    def test_a_failed_sync_is_told(self):
        plan = Plan()
        with Lazy() as redis, Server() as other, other.client() as jobs:
            with to(redis, other.port, **plan.environment) as expirer:
                expirer.exact()
                plan.set(1, 1, errno.EIO, SYNC, file="journal")
                redis.ask("SET", "key", "v", "PX", 2500)
                expirer.hear("cannot be written")
                equal(list(told(jobs, 1)), ["key"])

    def test_a_directory_is_of_one_program_and_one_database(self):
        with Lazy() as redis, to(redis, 1) as expirer:
            expirer.exact()
            words = ("--expired-to", "beanstalk://127.0.0.1:1/t", "--data", "data")
            matches("another server has this folder", run(1, EXPIRER, *words, redis.url).err)
            expirer.stop()
            matches("is of another database", run(1, EXPIRER, *words, redis.url + "1").err)
            equal(files(), ["journal.1"])
            with open("data/journal.1", "r+b") as file:
                file.seek(60)
                file.write(b"damaged!")
            matches("cannot be read.*Move it away", run(1, EXPIRER, *words, redis.url).err)

    def test_starts_leave_one_file(self):
        with Lazy() as redis:
            for _ in range(5):
                with to(redis, 1) as expirer:
                    expirer.exact()
                    until(lambda: len(files()) == 1, "the file before is removed")
                    expirer.kill()
            equal(files(), ["journal.5"])


if __name__ == "__main__":
    main()
