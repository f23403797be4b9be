#!/usr/bin/env python3
"""weekwheel-expirer --changes beside real Redis servers that expire nothing by themselves: tracking, and keyspace events."""
# tier: check, waits
import shlex

from expirer import EXPIRER, Ends, Expirer, Lazy, told
from harness import Case, Server, check, equal, main, matches, run, until
from masters import LazyCluster
from sessiond import Client, encoded

BY_EVENTS, BY_TRACKING = "told of changes by keyspace events", "told of changes by client tracking"
RIGHTS = "on >secret %R~* allchannels +ping +time +scan +exists +pexpiretime +subscribe +client|id +client|setname"


def turn_on(redis, events="Egx"):
    equal(redis.ask("CONFIG", "SET", "notify-keyspace-events", events), "+OK")


class Changes(Case):
    def test_each_event_of_a_deadline_is_heard_and_no_other(self):
        with Lazy() as redis, Ends(redis) as ends:
            turn_on(redis)
            with Expirer(redis.url, "--changes=events") as expirer:
                expirer.exact()
                matches(BY_EVENTS, expirer.said)
                for key in ("earlier", "got", "persisted", "deleted", "renamed", "moved", "set", "copied"):
                    redis.ask("SET", key, "v", "EX", 1000)
                until(lambda: expirer.metric("known") == 8, "all are known")
                heard, looked = expirer.metric("heard_total"), expirer.metric("looked_up_total")
                for i in range(100):
                    redis.ask("INCR", f"number:{i}")
                    redis.ask("HSET", "hash", i, i)
                redis.ask("PERSIST", "persisted")
                redis.ask("DEL", "deleted")
                redis.ask("RENAME", "renamed", "new")
                redis.ask("MOVE", "moved", 1)
                redis.ask("COPY", "copied", "copy")
                redis.ask("GETEX", "got", "EX", 2000)
                dumped = redis.ask("EVAL", "redis.call('RESTORE', 'restored', 1000000, redis.call('DUMP', KEYS[1])) return 1", 1, "copied")
                equal(dumped, 1)
                # Two tell of the renamed one.
                until(lambda: expirer.metric("looked_up_total") - looked >= 8, "all are looked up")
                until(lambda: expirer.metric("known") == 7, "earlier, got, new, set, copied, copy, restored")
                equal((expirer.metric("heard_total") - heard, expirer.metric("looked_up_total") - looked), (8, 8))
                redis.ask("PEXPIRE", "earlier", 100)
                redis.ask("SET", "new", "v", "PX", 100)
                ends.wait("earlier", "new")
                # At its old deadline it is found to have none.
                redis.ask("PEXPIRE", "set", 1000)
                redis.ask("SET", "set", "v")
                until(lambda: expirer.metric("known") == 4, "it has no deadline any more")
                equal(redis.ask("EXISTS", "set"), 1)

    def test_what_is_missed_is_found_by_a_pass(self):
        with Lazy() as redis:
            turn_on(redis)
            with Expirer(redis.url, "--changes=events") as expirer:
                expirer.exact()
                with Client(redis.port) as client:
                    client.send(encoded("CLIENT", "KILL", "TYPE", "pubsub") + encoded("SET", "a", "v", "PX", 3000))
                    client.line(), client.line()
                expirer.exact(2)
                until(lambda: expirer.metric("known") == 1, "it is known")
                with Ends(redis) as ends:
                    ends.wait("a")

    def test_another_database_and_a_cluster(self):
        with Lazy() as redis, Ends(redis, 3) as ends:
            turn_on(redis, "KEA")
            with Expirer(redis.url + "3", "--changes=events") as expirer:
                expirer.exact()
                redis.ask("EVAL", "redis.call('SET', 'a', 'v', 'EX', 1000) redis.call('SELECT', 3) redis.call('SET', 'b', 'v', 'EX', 1000)", 0)
                until(lambda: expirer.metric("known") == 1, "b is known")
                redis.ask("EVAL", "redis.call('SELECT', 3) redis.call('PEXPIRE', 'b', 100)", 0)
                ends.wait("b")
                until(lambda: expirer.metric("known") == 0, "a was never known")
        with LazyCluster() as cluster:
            for node in cluster.nodes:
                turn_on(node)
            with Expirer(cluster.url, "--changes=events") as expirer:
                expirer.exact(3)
                for i in range(30):
                    cluster.ask(f"key:{i}", ("SET", f"key:{i}", "v", "PX", 100))
                until(lambda: cluster.count() == 0, "all have ended")
                equal(expirer.said.count(BY_EVENTS), 3)

    def test_ends_are_not_sure(self):
        """A flush is not told: what it deletes may seem to end later."""
        with Lazy() as redis, Server() as other, other.client() as jobs:
            turn_on(redis)
            with Expirer(redis.url, "--changes=events", "--expired-to", f"beanstalk://127.0.0.1:{other.port}/ended") as expirer:
                expirer.exact()
                redis.ask("SET", "ended", "v", "PX", 500)
                redis.ask("SET", "flushed", "v", "PX", 700)
                until(lambda: expirer.metric("known") == 2 or expirer.metric("told_total") > 0, "both are known")
                until(lambda: redis.ask("EXISTS", "ended") == 0, "it has ended")
                redis.ask("FLUSHALL")
                equal({key: body["why"] for key, body in told(jobs, 2).items()}, {"ended": "gone", "flushed": "gone"})


class Auto(Case):
    def said(self, redis, *options):
        with Expirer(redis.url, *options) as expirer:
            return expirer.exact().said

    def test_it_takes_what_suits(self):
        with Lazy() as redis, Server() as other:
            to = f"beanstalk://127.0.0.1:{other.port}/ended"
            matches(BY_TRACKING, self.said(redis))
            turn_on(redis)
            matches(BY_EVENTS, self.said(redis))
            matches(BY_EVENTS, self.said(redis, "--match=*x"))
            for options in ["--changes=tracking"], ["--match=sess:*"], ["--expired-to", to]:
                matches(BY_TRACKING, self.said(redis, *options))

    def test_rights_to_one_of_both_are_enough(self):
        with Lazy() as redis:
            turn_on(redis)
            url = f"redis://one:secret@127.0.0.1:{redis.port}"
            for right, match, way in (("+client|tracking", "*", BY_TRACKING), ("+config|get", "sess:*", BY_EVENTS)):
                redis.ask("ACL", "DELUSER", "one")
                redis.ask("ACL", "SETUSER", "one", *shlex.split(RIGHTS), right)
                with Expirer(url, "--match", match) as expirer:
                    matches(way, expirer.exact().said)
            redis.ask("ACL", "SETUSER", "one", "-config|get")
            matches("CLIENT with \"NOPERM.*tracking.*check user", run(1, EXPIRER, url).err)
            matches("CONFIG GET with \"NOPERM.*config.*check user", run(1, EXPIRER, "--changes=events", url).err)

    def test_events_that_are_off_are_named(self):
        with Lazy() as redis:
            matches('notify-keyspace-events lacks E or g: add them', run(1, EXPIRER, "--changes=events", redis.url).err)
            turn_on(redis)
            with Expirer(redis.url, "--changes=events") as only, Expirer(redis.url) as auto:
                for expirer in only, auto:
                    expirer.exact()
                turn_on(redis, "Ex")
                for expirer in only, auto:
                    expirer.hear("is lost: notify-keyspace-events has no E or no g any more")
                auto.exact(2)
                matches(BY_TRACKING, auto.said)
                only.hear("is still lost: notify-keyspace-events lacks E or g: add them")
                turn_on(redis, "EA")
                only.exact(2)
                check(BY_TRACKING not in only.said, only.said)

    def test_a_wrong_word(self):
        matches("--changes.*auto.*tracking.*events", run(2, EXPIRER, "--changes=none", "redis://a").err)


main()
