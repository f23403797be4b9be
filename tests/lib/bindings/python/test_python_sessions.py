#!/usr/bin/env python3
"""The sessions of the Python package: what expires and when, limits, versions, loaders, files, and many threads."""
# tier: check
import gc
import os
import random
import signal
import threading
import weakref

import binding
from harness import PATIENCE, Case, check, equal, main, seed, until

import weekwheel
from weekwheel import ABSENT, Gone


class Sessions(Case):
    def setUp(self):
        super().setUp()
        self.clock = weekwheel.VirtualClock(1)
        self.driver = weekwheel.Driver(clock=self.clock)
        self.gone = []
        self.addCleanup(self.clock.close)
        self.addCleanup(self.driver.close)

    def map(self, **options):
        return weekwheel.Sessions(self.driver, on_gone=lambda *what: self.gone.append(what), **options)

    def move(self, by):
        self.clock.advance(by)
        self.driver.settle()

    def test_what_is_not_used_expires(self):
        map = self.map(ttl=30)
        map["ada"] = {"cart": 1}
        map.set("bob", 2, ttl=10)
        self.move(9.999)
        equal(map.get("bob"), 2)
        check(map.refresh("ada"), "she is there")
        self.move(0.001)
        equal((map.get("bob"), map.get("bob", "none")), (None, "none"))
        equal(self.gone, [("bob", 2, Gone.EXPIRED)])
        self.move(29)
        equal(map["ada"], {"cart": 1})
        self.move(1)
        equal(self.gone[1:], [("ada", {"cart": 1}, Gone.EXPIRED)])
        check(not map.refresh("ada"), "she is gone")
        equal((len(map), map._values), (0, {}))

    def test_a_lifetime_is_not_prolonged(self):
        map = self.map(ttl=1800, lifetime=43200)
        map["ada"] = 1
        for _ in range(47):
            self.move(900)
            check(map.refresh("ada"), "within 12 hours")
        equal(map.entry("ada").end_left, 900.0)
        map.put("ada", 2, keep_end=True)
        self.move(899)
        equal(map["ada"], 2)
        self.move(1)
        equal(self.gone, [("ada", 1, Gone.REPLACED), ("ada", 2, Gone.EXPIRED)])

    def test_entries_may_have_lifetimes_of_their_own(self):
        map = self.map(lifetimes=True)
        map.put("a", 1, lifetime=5)
        map.put("b", 2)
        equal((map.entry("a").left, map.entry("b").end_left), (5.0, None))

    def test_it_is_a_map(self):
        map = self.map()
        with self.assertRaises(KeyError):
            map["a"]
        with self.assertRaises(KeyError):
            del map["a"]
        map["a"], map["ä\0"], map[""] = 1, None, 3
        equal((map["ä\0"], "ä\0" in map, "x" in map, 7 in map, len(map)), (None, True, False, False, 3))
        equal(sorted(map), ["", "a", "ä\0"])
        equal(sorted((key, entry.value) for key, entry in map.items()), [("", 3), ("a", 1), ("ä\0", None)])
        del map["a"]
        equal((map.pop(""), map.pop("", "none")), (3, "none"))
        equal(self.gone, [("a", 1, Gone.DELETED)])
        equal(map.clear(), 1)
        equal(self.gone[1:], [("ä\0", None, Gone.CLEARED)])
        equal(map._values, {})
        with self.assertRaises(weekwheel.WheelError):
            map["x" * 65536] = 1
        equal(map._values, {}, "a refused value is not kept")

    def test_versions(self):
        map = self.map()
        first = map.put("a", 1, version=ABSENT)
        with self.assertRaises(weekwheel.Stale):
            map.put("a", 2, version=ABSENT)
        second = map.put("a", 2, version=first)
        with self.assertRaises(weekwheel.Stale):
            map.put("a", 3, version=first)
        equal((map.entry("a").value, map.entry("a").version, len(map._values)), (2, second, 1))
        with self.assertRaises(weekwheel.Stale):
            map.delete("a", version=first)
        check(map.delete("a", version=second), "it is there")
        check(not map.delete("a"), "and now is not")

    def test_a_session_gets_another_key(self):
        map = self.map(ttl=100)
        map["old"], map["other"] = 1, 2
        self.move(40)
        map.rename("old", "new")
        equal((map.get("old"), map["new"], map.entry("new").left), (None, 1, 60.0))
        with self.assertRaises(weekwheel.InUse):
            map.rename("new", "other")
        map.rename("new", "other", replace=True, ttl=5)
        equal((map["other"], map.entry("other").left, self.gone), (1, 5.0, [("other", 2, Gone.REPLACED)]))
        with self.assertRaises(weekwheel.Stale):
            map.rename("nobody", "x")

    def test_what_c_would_take_for_something_else_is_refused(self):
        map = self.map(weight_limit=100)
        map["a"] = 1
        for options in ({"version": 2**64}, {"version": -1}, {"weight": -1}, {"weight": 2**64}):
            with self.assertRaises(ValueError):
                map.put("a", 2, **options)
        for call in (lambda: map.delete("a", version=2**64), lambda: map.rename("a", "b", version=2**64)):
            with self.assertRaises(ValueError):
                call()
        for options in ({"limit": -1}, {"limit": 2**64}, {"shards": 2**32 + 1}, {"weight_limit": -1},
                        {"jitter": 2**32 / 1000}, {"jitter": -0.1}, {"jitter": 1.001}, {"jitter": float("nan")}):
            with self.assertRaises(ValueError):
                self.map(**options)
        for options in ({"workers": 2**32 + 1}, {"queue": -1}, {"shards": -1}):
            with self.assertRaises(ValueError):
                weekwheel.Driver(**options)
        for key in (b"a", None, 7):
            with self.assertRaises(TypeError):
                map.set(key, 1)
        equal((map["a"], len(map._values)), (1, 1))

    def test_limits_pins_and_weights(self):
        map = self.map(limit=2, shards=1)
        map["a"], map["b"] = 1, 2
        map.get("a")
        map["c"] = 3
        equal(self.gone, [("b", 2, Gone.EVICTED)])
        map.put("a", 1, pinned=True)
        map.put("c", 3, pinned=True)
        check(map.entry("a").pinned, "pinned")
        with self.assertRaises(weekwheel.WheelError) as raised:
            map["d"] = 4
        equal(raised.exception.number, -2)
        heavy = self.map(weight_limit=100, shards=1)
        heavy.put("a", 1, weight=60)
        equal(heavy.entry("a").weight, 60)
        with self.assertRaises(weekwheel.TooBig):
            heavy.put("b", 1, weight=101)
        heavy.put("b", 1, weight=60)
        equal(self.gone[-1], ("a", 1, Gone.EVICTED))

    def test_lookups_may_renew(self):
        map = self.map(ttl=10, renew=True)
        map["a"] = 1
        for _ in range(5):
            self.move(9)
            equal(map["a"], 1)

    def test_one_of_many_threads_loads(self):
        map, loads, go = self.map(), [], threading.Event()
        results = []

        def load(key):
            loads.append(key)
            go.wait(PATIENCE)
            return [key]

        threads = [threading.Thread(target=lambda: results.append(map.take("k", load, ttl=7))) for _ in range(8)]
        for thread in threads:
            thread.start()
        until(lambda: map.stats()["loads_shared"] == 7, "the others wait")
        go.set()
        for thread in threads:
            thread.join()
        equal((loads, len(results)), (["k"], 8))
        check(all(result is results[0] for result in results), "all have the same")
        equal(map.entry("k").ttl, 7.0)

    def test_a_loader_that_fails(self):
        map, go, failed = self.map(), threading.Event(), []

        def load(_key):
            go.wait(PATIENCE)
            raise ValueError("no database")

        def take():
            try:
                map.take("k", load)
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        until(lambda: map.stats()["loads_shared"] == 2, "the others wait")
        go.set()
        for thread in threads:
            thread.join()
        equal(sorted(type(error).__name__ for error in failed), ["LoadFailed", "LoadFailed", "ValueError"])
        check(all(isinstance(error.__cause__ or error, ValueError) for error in failed), failed)
        equal((map.take("k", str.upper), map._values and len(map._values)), ("K", 1))

    def test_a_loader_uses_the_map_and_may_not_take_its_own_key(self):
        map = self.map()

        def load(key):
            map["other"] = 1
            with self.assertRaises(weekwheel.Busy):
                map.take(key, str.upper)
            return map["other"]

        equal(map.take("k", load), 1)

    def test_an_outdated_load_is_returned_and_not_kept(self):
        map = self.map()

        def load(key):
            map.delete(key)
            return "outdated"

        equal((map.take("k", load), map.get("k"), map._values), ("outdated", None, {}))

    def test_a_load_is_outdated_by_each_way_out(self):
        map = self.map()
        for change, why in ((lambda key: map.pop(key), Gone.DELETED), (lambda key: map.clear(), Gone.CLEARED),
                            (lambda key: (map.set(key, 1), map.rename(key, key + "2"), map.delete(key + "2")), Gone.DELETED)):
            self.gone.clear()
            equal(map.take("k", lambda key: (change(key), "late")[1]), "late")
            equal((self.gone[-1], map.get("k"), map._values), (("k", "late", why), None, {}))
        equal((map.stats()["loads"], map.stats()["loads_outdated"]), (3, 3))

    def test_what_is_set_during_a_load_stays(self):
        map = self.map()
        equal(map.take("k", lambda key: (map.set(key, "set"), "late")[1]), "set")
        equal((map["k"], self.gone), ("set", [("k", "late", Gone.REPLACED)]))

    def test_a_wait_for_a_loader_ends_by_the_clock(self):
        map, begun, go, found = self.map(), threading.Event(), threading.Event(), []
        loading = threading.Thread(target=lambda: map.take("k", lambda key: (begun.set(), go.wait(PATIENCE), 1)[2]))
        loading.start()
        begun.wait(PATIENCE)

        def wait():
            try:
                map.take("k", str, wait=5)
            except weekwheel.WheelError as error:
                found.append(error.number)

        waiting = threading.Thread(target=wait)
        waiting.start()
        until(lambda: self.driver.stats()["pending"] == 1, "it waits")
        self.move(4.999)
        equal(found, [])
        self.move(0.001)
        waiting.join(PATIENCE)
        equal((found, map.stats()["loads_late"]), ([-19], 1))
        go.set()
        loading.join(PATIENCE)
        equal(map["k"], 1)

    def test_a_wait_for_a_loader_ends_though_all_workers_are_busy(self):
        begun, go, found = threading.Event(), threading.Event(), []
        with weekwheel.Driver(workers=1) as driver:
            map = weekwheel.Sessions(driver)
            loading = threading.Thread(target=lambda: map.take("k", lambda key: (begun.set(), go.wait(PATIENCE), 1)[2]))
            loading.start()
            begun.wait(PATIENCE)

            def wait():
                try:
                    found.append(map.take("k", str, wait=0.01))
                except weekwheel.WheelError as error:
                    found.append(error.number)

            driver.schedule(0, wait)
            until(lambda: found, "the wait has ended")
            go.set()
            loading.join(PATIENCE)
        equal(found, [-19])

    def test_what_interrupts_a_loader_or_on_gone_leaves_the_call(self):
        def interrupt(*_):
            raise KeyboardInterrupt

        map = self.map()
        with self.assertRaises(KeyboardInterrupt):
            map.take("k", interrupt)
        equal((map.take("k", str.upper), map.stats()["loads_failed"]), ("K", 1))
        map["b"] = 2
        told, map.on_gone = [], lambda key, *_: (told.append(key), interrupt())
        with self.assertRaises(KeyboardInterrupt):
            map.clear()
        equal((sorted(told), len(map), map._values), (["b", "k"], 0, {}))

    def test_on_gone_of_a_clear_gets_signals(self):
        def interrupt(*_):
            signal.raise_signal(signal.SIGINT)
            told.append("not interrupted")

        told, map = [], self.map()
        map["a"] = map["b"] = 1
        map.on_gone = interrupt
        with self.assertRaises(KeyboardInterrupt):
            map.clear()
        equal(told, [])

    def test_on_gone_may_use_the_map_and_what_it_raises_is_logged(self):
        def again(key, value, why):
            map.set(key, value + 1, ttl=1)
            raise ValueError(why)

        map = weekwheel.Sessions(self.driver, ttl=1, on_gone=again)
        map["a"] = 0
        with self.assertLogs("weekwheel", "ERROR") as log:
            self.move(1)
            self.move(1)
        equal((map["a"], len(log.output)), (2, 2))
        map.on_gone = None

    def test_over_a_restart(self):
        map = self.map(ttl=100, lifetimes=True, limit=1000)
        for i in range(200):
            map.put("key%d" % i, {"number": i, "text": "x" * i * 100}, ttl=100 + i, lifetime=1000)
        map.put("pinned", None, pinned=True)
        self.move(50)
        equal(map.save("file"), 201)
        equal(os.listdir("."), ["file"])
        other = self.map(ttl=100, lifetimes=True, limit=1000)
        other["key0"] = "newer"
        loaded = other.load("file")
        equal((loaded.entries, loaded.present, loaded.expired, loaded.left_out), (200, 1, 0, 0))
        check(0 <= loaded.downtime < PATIENCE, loaded)
        equal((other["key0"], other["key150"]["number"], len(other["key199"]["text"])), ("newer", 150, 19900))
        check(150 < other.entry("key100").left + loaded.downtime + 0.01 and other.entry("key100").left <= 150, other.entry("key100"))
        check(other.entry("pinned").pinned, "a pin is kept")
        equal(len(other._values), 201)

    def test_values_of_any_kind_and_encoders_that_fail(self):
        map = self.map()
        map["a"] = b"\0\xff" * 70000
        map["b"] = b""
        map.save("file", encode=bytes)
        other = self.map()
        other.load("file", decode=bytes)
        equal((other["a"], other["b"]), (map["a"], b""))
        before = open("file", "rb").read()
        with self.assertRaises(TypeError):
            map.save("file")  # bytes are no JSON
        equal((open("file", "rb").read(), os.listdir(".")), (before, ["file"]))
        third = self.map()
        with self.assertRaises(ZeroDivisionError):
            third.load("file", decode=lambda text: 1 // 0)
        with self.assertRaises(weekwheel.Damaged) as raised:
            with open("file", "r+b") as file:
                file.truncate(1000)
            third.load("file", decode=bytes)
        check("file is damaged behind its byte" in str(raised.exception), raised.exception)
        with self.assertRaises(FileNotFoundError):
            third.load("nowhere")
        equal(len(third._values), len(third), "what stood before the damage stays, and nothing else is kept")

    def test_the_end_hands_all_values_over(self):
        map = self.map()
        map["a"] = 1
        map.close()
        map.close()
        equal((self.gone, self.driver._users), ([("a", 1, Gone.CLEARED)], set()))
        with self.assertRaises(weekwheel.Closed):
            map["a"] = 2
        with self.map() as second:
            second["b"] = 2
        third = self.map()
        third["c"] = 3
        self.driver.close()
        equal(self.gone[1:], [("b", 2, Gone.CLEARED), ("c", 3, Gone.CLEARED)])

    def test_a_map_that_nobody_holds_goes_on_until_its_driver_is_closed(self):
        self.map(ttl=1)["a"] = 1
        gc.collect()
        self.move(1)
        equal(self.gone, [("a", 1, Gone.EXPIRED)])

    def test_values_are_let_go(self):
        class Value:
            pass

        map, value = self.map(ttl=1), Value()
        seen = weakref.ref(value)
        map["a"] = value
        del value
        check(seen() is not None, "the map holds it")
        map.on_gone = None
        self.move(1)
        gc.collect()
        check(seen() is None, "and lets it go")

    def test_random_calls_of_many_threads(self):
        start = seed()
        with weekwheel.Driver() as driver:
            lock, left = threading.Lock(), []

            def gone(*what):
                with lock:
                    left.append(what)

            map = weekwheel.Sessions(driver, ttl=0.003, limit=200, on_gone=gone)
            stored, popped, errors = [], [], []

            def work(number):
                try:
                    random_ = random.Random(start + number)
                    for i in range(1500):
                        key, what = str(random_.randrange(50)), random_.randrange(8)
                        if what < 3:
                            with lock:
                                stored.append((number, i))
                            map[key] = (number, i)
                        elif what < 5:
                            check(map.get(key) is None or len(map.get(key, (1, 2))) == 2, key)
                        elif what == 5 and (value := map.pop(key)) is not None:
                            with lock:
                                popped.append(value)
                        elif what == 6:
                            map.delete(key)
                        elif random_.randrange(50) == 0:
                            list(map.items())
                except Exception as error:
                    errors.append(error)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            map.close()
            equal(errors, [])
            equal(sorted([value for _, value, _ in left] + popped), sorted(stored), "each value leaves exactly once")


if __name__ == "__main__":
    main()
