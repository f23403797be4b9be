#!/usr/bin/env python3
"""Jobs with a code go to the workers that know it, by the protocol, /v1 and the command line; the others wait for them."""
# tier: check
import functools
import json

from harness import Case, conversation, equal, main, matches, objects
from web import ByRedis, Stores, Web


def put(client, body, code):
    return int(client.ask("put-key 0 0 60 %d - code=%d\r\n%s" % (len(body), code, body)).split()[1])


class Embedded(Stores, Case):
    def test_the_protocol(self):
        with self.server() as server, server.client() as old, server.client() as plain:
            conversation(old, ("code 6", "CODE"), ("code", "UNKNOWN_COMMAND"), ("code x", "BAD_FORMAT"),
                         ("code 2147483648", "BAD_FORMAT"), ("code 1 2", "BAD_FORMAT"),
                         ("put-key 0 0 60 1 - code=2147483648\r\nx", "BAD_FORMAT"))
            seven, six = put(plain, "seven", 7), put(plain, "six", 6)
            equal(plain.jobs("list-delayed id=%d" % seven)[0]["code"], 7)
            equal(old.ask("reserve-with-timeout 0"), "RESERVED %d 3|six" % six)
            equal(old.ask("reserve-with-timeout 0"), "TIMED_OUT")
            equal(old.ask("release %d 0 0" % six), "RELEASED")
            # Who says nothing takes all, and who says another code later takes those up to that one.
            equal(plain.ask("reserve-with-timeout 0"), "RESERVED %d 5|seven" % seven)
            equal(plain.ask("release %d 0 0" % seven), "RELEASED")
            conversation(old, ("code 5", "CODE"), ("reserve-with-timeout 0", "TIMED_OUT"), ("code 7", "CODE"),
                         ("reserve-with-timeout 0", "RESERVED %d 5|seven" % seven))

    def test_who_waits_gets_what_it_knows(self):
        with self.server() as server, server.client() as old, server.client() as new, server.client() as a:
            for worker, code in ((old, 3), (new, 5)):
                equal(worker.ask("code %d" % code), "CODE")
                worker.send("reserve\r\n")
                a.until_waiting(1 if worker is old else 2)
            equal(new.answer() if put(a, "four", 4) else "", "RESERVED 1 4|four")
            # The one that has waited longer has not been passed over for what it knows.
            new.send("reserve\r\n")
            a.until_waiting(2)
            equal(old.answer() if put(a, "three", 3) else "", "RESERVED 2 5|three")
            equal(new.answer() if put(a, "five", 5) else "", "RESERVED 3 4|five")

    def test_http(self):
        with self.server() as server, Web(server, self.token) as web, Web(server, self.token) as waiter:
            made = web.good("POST", "jobs", {"body": "x", "code": 9})
            equal(web.good("GET", "jobs/" + made["id"])["code"], 9)
            equal(web.good("POST", "leases", {"code": 8}), {"leases": []})
            waiter.begin("POST", "leases", {"code": 7, "wait": 20})
            equal(web.good("POST", "leases", {"code": 9})["leases"][0]["id"], made["id"])
            web.good("POST", "jobs", {"body": "y", "code": 7})
            equal(waiter.end()[1]["leases"][0]["body"], "y")
            web.refused(422, "code", "POST", "jobs", {"body": "x", "code": 2 ** 31})
            web.refused(422, "code", "POST", "leases", {"code": -1})

    def test_the_command_line(self):
        with self.server() as server:
            run = functools.partial(server.program.run, WEEKWHEEL_TOKEN=self.token)
            run(0, "put", "--code", "12", "new")
            run(0, "put", "old")
            equal(objects(run(0, "list", "--json").out)[0]["code"], 12)
            equal(run(0, "work", "--code", "11", "--drain", "--", "cat").out, "old")
            equal(run(0, "work", "--code", "12", "--drain", "--", "cat").out, "new")
            run(0, "schedule", "add", "nightly", "0 3 * * *", "x", "--code", "5")
            equal(json.loads(run(0, "schedule", "show", "nightly", "--json").out)["code"], 5)
            run(0, "schedule", "run", "nightly")
            equal(objects(run(0, "list", "--json").out)[0]["code"], 5)
            run(2, "put", "--code", "2147483648", "x")
            run(2, "work", "--code", "x", "--", "cat")

    def test_who_knows_no_code_is_seen(self):
        with self.server("--clock", "virtual") as server, Web(server, self.token) as web, server.client() as a, server.client() as old, \
                server.client() as new:
            def unknown():
                numbers = a.numbers("stats-tube default")
                tube = web.good("GET", "tubes/default")
                listed = web.good("GET", "tubes")["tubes"][0]
                equal(tube, listed)
                said = int(numbers["current-jobs-unknown-code"]), int(numbers["lowest-unknown-code"])
                equal(said, (tube.get("unknown_code", 0), tube.get("lowest_unknown_code", 0)))
                for name, value in zip(("jobs_unknown_code", "lowest_unknown_code"), said):
                    matches('(?m)^weekwheeld_tube_%s{tube="default"} %d$' % (name, value), web.text("/metrics"))
                return said
            put(a, "x", 0)
            equal("current-jobs-unknown-code" in a.numbers("stats-tube default"), False)
            put(a, "x", 12)
            put(a, "x", 9)
            # Without a worker, nobody knows even the first.
            equal(unknown(), (2, 9))
            conversation(old, ("code 9", "CODE"), ("reserve-with-timeout 0", "RESERVED 1 1|x"), ("release 1 0 0", "RELEASED"))
            equal(unknown(), (1, 12))
            equal(old.numbers("stats-tube default")["current-jobs-above-code"], "1")
            # A connection is no worker before it has reserved, nor in a tube that it does not watch.
            conversation(new, ("code 12", "CODE"), ("watch other", "WATCHING 2"), ("ignore default", "WATCHING 1"),
                         ("reserve-with-timeout 0", "TIMED_OUT"))
            equal(unknown(), (1, 12))
            equal(new.ask("watch default"), "WATCHING 2")
            equal(unknown(), (0, 0))
            new.socket.close()
            a.until_stats("current-connections", 2)
            equal(unknown(), (1, 12))
            # A worker over HTTP counts for a minute, and who says nothing knows all.
            lease = web.good("POST", "leases", {})["leases"][0]
            web.good("POST", "jobs/%s/return" % lease["id"], {"token": lease["token"]})
            equal(unknown(), (0, 0))
            matches("^ADVANCED", a.ask("advance 61"))
            equal(unknown(), (1, 12))


class InRedis(ByRedis, Case):
    def test_a_code_is_refused(self):
        with self.server() as server, Web(server, self.token) as web, server.client() as a:
            conversation(a, ("put-key 0 0 60 1 - code=1\r\nx", "NO_CODES"), 
                         ("put-schedule 0 0 60 1 n cron=%40daily code=1\r\nx", "NO_CODES"), ("code 1", "CODE"))
            matches("^INSERTED", a.ask("put-key 0 0 60 1 - code=0\r\nx"))
            matches("^RESERVED", a.ask("reserve-with-timeout 0"))
            web.refused(422, "code", "POST", "jobs", {"body": "x", "code": 1})
            matches("jobs in Redis have no code", server.program.run(1, "put", "--code", "1", "x", WEEKWHEEL_TOKEN=self.token).err)


if __name__ == "__main__":
    main()
