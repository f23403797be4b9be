#!/usr/bin/env python3
"""Allocations of memory fail, each in turn. That ends what it concerns and no more: the server serves the next client,
and what it acknowledged holds."""
# tier: check
import re

from faults import FOREVER, Plan
from harness import Case, Server, check, equal, main

ERRORS = ("OUT_OF_MEMORY", "INTERNAL_ERROR")


class Story:
    """Commands of every kind. A connection may end instead of an answer; then a new one goes on."""

    def __init__(self, server):
        self.server, self.client = server, None
        self.jobs = {}  # id: the tubes in which it may be; None: it may be gone
        self.unknown = False  # a put may have been stored
        self.said = []

    def ask(self, line):
        """An answer, or None if the connection has ended."""
        try:
            if not self.client:
                self.client = self.server.client()
            answer = self.client.ask(line)
            self.said.append("%s -> %s" % (line[:40], answer[:40]))
            return answer
        except (EOFError, OSError):
            self.client = None
            self.said.append("%s -> closed" % line[:40])
            return None

    def put(self, line):
        answer = self.ask(line)
        if answer is None:
            self.unknown = True
        elif re.match("INSERTED|REPLACED", answer):
            self.jobs[int(answer.split()[1])] = True
            return int(answer.split()[1])
        else:
            check(answer in ERRORS, (line, answer))
        return None

    def delete(self, number):
        answer = self.ask("delete %d" % number)
        if answer == "DELETED":
            del self.jobs[number]
        elif answer is None:
            self.jobs[number] = None
        else:
            check(answer in ERRORS + ("NOT_FOUND",), answer)

    def tell(self):
        self.put("put 5 0 60 5\r\nhello")
        self.put("put 5 3600 60 2000\r\n" + "x" * 2000)
        self.put("put-key 3 3600 100 5 key every=60\r\nlater")
        self.ask("use other")
        self.ask("watch other")
        self.put("put 7 0 60 1\r\nx")
        for verb in ("release %d 5 0", "bury %d 6", "touch %d", "delete"):
            answer = self.ask("reserve-with-timeout 0")
            if not answer or not answer.startswith("RESERVED"):
                continue
            number = int(answer.split()[1])
            if verb == "delete":
                self.delete(number)
            else:
                self.ask(verb % number)
        # The schedule's time is years away: all stories take hours of the virtual clock, perhaps over a midnight.
        for line in ("kick 10", "peek-ready", "peek-delayed", "peek-buried", "stats", "stats-tube other", "list-tubes",
                     "list-tubes-watched", "list-tube-used", "list-delayed body=yes", "forecast 60 100", "limit-tube default running=50", "list-limits", "list-schedules",
                     "put-schedule 0 0 60 1 n cron=0%200%2029%202%20%2A\r\nx", "list-schedules name=n tube=other", "pause-schedule n",
                     "ignore other",
                     "pause-tube default 0", "no-such-verb", "put 0 0 0 100000\r\n" + "x" * 100000):
            self.ask(line)
        if (self.ask("list-schedules name=n tube=other") or "").startswith("OK"):
            self.put("run-schedule n")
        for number in list(self.jobs)[:2]:
            for verb in ("stats-job %d", "peek %d", "kick-job %d", "reserve-job %d", "release %d 1 0"):
                self.ask(verb % number)
        if self.client:
            self.client.close()

    def judge(self):
        """Without a shortage: the jobs are those of which the server has said so."""
        with self.server.client() as client:
            # A client that went gives its jobs back, or if there was no memory for that, their time to run ends.
            client.until_stats("current-connections", 1)
            check(client.ask("advance 61").startswith("ADVANCED"), "time goes on")
            client.until_stats("current-jobs-reserved", 0)
            found = {job["id"] for job in client.all_jobs()}
            sure = {number for number, there in self.jobs.items() if there}
            check(sure <= found, "lost: %r" % (sure - found))
            check(self.unknown or found <= set(self.jobs), "not acknowledged, and there: %r" % (found - set(self.jobs)))
            check(client.put(b"after").startswith("INSERTED"), "the server goes on")
            for job in client.all_jobs():
                equal(client.ask("delete %d" % job["id"]), "DELETED")


class Shortage(Case):
    def each(self, *arguments):
        plan = Plan()
        with Server("--clock", "virtual", *arguments, **plan.environment) as server:
            for first in range(1, 10000):
                plan.set(first)
                story = Story(server)
                try:
                    story.tell()
                    failed = plan.failed()
                    plan.set(0)
                    story.judge()
                except (AssertionError, EOFError, OSError) as problem:
                    raise AssertionError("allocation %d fails: %r\n%s" % (first, problem, "\n".join(story.said))) from problem
                if not failed:
                    print("%d allocations" % (first - 1))
                    return
            raise AssertionError("allocations have no end")

    def test_each_allocation_fails_in_memory(self):
        self.each()

    def test_each_allocation_fails_on_disk(self):
        self.each("--data", "jobs", "--sync", "system")

    def test_a_client_that_comes_during_a_shortage_is_served_after_it(self):
        plan = Plan()
        with Server(**plan.environment) as server:
            plan.set(1, FOREVER)
            with server.client() as client:
                client.send("list-tube-used\r\n")
                while not plan.failed():
                    pass
                plan.set(0)
                with server.client() as other:
                    equal(other.ask("list-tube-used"), "USING default")


main()
