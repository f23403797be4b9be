#!/usr/bin/env python3
"""Headers of a job, by the protocol, /v1, the command line and a worker: each way out has what each way in took, and none lets
them become anything else."""
# tier: check
import functools
import json

from harness import Case, conversation, equal, main, matches, objects
from web import ByRedis, Stores, Web

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
LINES = f"tenant: a\"b\\c<i>\ntraceparent: {TRACE}\n"
SAID = {"tenant": "a\"b\\c<i>", "traceparent": TRACE}


def put(client, headers, body, more=""):
    return client.ask("put-key 0 0 60 %d - headers=%d%s\r\n%s%s" % (len(headers + body), len(headers), more, headers, body))


def job(client, line):
    """Ask as a client that takes headers does: the third number, if there is one, says how much of the bytes they are."""
    client.send(line + "\r\n")
    words = client.line()
    return words + "|" + client.block(int(words.split()[2])).decode()


class Headers:
    def test_the_protocol(self):
        with self.server() as server, server.client() as a, server.client() as plain:
            number = int(put(a, LINES, "body").split()[1])
            conversation(a, ("headers", "HEADERS"), ("headers x", "BAD_FORMAT"))
            equal(plain.ask("peek %d" % number), "FOUND %d 4|body" % number)
            whole = "%d %d %d|%sbody" % (number, len(LINES) + 4, len(LINES), LINES)
            equal(job(a, "peek %d" % number), "FOUND " + whole)
            equal("headers" in a.jobs("list-delayed id=%d" % number)[0], False)
            equal(a.jobs("list-delayed id=%d body=yes" % number)[0]["headers"], SAID)
            equal(a.jobs("list-delayed")[0]["headers"], SAID)
            equal(plain.ask("reserve-with-timeout 0"), "RESERVED %d 4|body" % number)
            equal(plain.ask("release %d 0 0" % number), "RELEASED")
            equal(job(a, "reserve-with-timeout 0"), "RESERVED " + whole)
            equal(a.ask("release %d 0 0" % number), "RELEASED")
            equal(job(a, "reserve-job %d" % number), "RESERVED " + whole)
            equal(a.ask("delete %d" % number), "DELETED")
            # One without is as it was.
            number = int(a.put(b"x").split()[1])
            equal(a.ask("reserve-with-timeout 0"), "RESERVED %d 1|x" % number)
            equal("headers" in a.jobs("list-delayed id=%d" % number)[0], False)
            equal(a.ask("delete %d" % number), "DELETED")

    def test_the_protocol_refuses(self):
        with self.server() as server, server.client() as a:
            for bad in ("a: b", "A: b\n", "a: b\r\n", "a: b\nno\n", "a: b\na: c\n", "a b: c\n", "a:\tb\n", "a: \x7f\n", "\n"):
                equal(put(a, bad, "x"), "BAD_FORMAT", bad)
            equal(put(a, "".join("n%d: v\n" % i for i in range(17)), "x"), "BAD_FORMAT")
            for size in ("3", "0", "-1", "5000", "x", ""):
                equal(a.ask("put-key 0 0 60 2 - headers=%s\r\nxx" % size), "BAD_FORMAT", size)
            equal(a.ask("stats").count("\ncurrent-jobs-ready: 0\n"), 1)

    def test_only_the_body_counts_for_the_largest_job(self):
        with self.server("--max-job-size", "10") as server, Web(server, self.token) as web, server.client() as a:
            long = "a: %s\n" % ("x" * 4000)
            matches("^INSERTED", put(a, long, "0123456789"))
            equal(put(a, long, "0123456789a"), "JOB_TOO_BIG")
            web.good("POST", "jobs", {"body": "0123456789", "headers": {"a": "x" * 4000}})
            web.refused(413, "body", "POST", "jobs", {"body": "0123456789a", "headers": {"a": "x"}})

    def test_http(self):
        with self.server() as server, Web(server, self.token) as web, server.client() as a:
            made = web.good("POST", "jobs", {"body": "x", "headers": {"Tenant": "a\"b\\c<i>", "traceparent": TRACE}})
            equal(web.good("GET", "jobs/" + made["id"])["headers"], SAID)
            equal(web.good("GET", "jobs")["jobs"][0]["headers"], SAID)
            equal(web.good("POST", "leases", {})["leases"][0]["headers"], SAID)
            for bad in ({"a": "b\r\nc: d"}, {"a": "b\nc"}, {"a": "b\0"}, {"a b": ""}, {"": "x"}, {"a": 1}, {"a": None}, {"a": "é"},
                        {"a": "x", "A": "y"}, {"a": "x" * 4096}, {"n%d" % i: "" for i in range(17)}, [], "a: b", None):
                web.refused(422, "headers", "POST", "jobs", {"body": "x", "headers": bad})

    def test_the_command_line(self):
        with self.server() as server:
            run = functools.partial(server.program.run, WEEKWHEEL_TOKEN=self.token)
            number = run(0, "put", "--header", "Tenant=a\"b\\c<i>", "-H", "traceparent: " + TRACE, "body").out.split()[0]
            equal(json.loads(run(0, "peek", "--json", number).out)["headers"], SAID)
            equal("header                   tenant: a\"b\\c<i>\n" in run(0, "peek", number).out, True)
            equal(objects(run(0, "list", "--json").out)[0]["headers"], SAID)
            said = run(0, "work", "--drain", "--", "sh", "-c", "env | grep -E '^WEEKWHEEL_HEADER|^TRACE'; cat",
                       WEEKWHEEL_HEADER_OLD="old", TRACEPARENT="old").out.split()
            equal(sorted(said), sorted(["WEEKWHEEL_HEADER_TENANT=a\"b\\c<i>", "WEEKWHEEL_HEADER_TRACEPARENT=" + TRACE,
                                        "TRACEPARENT=" + TRACE, "body"]))
            for bad in ("a=b\nc", "a b=c", "a", "=b", "a=é", "a= b"):
                run(2, "put", "--header", bad, "x")
            run(2, "put", "-H", "a=b", "-H", "A=c", "x")

    def test_a_worker_keeps_its_environment(self):
        with self.server() as server, server.client() as a:
            put(a, "path: /evil\nld_preload: evil\nld-preload: evil\nweekwheel_token: evil\nifs: x\n", "x")
            said = server.program.run(0, "work", "--drain", "--", "sh", "-c", "env | grep -i evil",
                                      WEEKWHEEL_TOKEN=self.token).out.split()
            equal(sorted(said), ["WEEKWHEEL_HEADER_LD_PRELOAD=evil", "WEEKWHEEL_HEADER_PATH=/evil",
                                 "WEEKWHEEL_HEADER_WEEKWHEEL_TOKEN=evil"])


class InMemory(Headers, Stores, Case):
    pass


class InRedis(Headers, ByRedis, Case):
    pass


if __name__ == "__main__":
    main()
