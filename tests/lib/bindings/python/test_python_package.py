#!/usr/bin/env python3
"""The Python package as a whole: its types, its structures beside those of C, its README, and its installation."""
# tier: long
import ctypes
import os
import re
import shutil
import subprocess
import sys
import unittest

import binding
from harness import PATIENCE, ROOT, BUILD, Case, Server, check, equal, free_port, lack, main, run, until

import weekwheel
from weekwheel import _library

STRUCTS = {"Firing": "firing", "DriverConfig": "driver_config", "DriverStats": "driver_stats",
           "SessionConfig": "session_config", "SessionOrder": "session_order", "SessionFound": "session_found",
           "SessionStats": "session_stats", "SessionWriter": "session_writer",
           "SessionReader": "session_reader", "SessionLoaded": "session_loaded"}
# What a user writes. A comment that ignores an error which is not there is an error, too.
USE = """
import weekwheel
from weekwheel import jobs

map: weekwheel.Sessions[int] = weekwheel.Sessions(weekwheel.Driver(), ttl=5)
map["a"] = "b"  # type: ignore[assignment]
found: int | None = map.get("a")
put: jobs.Put = jobs.Client().put("x", delay=5, mode="if-absent")
jobs.Client().put(5)  # type: ignore[arg-type]
jobs.Client().put("x", mode="other")  # type: ignore[arg-type]
jobs.Client().no_verb()  # type: ignore[attr-defined]

async def use() -> int:
    job = await jobs.AsyncClient().reserve(5)
    job.delete()  # type: ignore[union-attr]
    return (await jobs.AsyncClient().put("x")).id
"""
BLOCK = re.compile(r"(?:^<!-- test: (?P<needs>\w+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


def blocks():
    """The examples of the README, and what they print."""
    with open(os.path.join(binding.FOLDER, "README.md"), encoding="utf-8") as file:
        return list(BLOCK.finditer(file.read()))


class Package(Case):
    def test_its_version_is_that_of_the_library(self):
        equal(weekwheel.__version__, _library.library.ww_version().decode())

    @unittest.skipIf(os.environ.get("SANITIZE"), "the types are the same in every build")
    def test_its_types_are_complete(self):
        with open("use.py", "w", encoding="utf-8") as file:
            file.write(USE)
        self.is_typed("use.py")

    @unittest.skipIf(os.environ.get("SANITIZE"), "the types are the same in every build")
    def test_the_examples_of_its_readme_have_right_types(self):
        names = []
        for number, block in enumerate(blocks()):
            if block["language"] == "python" and block["needs"] != "sessiond":  # redis-py has no types
                names.append(f"example{number}.py")
                with open(names[-1], "w", encoding="utf-8") as file:
                    file.write(block["text"])
        check(len(names) >= 7, names)
        self.is_typed(*names)

    def is_typed(self, *names):
        if not shutil.which("mypy"):
            raise unittest.SkipTest(lack("mypy"))
        run(0, "mypy", "--strict", "--cache-dir", os.path.join(BUILD, "mypy"), os.path.join(binding.FOLDER, "weekwheel"), *names)

    def test_its_structures_are_those_of_c(self):
        lines, expected = [], []
        for python, c in STRUCTS.items():
            struct = getattr(_library, python)
            for name, _ in struct._fields_:
                if name != "spare":
                    lines.append(f'printf("{c}.{name} %zu %zu\\n", offsetof(struct ww_{c}, {name}), '
                                 f'sizeof(((struct ww_{c} *)0)->{name}));')
                    member = getattr(struct, name)
                    expected.append(f"{c}.{name} {member.offset} {member.size}")
            lines.append(f'printf("{c} %d\\n", sizeof(struct ww_{c}) <= {ctypes.sizeof(struct)});')
            expected.append(f"{c} 1")
        with open("structs.c", "w", encoding="utf-8") as file:
            file.write("#include <stddef.h>\n#include <stdio.h>\n#include <weekwheel/weekwheel.h>\n"
                       "int main(void)\n{\n" + "\n".join(lines) + "\n}\n")
        run(0, *(os.environ.get("CC") or "cc").split(), "-I", os.path.join(ROOT, "include"), "structs.c", "-o", "structs")
        equal(run(0, "./structs").out.splitlines(), expected)

    @binding.need_plain
    def test_the_examples_of_its_readme(self):
        found, count = blocks(), 0
        # One for all of them, as a reader has it.
        self.server = self.enterContext(Server())
        for block, after in zip(found, [*found[1:], None]):
            if block["language"] != "python":
                continue
            shown = after["text"] if after and not after["language"] else ""
            with self.subTest(block["text"].splitlines()[-1]):
                equal(getattr(self, "run_" + (block["needs"] or "alone"))(block["text"]), shown)
            count += 1
        check(count >= 7, count)

    def run_alone(self, text, python=sys.executable):
        done = subprocess.run([python, "-W", "error", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=PATIENCE, check=False)
        equal(done.returncode, 0, done.stdout)
        return done.stdout

    def run_weekwheeld(self, text):
        return self.run_alone(text.replace("127.0.0.1:11300", self.server.address))

    def run_sessiond(self, text):
        program = os.path.join(BUILD, "bin", "weekwheel-sessiond")
        if not os.path.exists(program):
            self.skipTest("this build has no weekwheel-sessiond")
        port = free_port()
        with open("log", "wb") as log, subprocess.Popen([program, "--listen", f"127.0.0.1:{port}"], stderr=log) as server:
            try:
                until(lambda: b"listening" in open("log", "rb").read(), "it listens")
                return self.run_alone(text.replace("6380", str(port)), binding.interpreter("redis", "python3-redis"))
            finally:
                server.terminate()

    @binding.need_plain
    def test_it_installs_without_a_network_and_runs_from_there(self):
        python = binding.interpreter("setuptools, pip, wheel", "python3-setuptools, python3-pip and python3-wheel")
        before = sorted(os.walk(binding.FOLDER))
        env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        env.update(PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull)
        done = subprocess.run(["make", "--no-print-directory", "-C", ROOT, "B=" + BUILD, "PYTHON=" + python,
                               "DESTDIR=" + self.folder + "/root", "pythondir=/py", "install-python"], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
        equal(done.returncode, 0, done.stdout)
        place = self.folder + "/root/py"
        check(os.path.exists(place + "/weekwheel/py.typed"), os.listdir(place))
        equal(run(0, python, "-c", "import weekwheel\nwith weekwheel.Driver(clock=weekwheel.VirtualClock()) as driver:\n"
                  "    driver.schedule(9, print, weekwheel.__file__)\n    driver.step()", PYTHONPATH=place).out,
              place + "/weekwheel/__init__.py\n")
        equal(sorted(os.walk(binding.FOLDER)), before, "nothing is left beside the sources")


if __name__ == "__main__":
    main()
