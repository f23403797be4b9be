"""Makes the Python package of lib/bindings/python and the library of this build known to a test: import it first.

An instrumented library needs its sanitizer's runtime in the process before anything else: the test then starts itself
again with it. Programs that the test starts do not get it.
"""
import functools
import os
import shlex
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "lib", "bindings", "python")
LIBRARY = os.path.join(ROOT, os.environ.get("B") or "build", "lib", "libweekwheel.so.1")


def runtime():
    """Where the runtime of the address sanitizer is, or None."""
    compiler = shlex.split(os.environ.get("CC") or "cc")
    for name in ("libclang_rt.asan-x86_64.so", "libasan.so"):
        found = subprocess.run([*compiler, "-print-file-name=" + name], capture_output=True, text=True,
                               check=False).stdout.strip()
        if os.path.isabs(found) and os.path.exists(found):
            return found
    return None


def begin():
    if not os.path.exists(LIBRARY):
        print("skipped: this build has no libweekwheel.so\n0 passed, 0 failed, 1 skipped")
        sys.exit(77)
    if os.environ.pop("WW_PRELOADED", None):
        del os.environ["LD_PRELOAD"]
        # The interpreter itself keeps memory until its end. The tests of the C library look for leaks.
        os.environ["ASAN_OPTIONS"] = os.environ.pop("WW_ASAN_OPTIONS")
    elif os.environ.get("SANITIZE"):
        path = "address" in os.environ["SANITIZE"] and runtime()
        if not path:
            print("skipped: there is no runtime of this sanitizer that an interpreter can load\n"
                  "0 passed, 0 failed, 1 skipped")
            sys.exit(77)
        options = os.environ.get("ASAN_OPTIONS", "")
        os.execve(sys.executable, [sys.executable, *sys.argv],
                  {**os.environ, "WW_PRELOADED": "1", "LD_PRELOAD": path, "WW_ASAN_OPTIONS": options,
                   "ASAN_OPTIONS": options + ":detect_leaks=0"})
    os.environ["WEEKWHEEL_LIBRARY"] = LIBRARY
    os.environ["PYTHONPATH"] = FOLDER
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.path.insert(0, FOLDER)


@functools.cache
def interpreter(modules, packages):
    """An interpreter that has the modules: Debian's, where another is in front of it."""
    for path in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(path) and subprocess.run([path, "-c", "import " + modules], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return path
    raise unittest.SkipTest(f"no Python has {modules}: Debian has them in {packages}")


def need_plain(test):
    """A test that starts an interpreter by itself, which would lack the runtime."""
    return unittest.skipIf(os.environ.get("SANITIZE"), "another interpreter has no runtime of the sanitizer")(test)


begin()
