#!/usr/bin/env python3
"""Limits of tubes: verbs, the command limit, waiting workers, what is shown, and a restart."""
# tier: check, waits
import signal
import socket
import time

from harness import PATIENCE, Case, Redis, Server, alone, conversation, equal, main, matches, objects
from web import Web


def put(client, count, tube="mail"):
    equal(client.ask("use " + tube), "USING " + tube)
    for _ in range(count):
        assert client.put(ttr=100).startswith("INSERTED ")


class Limits(Case):
    def test_a_worker_that_drains_leaves_nothing_that_a_limit_held(self):
        with Server() as server, server.client() as a:
            a.ask("use t")
            for _ in range(8):
                a.put()
            server.program.run(0, "limit", "t", "--rate", "50/1s")
            server.program.run(0, "work", "--tube", "t", "--jobs", "2", "--drain", "--", "true")
            equal(a.ask("stats-tube t").count("current-jobs-ready: 0"), 1)

    def test_a_worker_that_waits_gets_a_job_when_one_may_start(self):
        with Server("--clock", "virtual") as server, server.client() as a, server.client() as b:
            conversation(a, ("watch mail", "WATCHING 2"), ("limit-tube mail running=2 starts=1 per=0.5", "LIMITED"))
            conversation(b, ("watch mail", "WATCHING 2"))
            put(a, 5)
            equal(a.ask("reserve"), "RESERVED 1 1|x")
            b.send("reserve\r\n")
            a.until_waiting()
            a.ask("advance 0.499")
            equal(a.numbers("stats")["current-waiting"], "1")
            a.ask("advance 0.001")
            equal(b.answer(), "RESERVED 2 1|x")
            # Two run: only the end of one lets another start.
            b.send("reserve\r\n")
            a.until_waiting()
            a.ask("advance 10")
            equal(a.numbers("stats")["current-waiting"], "1")
            equal(a.ask("delete 1"), "DELETED")
            equal(b.answer(), "RESERVED 3 1|x")
            # A connection that ends gives its places back; the others go on as they may.
            equal(a.numbers("stats-tube mail")["current-jobs-held"], "2")
            b.close()
            a.until_stats("current-jobs-reserved", 0)
            a.ask("advance 1")
            conversation(a, ("reserve-with-timeout 0", "RESERVED 2 1|x"), ("limit-tube mail", "LIMITED"),
                         ("reserve-with-timeout 0", "RESERVED 3 1|x"), ("list-limits", "OK 0|"))
            assert "current-jobs-held" not in a.numbers("stats-tube mail")

    def test_two_hundred_start_at_their_pace(self):
        """Each minute has what the rate says, whoever waits."""
        with Server("--clock", "virtual") as server, server.client() as a, server.client() as worker:
            equal(a.ask("limit-tube default starts=100 per=60 burst=20"), "LIMITED")
            for _ in range(200):
                a.put(ttr=1000)
            worker.send("reserve\r\n" * 200)
            got = []
            for _ in range(2):
                for _ in range(600):
                    a.ask("advance 0.1")
                got.append(int(a.numbers("stats")["current-jobs-reserved"]))
            # The clock goes in steps: the last of the first minute may come with the first of the second.
            assert got[0] in (119, 120) and got[1] == 200, got

    def test_the_command(self):
        with Server("--data", "data", "--clock", "virtual:0", "--http", "127.0.0.1:0") as server, server.client() as a:
            run = server.program.run
            for words, said in (((), "No limit is set.\n"), (("web",), "No limit is set in the tube web.\n")):
                equal((run(0, "limit", *words).out, run(0, "limit", *words).err), ("", said))
            equal(run(0, "limit", "--json").err, "")
            equal(run(0, "limit", "--tube", "mail", "--running", "5", "--rate", "100/1m", "--burst", "2").out,
                  "mail: at most 5 run at once, at most 100 start in 1 min, after a rest 2 at once\n")
            matches("the tube is given twice", run(2, "limit", "-t", "mail", "mail").err)
            equal(run(0, "limit", "web", "--rate", "5/s").out, "web: at most 5 start in 1 s, after a rest 1 at once\n")
            a.ask("watch mail")
            put(a, 4)
            conversation(a, ("reserve", "RESERVED 1 1|x"), ("reserve", "RESERVED 2 1|x"), ("reserve-with-timeout 0", "TIMED_OUT"))
            table = run(0, "limit").out
            matches(r"^TUBE +GROUP +RUNNING +MOST +RATE +BURST +WEIGHT +HELD +NEXT IN$", table)
            matches(r"^mail +- +2 +5 +100 in 1 min? +2 +- +2 +600 ms$", table)
            matches(r"^web +- +0 +- +5 in 1 s +1 +- +0 +-$", table)
            equal(objects(run(0, "limit", "mail", "--json").out), [
                {"tube": "mail", "each": False, "running": 5, "starts": 100, "per": 60, "burst": 2, "weight": 1, "now_running": 2, "now_held": 2, "left": 0.6}])
            with Web(server, None) as web:
                equal(objects(run(0, "limit", "--json").out), web.good("GET", "limits")["limits"])
            matches(r"^mail .* 2$", run(0, "stats").out)
            matches(r"^mail +2 +2 ", run(0, "top", "--once").out)
            assert 'weekwheeld_tube_jobs{tube="mail",state="held"} 2' in server.metrics()
            equal(run(0, "limit", "web", "--clear").out, "web: no limit\n")
            equal(server.stop(), 0)
        # It is stored. A server whose time stands still has started both jobs just now.
        with Server("--data", "data") as server:
            equal([limit["tube"] for limit in objects(server.program.run(0, "limit", "--json").out)], ["mail"])

    def test_groups_take_turns_and_have_limits(self):
        with Server("--clock", "virtual:0") as server, server.client() as a:
            run = server.program.run
            for group in ("a", "a", "a", "b", "\x01 b"):
                run(0, "put", "--group", group, "of " + group.strip("\x01 "))
            run(0, "put", "none")
            equal([a.ask("reserve").split("|")[1] for _ in range(4)], ["of a", "of b", "of b", "none"])
            run(0, "limit", "default", "--each-group", "--running", "1")
            equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")
            run(0, "limit", "default", "--group", "a", "--running", "2")
            equal(a.ask("reserve-with-timeout 0"), "RESERVED 2 4|of a")
            equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")
            table = run(0, "limit").out
            matches(r"^default +each +- +1 +- +- +- +0 +-$", table)
            matches(r"^default +a +2 +2 +- +- +- +1 +-$", table)
            equal(a.numbers("stats-tube default")["current-jobs-held"], "1")
            # What each group's limit holds back, beside the others. What they hold together is what stats has.
            for held in range(1, 3):
                run(0, "put", "--group", "b", "of b")
                equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")
                matches(r"^default +each +- +1 +- +- +- +%d +-$" % held, run(0, "limit").out)
            matches(r"^default +a +2 +2 +- +- +- +1 +-$", run(0, "limit").out)
            equal(a.numbers("stats-tube default")["current-jobs-held"], "3")
            conversation(a, ("limit-tube default running=1", "LIMITED"), ("reserve-with-timeout 0", "TIMED_OUT"))
            matches(r"^default +- +5 +1 +- +- +- +3 +-$", run(0, "limit").out)
            matches(r"^default +each +- +1 +- +- +- +0 +-$", run(0, "limit").out)
            conversation(a, ("limit-tube default", "LIMITED"), ("delete 7", "DELETED"), ("delete 8", "DELETED"))
            equal([job.get("group") for job in a.jobs("list-delayed")], ["a", "a", "a", "b", "%01%20b", None])
            conversation(a, ("delete 1", "DELETED"), ("reserve-with-timeout 0", "RESERVED 3 4|of a"),
                         ("limit-tube default group=a", "LIMITED"), ("limit-tube default each=yes", "LIMITED"), ("list-limits", "OK 0|"))

    def test_a_group_has_a_weight(self):
        with Server("--clock", "virtual:0", "--data", "data") as server, server.client() as a:
            run = server.program.run
            equal(run(0, "limit", "default", "--group", "acme", "--weight", "3").out, "default, group acme: 3 turns where others get one\n")
            for group in ("acme",) * 7 + ("b",) * 2:
                run(0, "put", "--group", group, group)
            equal([a.ask("reserve").split("|")[1] for _ in range(9)], ["acme", "acme", "b", "acme", "acme", "acme", "b", "acme", "acme"])
            matches(r"^default +acme +7 +- +- +- +3 +0 +-$", run(0, "limit").out)
            equal(run(0, "limit", "default", "--group", "b", "--running", "1", "--weight", "1").out,
                  "default, group b: at most 1 run at once, 1 turn where others get one\n")
            conversation(a, ("limit-tube default weight=2", "BAD_FORMAT"), ("limit-tube default group=a weight=1001", "BAD_FORMAT"),
                         ("limit-tube default group=a weight=0", "BAD_FORMAT"), ("limit-tube default each=yes weight=2", "BAD_FORMAT"))
            server.stop(signal.SIGKILL)
        with Server("--clock", "virtual:0", "--data", "data") as server, server.client() as a:
            equal([(limit["group"], limit["running"], limit["weight"]) for limit in a.jobs("list-limits")], [("b", 1, 1), ("acme", 0, 3)])
            server.program.run(0, "limit", "default", "--group", "acme", "--clear")
            equal([limit["group"] for limit in a.jobs("list-limits")], ["b"])

    def test_mistakes(self):
        for arguments, said in ((("mail", "--rate", "100"), "100/1m"), (("mail", "--rate", "5/0"), "from 1ms to 7d"),
                                (("mail", "--rate", "0/1s"), "100/1m"), (("mail", "--rate", "5/8d"), "from 1ms to 7d"),
                                (("mail", "--rate", "9000/1ms"), "a million"), (("mail", "--burst", "3"), "needs --rate"),
                                (("--running", "3"), "the tube is missing"), (("mail", "--running", "0"), "from 1"),
                                (("mail", "--running", "3", "--clear"), "either"),
                                (("mail", "--running", "3", "--group", "a", "--each-group"), "either"),
                                (("mail", "--group", "a"), "a limit of the group"), (("mail", "--weight", "2"), "needs --group"),
                                (("mail", "--group", "a", "--weight", "1001"), "from 1 to 1000"), (("a", "b"), "one tube")):
            matches(said, alone.run(2, "limit", *arguments).err)
        with Server() as server, server.client() as a:
            conversation(a, ("limit-tube mail starts=1 per=0", "LIMITED"), ("limit-tube mail starts=1 per=0.0001", "BAD_FORMAT"),
                         ("limit-tube mail starts=2000000", "BAD_FORMAT"), ("limit-tube mail starts=1 per=999999", "BAD_FORMAT"),
                         ("limit-tube -x running=1", "BAD_FORMAT"), ("list-limits tube=none", "OK 0|"))


class Ear:
    """Hears what Redis tells all servers."""

    def __init__(self, redis):
        self.socket = socket.create_connection(("127.0.0.1", redis.port), PATIENCE)
        self.socket.sendall(b"SUBSCRIBE weekwheel:wake\r\n")
        self.kept = b""
        self.until(b"weekwheel:wake")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def until(self, text):
        while text not in self.kept:
            got = self.socket.recv(65536)
            assert got, "Redis has gone"
            self.kept += got
        self.kept = self.kept.split(text, 1)[1]


class Shared(Case):
    """Servers that share a Redis share its limits."""

    def test_whoever_was_refused_is_told_when_jobs_may_start(self):
        with Redis() as redis, Server("--store", redis.url) as server, Ear(redis) as ear, server.client() as a:
            conversation(a, ("limit-tube default running=1", "LIMITED"))
            ear.until(b"\r\nl default\r\n")
            a.put(ttr=100)
            a.put(ttr=100)
            first = a.ask("reserve").split()[1]
            equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")
            equal(a.ask("delete " + first), "DELETED")
            ear.until(b"\r\nl default\r\n")
            # Of a rate Redis tells by itself.
            conversation(a, ("limit-tube rate starts=1 per=0.3", "LIMITED"), ("watch rate", "WATCHING 2"), ("ignore default", "WATCHING 1"))
            ear.until(b"\r\nl rate\r\n")
            a.put(ttr=100, tube="rate")
            a.put(ttr=100)
            assert a.ask("reserve").startswith("RESERVED ")
            equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")
            ear.until(b"\r\nl rate\r\n")
            assert a.ask("reserve").startswith("RESERVED ")

    def test_two_servers_run_so_many_together_and_hear_of_each_other(self):
        with Redis() as redis, Server("--store", redis.url) as one, Server("--store", redis.url) as two, \
                one.client() as a, two.client() as b, two.client() as c:
            equal(one.program.run(0, "limit", "mail", "--running", "2").out, "mail: at most 2 run at once\n")
            matches("groups in Redis have no weights; leave it out", one.program.run(1, "limit", "mail", "--group", "a", "--weight", "2").err)
            equal(a.ask("limit-tube mail group=a weight=2"), "NO_WEIGHTS")
            for client in (a, b, c):
                equal(client.ask("watch mail"), "WATCHING 2")
            put(a, 5)
            first = a.ask("reserve").split()[1]
            second = b.ask("reserve").split()[1]
            equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")
            # One that waits at the other server hears of an end at this one.
            c.send("reserve\r\n")
            a.until_stats("current-jobs-held", 3, "stats-tube mail")
            equal(a.ask("delete " + first), "DELETED")
            third = c.answer().split()[1]
            # A server that dies gives its places back when its leases end.
            b.send("touch %s\r\n" % second)
            equal(b.answer(), "TOUCHED")
            equal([(limit["now_running"], limit["now_held"]) for limit in objects(one.program.run(0, "limit", "--json").out)], [(2, 2)])
            equal(c.ask("release %s 0 0" % third), "RELEASED")
            assert c.ask("reserve").startswith("RESERVED ")

    def test_groups_are_fair_and_limited_over_two_servers(self):
        with Redis() as redis, Server("--store", redis.url, "--redis-shards", "4") as one, \
                Server("--store", redis.url) as two, one.client() as a, two.client() as b:
            run = one.program.run
            for group, number in (("big", 40), ("small", 4)):
                for _ in range(number):
                    run(0, "put", "--group", group, group)
            # Of each shard the first two are of both groups.
            got = [a.ask("reserve") for _ in range(8)]
            equal(sorted(text.split("|")[1] for text in got), ["big"] * 4 + ["small"] * 4)
            ids = {text.split("|")[1]: text.split()[1] for text in got}
            run(0, "limit", "default", "--group", "big", "--running", "4")
            equal(objects(run(0, "limit", "--json").out), [
                {"tube": "default", "group": "big", "each": False, "running": 4, "starts": 0, "per": 1, "burst": 1, "weight": 1, "now_running": 4, "now_held": 36, "left": 0}])
            equal(b.ask("reserve-with-timeout 0"), "TIMED_OUT")
            equal(b.numbers("stats-tube default")["current-jobs-held"], "36")
            b.send("reserve\r\n")
            b2 = two.client()
            b2.until_waiting()
            b2.close()
            # The other group's end lets nothing start; that of this one does, at the other server.
            equal(a.ask("delete " + ids["small"]), "DELETED")
            equal(a.ask("delete " + ids["big"]), "DELETED")
            matches(r"RESERVED \d+ 3\|big", b.answer())
            equal(b.ask("reserve-with-timeout 0"), "TIMED_OUT")
            # At its pace: Redis tells when a held group may go on.
            run(0, "limit", "default", "--group", "big", "--rate", "1/300ms")
            for _ in range(3):
                assert b.ask("reserve").startswith("RESERVED ")
            run(0, "limit", "default", "--group", "big", "--clear")
            equal(run(0, "limit", "--json").out, "")
            for _ in range(30):
                assert b.ask("reserve-with-timeout 0").startswith("RESERVED ")

    def test_the_places_of_a_server_that_dies_are_free_again(self):
        with Redis() as redis, Server("--store", redis.url) as one, one.client() as a:
            with Server("--store", redis.url) as two, two.client() as b:
                conversation(a, ("limit-tube default running=1", "LIMITED"))
                for _ in range(2):
                    a.put(ttr=1)
                b.ask("reserve")
                equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")
                two.stop(signal.SIGKILL)
            assert a.ask("reserve").startswith("RESERVED ")

    def test_jobs_start_at_their_pace(self):
        with Redis() as redis, Server("--store", redis.url) as server, server.client() as a, server.client() as b:
            conversation(a, ("limit-tube default starts=20", "LIMITED"))
            for _ in range(9):
                b.put(ttr=100)
            begin = time.monotonic()
            for client in (a, b) * 4:
                client.send("reserve\r\n")
            for client in (a, b) * 4:
                assert client.answer().startswith("RESERVED ")
            # The first at once, each of the others a twentieth of a second later.
            assert time.monotonic() - begin >= 7 / 20
            conversation(a, ("limit-tube default", "LIMITED"))
            assert a.ask("reserve-with-timeout 0").startswith("RESERVED ")


main()
