#!/usr/bin/env python3
"""SET with IFEQ and IFNE, DELEX and DELIFEQ: random ones beside a table of what each key has."""
# tier: check
import random

from harness import Case, equal, main, seed
from sessiond import Sessiond

KEYS, VALUES = ["a", "b"], ["", "x", "xy", "x\0", "y" * 70000]
NULL = b"$-1\r\n"


def bulk(value):
    return NULL if value is None else b"$%d\r\n%s\r\n" % (len(value), value.encode())


class Compare(Case):
    def setUp(self):
        super().setUp()
        self.client = self.enterContext(self.enterContext(Sessiond()).client())

    def ask(self, *words):
        return self.client.ask(*words)

    def test_random_commands(self):
        rng, there = random.Random(seed()), {}
        for _ in range(3000):
            key, value, other = rng.choice(KEYS), rng.choice(VALUES), rng.choice(VALUES)
            word = rng.choice(["IFEQ", "IFNE", "ifeq", "IfNe"])
            former = there.get(key)
            is_met = (former == other) == (word.upper() == "IFEQ")
            what = rng.choice(["set", "set", "get", "delex", "delifeq", "plain", "del"])
            if what in ("set", "get"):
                options = [[word, other], ["EX", "100"], ["GET"] if what == "get" else []]
                rng.shuffle(options)
                answer = self.ask("SET", key, value, *sum(options, []))
                equal(answer, bulk(former) if what == "get" else b"+OK\r\n" if is_met else NULL)
                if is_met:
                    there[key] = value
            elif what == "plain":
                self.ask("SET", key, value)
                there[key] = value
            else:
                words = {"delex": ["DELEX", key, word, other], "delifeq": ["DELIFEQ", key, other], "del": ["DELEX", key]}[what]
                goes = former is not None and {"delex": is_met, "delifeq": former == other, "del": True}[what]
                equal(self.ask(*words), b":%d\r\n" % goes)
                if goes:
                    del there[key]
            equal(self.ask("GET", key), bulk(there.get(key)))

    def test_only_one_condition(self):
        self.ask("SET", "a", "x")
        for words in (["IFEQ"], ["IFEQ", "x", "NX"], ["NX", "IFEQ", "x"], ["IFEQ", "x", "XX"], ["XX", "IFNE", "x"],
                      ["IFEQ", "x", "IFNE", "y"], ["IFEQ", "x", "IFEQ", "x"], ["IFDEQ", "x"]):
            equal((words, self.ask("SET", "a", "y", *words)), (words, b"-ERR syntax error\r\n"))
        for words in (["x"], ["IFEQ"], ["x", "x"], ["IFEQ", "x", "x"]):
            equal((words, self.ask("DELEX", "a", *words)), (words, b"-ERR syntax error\r\n"))
        equal(self.ask("GET", "a"), bulk("x"))

    def test_times(self):
        """KEEPTTL keeps the deadline, and a refused SET changes none."""
        self.ask("SET", "a", "x", "EXAT", "4000000000")
        equal(self.ask("SET", "a", "z", "IFEQ", "y", "EX", "10"), NULL)
        equal(self.ask("SET", "a", "y", "IFEQ", "x", "KEEPTTL"), b"+OK\r\n")
        equal(self.ask("EXPIRETIME", "a"), b":4000000000\r\n")
        equal(self.ask("SET", "a", "z", "IFEQ", "y"), b"+OK\r\n")
        equal(self.ask("TTL", "a"), b":-1\r\n")


if __name__ == "__main__":
    main()
