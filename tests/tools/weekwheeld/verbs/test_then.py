#!/usr/bin/env python3
"""Follow-ups of a job, by the protocol, /v1, the command line and copies: each way out has what each way in took, a delete puts
them, and whoever may not put a job there may not let it follow."""
# tier: check
import functools
import json

from harness import Case, Server, equal, main, matches, objects, until
from web import ByRedis, Stores, Web, token_of

MAIL = {"tube": "mail", "body": "to ada"}


def put(client, then, body="resize", more="", key="-"):
    text = then if isinstance(then, str) else json.dumps(then)
    size = len(text.encode())
    return client.ask("put-key 0 0 60 %d %s then=%d%s\r\n%s%s" % (size + len(body), key, size, more, text, body))


def number_of(answer):
    matches("^INSERTED", answer)
    return int(answer.split()[1])


def reserve(client, tube):
    client.ask("watch " + tube)
    return client.ask("reserve-with-timeout 0")


class Follows(Stores, Case):
    def test_a_delete_puts_it(self):
        with self.server() as server, server.client() as a:
            number = number_of(put(a, dict(MAIL, then={"tube": "mail", "body": "to bob"})))
            equal(a.jobs("list-delayed")[0]["then"], {"tube": "mail", "body": "to ada", "then": {"tube": "mail", "body": "to bob"}})
            equal("then" in a.jobs("list-delayed id=%d" % number)[0], False)
            equal(a.jobs("list-delayed id=%d body=yes" % number)[0]["then"]["body"], "to ada")
            equal(a.ask("reserve"), "RESERVED %d 6|resize" % number)
            equal(reserve(a, "mail"), "TIMED_OUT")
            equal(a.ask("delete %d" % number), "DELETED")
            equal(reserve(a, "mail"), "RESERVED %d 6|to ada" % (number + 1))
            equal(a.ask("delete %d" % (number + 1)), "DELETED")
            equal(reserve(a, "mail"), "RESERVED %d 6|to bob" % (number + 2))
            equal(a.ask("delete %d" % (number + 2)), "DELETED")
            equal(a.ask("stats").count("\ncurrent-jobs-ready: 0\n"), 1)

    def test_it_comes_behind_the_headers(self):
        with self.server() as server, server.client() as a:
            text = json.dumps(MAIL)
            lines = "a: b\n"
            number = number_of(a.ask("put-at 0 1 60 %d k headers=%d then=%d\r\n%s%sx" % (
                len(lines + text) + 1, len(lines), len(text), lines, text)))
            job = a.jobs("list-delayed id=%d body=yes" % number)[0]
            equal((job["headers"], job["then"], job["body"]), ({"a": "b"}, MAIL, "eA=="))

    def test_who_has_no_lease_takes_it_along(self):
        with self.server() as server, server.client() as a:
            number = number_of(put(a, MAIL))
            equal(a.ask("delete %d" % number), "DELETED")
            number_of(put(a, MAIL, key="k"))
            equal(a.ask("delete-key k"), "DELETED")
            equal(reserve(a, "mail"), "TIMED_OUT")

    def test_a_worker_that_is_late(self):
        """Its time was up, and nobody else has the job: the delete still counts, and what follows is put."""
        for attempts in ("", " attempts=1"):
            with self.server("--clock", "virtual:1000000000") as server, server.client() as a:
                number = number_of(put(a, MAIL, more=attempts))
                equal(a.ask("reserve"), "RESERVED %d 6|resize" % number)
                matches("^ADVANCED", a.ask("advance 100"))
                until(lambda: a.jobs("list-delayed")[0]["state"] == ("buried" if attempts else "ready"), "the lease ends")
                equal(a.ask("delete %d" % number), "DELETED")
                equal(reserve(a, "mail"), "RESERVED %d 6|to ada" % (number + 1))
                equal(len(a.jobs("list-delayed")), 1)

    def test_what_is_no_job_is_refused(self):
        with self.server("--max-job-size", "200") as server, Web(server, self.token) as web, server.client() as a:
            for bad, why in (
                    ("[]", "no object"), ("1", "no object"), ('{"tube":', "no object"), ('{"tub":"x"}', "tub of job 1"),
                    ('{"body":1}', "body of job 1"), ('{"delay":-1}', "delay of job 1"), ('{"tube":""}', "tube of job 1"),
                    ('{"tube":"-x"}', "its tube must be"), ('{"then":{"tube":"a b"}}', "its tube must be"),
                    ('{"delay":1,"at":"2099-01-01T00:00:00Z"}', "both delay and at"), ('{"mode":"if-absent"}', "no key"),
                    ('{"body":"x","body":"y"}', "body of job 1 in it is there twice"), ('{"unique":1}', "no key"),
                    ('{"every":1,"then":{}}', "every"), ('{"then":{"then":{"run":0}}}', "run of job 3"),
                    ('{"then":' * 16 + "{}" + "}" * 16, "16 jobs in a row"), ("null", "no object")):
                if len(bad) < 150:
                    equal(put(a, bad), "BAD_FORMAT", bad)
                if bad != '{"tube":':
                    matches(why, web.refused(422, "then", "POST", "jobs", {"body": "x", "then": json.loads(bad)}
                                             if "twice" not in why else ('{"then":%s}' % bad).encode()))
            web.refused(422, "then", "POST", "jobs", {"every": 1, "then": {}})
            equal(put(a, MAIL, more=" every=1"), "BAD_FORMAT")
            for size in ("0", "-1", "x", "", "3"):
                equal(a.ask("put-key 0 0 60 2 - then=%s\r\n{}" % size), "BAD_FORMAT", size)
            equal(put(a, MAIL, body="x" * 200), "JOB_TOO_BIG")
            web.refused(413, "body", "POST", "jobs", {"body": "x" * 190, "then": MAIL})
            # The key of the one before is taken by its end.
            both = {"tube": "default", "key": "k"}
            equal(put(a, both, key="k", more=" unique=60"), "BAD_FORMAT")
            equal(a.ask("stats").count("\ncurrent-jobs-ready: 0\n"), 1)

    def test_the_right_to_put_counts(self):
        token = token_of("clerk", "put:one", "put:two")
        with self.server() as server, Web(server, token) as web, server.client() as a:
            a.ask("auth " + token)
            a.ask("use one")
            number_of(put(a, {"tube": "two"}))
            for then in ({"tube": "three"}, {"tube": "two", "then": {"tube": "three"}}, {}):
                equal(put(a, then), "DENIED")
                web.refused(403, "then", "POST", "jobs", {"tube": "one", "then": then})
            web.good("POST", "jobs", {"tube": "one", "then": {"tube": "two"}})

    def test_http(self):
        with self.server() as server, Web(server, self.token) as web:
            then = {"tube": "mail", "body_base64": "/w==", "delay": 90, "key": "k", "unique": 60, "priority": 0, "run": 5,
                    "headers": {"a": "b"}, "group": "g", "attempts": 3, "backoff": 2, "expire": 7, "expired": "bury", "keep": 1,
                    "then": {"at": "2099-01-01T00:00:00.500000000Z", "key_base64": "/w==", "debounce": 5, "then": {"every": 60}}}
            made = web.good("POST", "jobs", {"body": "x", "then": dict(then, delay="1.5m")})
            equal(web.good("GET", "jobs/" + made["id"])["then"], then)
            equal(web.good("GET", "jobs")["jobs"][0]["then"], then)
            lease = web.good("POST", "leases", {})["leases"][0]
            equal("then" in lease, False)
            web.good("POST", "jobs/%s/finish" % lease["id"], {"token": lease["token"]})
            job = web.good("GET", "jobs")["jobs"][0]
            equal((job["tube"], job["then"], job["delay"], job["unique"]), ("mail", then["then"], 90, 60))
            web.good("POST", "jobs", [{"body": "1", "then": MAIL}, {"body": "2"}])
            equal(sum("then" in job for job in web.good("GET", "jobs")["jobs"]), 2)

    def test_a_worker_of_the_command_line(self):
        with self.server() as server:
            run = functools.partial(server.program.run, WEEKWHEEL_TOKEN=self.token)
            with open("next.json", "w", encoding="utf-8") as file:
                json.dump(dict(MAIL, then={"tube": "log"}), file)
            number = run(0, "put", "--then", "next.json", "-H", "a=b", "body").out.split()[0]
            for said in (json.loads(run(0, "peek", "--json", number).out), objects(run(0, "list", "--json").out)[0]):
                equal((said["then"], said["headers"]), (dict(MAIL, then={"tube": "log"}), {"a": "b"}))
            matches(r'(?m)^then +\{"tube":"mail",', run(0, "peek", number).out)
            run(0, "put", "--then", json.dumps(MAIL), "--lines", stdin=b"one\ntwo\n")
            run(0, "put", "--tube", "hooks", "--then", json.dumps(MAIL), "--url", "http://localhost/", "x")
            matches(r"^POST http://localhost/\n", run(0, "peek", "4", "--body").out)
            equal(run(0, "work", "--drain", "--", "sh", "-c", "cat; echo").out, "body\none\ntwo\n")
            equal(run(0, "work", "--drain", "--tube", "mail", "--", "sh", "-c", "cat; echo").out, "to ada\n" * 3)
            equal([job["tube"] for job in objects(run(0, "list", "--json").out)], ["hooks", "log"])
            for bad in ('{"tub": 1}', "missing.json", '{"body": "x"', '{"then": {"delay": "soon"}}'):
                run(2, "put", "--then", bad, "x")
            matches("--every", run(2, "put", "--every", "1h", "--then", "{}", "x").err)

    def test_a_copy_has_it(self):
        with Server("--data", "one") as server, server.client() as a:
            number_of(put(a, dict(MAIL, delay=60, key="a b/\u00e4", then={"at": "2099-01-01T00:00:00.000000001Z"})))
            put(a, MAIL, "unlike", " keep=60", "k")
            server.stop()
            lines = server.program.run(0, "export", "one").out
            server.program.run(0, "import", "two", stdin=lines.encode())
            again = server.program.run(0, "export", "two").out
            equal([job["then"] for job in objects(again)], [job["then"] for job in objects(lines)])
            equal(objects(again)[0]["then"], {"tube": "mail", "body": "to ada", "delay": 60, "key": "a b/\u00e4",
                                              "then": {"at": "2099-01-01T00:00:00.000000001Z"}})
        with Server("--data", "two") as server, server.client() as a:
            matches("resize$", a.ask("reserve"))
            a.ask("delete 1")
            equal([job["tube"] for job in a.jobs("list-delayed")], ["default", "mail"])


class InRedis(ByRedis, Case):
    def test_it_is_refused(self):
        with self.server() as server, Web(server, self.token) as web, server.client() as a:
            equal(put(a, MAIL), "NO_THEN")
            matches("jobs in Redis", web.refused(422, "then", "POST", "jobs", {"body": "x", "then": MAIL}))
            said = server.program.run(1, "put", "--then", "{}", "x", WEEKWHEEL_TOKEN=self.token)
            matches("leave --then out", said.err)
            equal(a.ask("stats").count("\ncurrent-jobs-ready: 0\n"), 1)


if __name__ == "__main__":
    main()
