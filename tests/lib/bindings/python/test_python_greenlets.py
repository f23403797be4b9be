#!/usr/bin/env python3
"""The Python package under gevent, whose greenlets swap parts of the C stack: loaders, on_gone, encoders and timers that
yield."""
# tier: check
import subprocess

import binding
from harness import PATIENCE, Case, equal, main

BEGIN = """
from gevent import monkey
monkey.patch_all()
import gevent, threading, weekwheel
def all_of(*functions):
    tasks = [gevent.spawn(function) for function in functions]
    gevent.joinall(tasks, timeout=%d, raise_error=True)
    assert all(task.ready() for task in tasks), tasks
    return [task.value for task in tasks]
""" % PATIENCE


@binding.need_plain
class Greenlets(Case):
    def says(self, expected, text, begin=BEGIN):
        python = binding.interpreter("gevent", "python3-gevent")
        done = subprocess.run([python, "-X", "faulthandler", "-c", begin + text], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        equal((done.returncode, done.stdout, done.stderr), (0, expected, ""))

    def test_one_of_many_greenlets_loads(self):
        self.says("[5, 5, 5, 5, 5] 1 4\n", """
def slow(key):
    gevent.sleep(0.02)
    return 5
with weekwheel.Driver() as driver, weekwheel.Sessions(driver) as map:
    found = all_of(*[lambda: map.take("k", slow)] * 5)
    print(found, map.stats()["loads"], map.stats()["loads_shared"])
""")

    def test_loads_of_many_keys_fail_wait_and_are_outdated(self):
        self.says("ok\n", """
def load(key):
    gevent.sleep(0.001 * (int(key) % 5))
    if int(key) % 7 == 0:
        raise ValueError(key)
    return key
with weekwheel.Driver() as driver, weekwheel.Sessions(driver, ttl=0.01, limit=50, on_gone=lambda *a: gevent.sleep(0)) as map:
    def work(number):
        for i in range(100):
            key = str((number * 31 + i) % 20)
            try:
                assert map.take(key, load, wait=0.002 if i % 3 == 0 else None) == key
            except (ValueError, weekwheel.LoadFailed):
                assert int(key) % 7 == 0
            except weekwheel.WheelError as error:
                assert error.number == -19, error
            if i % 5 == 0:
                map.delete(key)
            if i % 50 == 0:
                map.clear()
    all_of(*[lambda number=number: work(number) for number in range(20)])
    print("ok")
""")

    def test_a_loader_may_not_wait_for_itself(self):
        self.says("Busy\n", """
with weekwheel.Driver() as driver, weekwheel.Sessions(driver) as map:
    def load(key):
        try:
            map.take(key, str)
        except weekwheel.Busy:
            print("Busy")
    all_of(lambda: map.take("k", load))
""")

    def test_without_gevents_threads_a_second_greenlet_is_refused(self):
        # Nothing tells the two apart, and to wait would stop the thread of both.
        self.says("['Busy', 5]\n", """
import gevent, weekwheel
with weekwheel.Driver() as driver, weekwheel.Sessions(driver) as map:
    def first():
        return map.take("k", lambda key: gevent.sleep(0.02) or 5)
    def second():
        gevent.sleep(0.001)
        try:
            map.take("k", str)
        except weekwheel.Busy as error:
            return type(error).__name__
    tasks = [gevent.spawn(second), gevent.spawn(first)]
    gevent.joinall(tasks)
    print([task.value for task in tasks])
""", begin="")

    def test_on_gone_of_a_call_may_yield(self):
        self.says("320\n", """
gone = []
def on_gone(key, value, why):
    gevent.sleep(0.001 * (value % 3))
    gone.append(value)
with weekwheel.Driver() as driver:
    with weekwheel.Sessions(driver, on_gone=on_gone, limit=5, shards=1) as map:
        def work(number):
            for i in range(40):
                map.set("k%d" % ((number + i) % 7), number * 100 + i)
                if i % 2:
                    map.delete("k%d" % (i % 7))
        all_of(*[lambda number=number: work(number) for number in range(8)])
    assert len(set(gone)) == len(gone)
    print(len(gone))
""")

    def test_callbacks_in_threads_of_the_driver_may_yield(self):
        self.says("ok\n", """
done = []
def timer(number):
    gevent.sleep(0.0001 * (number & 1))
    map["t" + str(number)] = number
    gevent.sleep(0)
    done.append(number)
def on_gone(key, value, why):
    gevent.sleep(0.0001 * (value & 3))
    done.append(value)
driver = weekwheel.Driver(workers=4)
map = weekwheel.Sessions(driver, ttl=0.002, on_gone=on_gone)
for number in range(300):
    driver.schedule(0.001 * (number & 15), timer, number)
with gevent.Timeout(%d):
    while len(done) < 600:
        gevent.sleep(0.001)
driver.close()
print("ok")
""" % PATIENCE)

    def test_encoders_and_decoders_are_refused_to_yield(self):
        self.says("Busy Busy 1 1\n", """
import os, tempfile
os.chdir(tempfile.mkdtemp())
def yields(value):
    gevent.sleep(0.001)
    return b"0"
def refused(function, *arguments):
    try:
        function(*arguments)
    except weekwheel.Busy as error:
        assert "greenlets" in str(error), error
        return "Busy"
with weekwheel.Driver() as driver, weekwheel.Sessions(driver) as map:
    map["a"] = 1
    first = all_of(lambda: refused(map.save, "file", yields))[0]
    saved = map.save("file")
    gevent.sleep(0.001)
    map.clear()
    print(first, refused(map.load, "file", yields), saved, map.load("file").entries)
""")

    def test_signals_wait_for_a_save_in_a_greenlet(self):
        self.says("[] ['came'] True\n", """
import os, signal, tempfile
os.chdir(tempfile.mkdtemp())
came, seen = [], []
def handler(*_):
    came.append("came")
signal.signal(signal.SIGUSR1, handler)
def encode(value):
    signal.raise_signal(signal.SIGUSR1)
    seen.extend(came)
    return b"0"
with weekwheel.Driver() as driver, weekwheel.Sessions(driver) as map:
    map["a"] = 1
    all_of(lambda: map.save("file", encode))
print(seen, came, signal.getsignal(signal.SIGUSR1) is handler)
""")

    def test_calls_that_overlap_give_the_handlers_of_signals_back(self):
        for patch in "monkey.patch_all()", "":
            self.says("['came', 'first', 'second'] True\n", """
import gevent.event, signal
said, begun, ended = [], gevent.event.Event(), gevent.event.Event()
def handler(*_):
    said.append("came")
signal.signal(signal.SIGUSR1, handler)
def on_first(*_):
    begun.wait()
    signal.raise_signal(signal.SIGUSR1)
def on_second(*_):
    begun.set()
    ended.wait()
def clear(map, name):
    map["a"] = 1
    map.clear()
    said.append(name)
    ended.set()
with weekwheel.Driver() as driver:
    maps = [weekwheel.Sessions(driver, on_gone=on_gone) for on_gone in (on_first, on_second)]
    all_of(lambda: clear(maps[0], "first"), lambda: clear(maps[1], "second"))
    print(said, signal.getsignal(signal.SIGUSR1) is handler)
""", begin=BEGIN.replace("monkey.patch_all()", patch))


if __name__ == "__main__":
    main()
