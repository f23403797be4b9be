#!/usr/bin/env python3
"""The manual of weekwheel-sessiond names each command, each word of one, each option and each difference from Redis."""
# tier: check, no-sanitizers
import os
import re
import subprocess

from sessiond import SESSIOND, RedisServer, Sessiond
from harness import PATIENCE, ROOT, Case, check, equal, main

with open(os.path.join(ROOT, "man", "weekwheel-sessiond.1"), encoding="utf-8") as manual_file:
    MANUAL = manual_file.read().replace("\\-", "-").replace("\\\n", "")
# What each heading of DIFFERENCES means: commands whose last answer Redis gives otherwise.
DIFFERENT = {
    "Types": [["GETRANGE", "a", "0", "1"]],
    "Scripts": [["EVAL", "return cjson.encode({})", "0"]],
    "Expiry": [["SET", "a", "b", "PXAT", "1"], ["DBSIZE"]],
    "Long deadlines": [["SET", "a", "b", "EX", "6000000000"], ["EXPIRETIME", "a"]],
    "Keys": [["SET", "k" * 65536, "b"]],
    "Commands": [["SET", "a", "b", "NX\0"]],
    "Patterns": [["SET", "k" * 5000, "b"], ["KEYS", "?" * 5000]],
    "Events": [["CONFIG", "SET", "notify-keyspace-events", "Km"]],
    "Errors": [["CONFIG", "SET", "x" * 9000, "1"]],
    "WATCH": [["WATCH", "a"], ["SET", "a", "b"], ["DEL", "a"], ["MULTI"], ["EXEC"]],
    "SCAN": [["MSET", *(f"key:{n}" for n in range(100))], ["SCAN", "0", "COUNT", "50"]],
    "CONFIG": [["CONFIG", "SET", "maxmemory", "100mb"]],
    "CLIENT": [["CLIENT", "TRACKING", "ON"]],
    "HELP": [["PUBSUB", "HELP"]],
    "COMMAND": [["COMMAND", "DOCS", "get"]],
    "INFO": [["INFO", "clients"]],
    "Replication, clusters": [["REPLICAOF", "NO", "ONE"]],
}
# These need a clock that somebody sets.
UNTOLD = {"The clock"}


def section(name):
    return re.search(rf'^\.SH "?{re.escape(name)}"?\n(.*?)(?=^\.SH )', MANUAL, re.M | re.S)[1]


def words(answer):
    return re.findall(r"^[$+]?\d*\r?\n?([a-z][^\r\n]*)\r$", answer.decode(), re.M)


def names(client):
    return {name.upper() for name in words(client.ask("COMMAND", "LIST")) if "|" not in name}


class Manual(Case):
    def entries(self):
        """The heads of the entries in COMMANDS."""
        return [re.sub(r"\\f[BRI]", " ", line) for line in re.findall(r"^\.TP\n(.*)$", section("COMMANDS"), re.M)]

    def test_each_command_has_an_entry(self):
        with Sessiond() as server, server.client() as a:
            table = names(a)
            told = [word for entry in self.entries() for word in re.findall(r"(?:^|, +) *([A-Z_]+)", " " + entry)]
            equal(sorted(told), sorted(table))
            for name in ("CLIENT", "COMMAND", "CONFIG", "PUBSUB", "SCRIPT"):
                entry = next(entry for entry in self.entries() if entry.strip().startswith(name))
                for line in words(a.ask(name, "HELP")):
                    check(line.split()[1].upper() in entry, (name, line))

    def test_each_option_is_there_and_no_other(self):
        said = subprocess.run([SESSIOND, "--help"], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
        options = set(re.findall(r"^  (?:-\w, |    )--([a-z-]+)", said, re.M))
        equal(set(re.findall(r"^\.BR? .*?--([a-z-]+)", section("OPTIONS"), re.M)) & options, options)
        equal(set(re.findall(r"--([a-z-]+)", re.sub(r"^\.nf.*?^\.fi", "", MANUAL, flags=re.M | re.S)))
              - options - {"auth-file", "push"}, set())

    def test_what_is_not_there_is_named(self):
        with Sessiond() as server, server.client() as a, RedisServer() as redis, redis.client() as b:
            types = re.search(r"^Types\n(.*?)^\.TP", section("DIFFERENCES"), re.M | re.S)[1]
            named = set(re.findall(r"\b([A-Z]{2,})\b(?!\.\.\.)", types))
            patterns = tuple(re.findall(r"\b([A-Z]+)\.\.\.", types))
            absent = names(b) - names(a)
            equal({name for name in absent if name not in named and not name.startswith(patterns)}, set())
            for name in named & absent:
                answer = a.ask(name)
                check(b"weekwheel-sessiond keeps strings" in answer, answer)
            equal(named - absent, set())

    def test_each_difference_is_one(self):
        headings = set(re.findall(r"^\.TP\n(.*)$", section("DIFFERENCES"), re.M))
        equal(headings, set(DIFFERENT) | UNTOLD)
        for heading, conversation in DIFFERENT.items():
            with Sessiond() as server, server.client() as a, \
                 RedisServer("--enable-debug-command", "yes") as redis, redis.client() as b:
                # Else it might find between two commands what is over: it looks some times a second.
                equal(b.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0"), b"+OK\r\n")
                for command in conversation[:-1]:
                    equal((heading, a.ask(*command)), (heading, b.ask(*command)))
                check(a.ask(*conversation[-1]) != b.ask(*conversation[-1]), heading)

    def test_what_config_knows_is_named(self):
        with Sessiond() as server, server.client() as a:
            told = re.search(r"GET knows (.*?)\. ", section("DIFFERENCES").replace("\n", " "))[1]
            equal(set(re.findall(r"[a-z]+(?:-[a-z]+)*", told)) - {"and"}, set(words(a.ask("CONFIG", "GET", "*")))
                  - {"no", "noeviction"})


if __name__ == "__main__":
    main()
