"""Calls of a server that fail by plan. tests/support/crash/faults.c, which is loaded before the server, carries it out."""
import errno
import mmap
import os
import struct
import unittest

from weekwheel import compiled

WRITE, SYNC, TRUNCATE, MEMORY = 1, 2, 4, 8
FOREVER = 1 << 31


class Plan:
    def __init__(self):
        if os.environ.get("SANITIZE"):
            raise unittest.SkipTest("a sanitizer has to be the first that is loaded, and has its own allocator")
        path = os.path.abspath("plan")
        with open(path, "w+b") as file:
            file.write(bytes(28))
            file.flush()
            self.page = mmap.mmap(file.fileno(), 28)
        library = compiled("support/crash/faults.c", "-shared", "-fPIC", "-ldl")
        self.environment = {"LD_PRELOAD": library, "FAULTS": path}

    def set(self, first, times=1, error=errno.ENOMEM, what=MEMORY, done=0):
        """The calls of the kinds in what fail from the first one on, so many times; first 0: none. error 0: half is
        written. The first calls that are done do their work all the same."""
        # The number of the first call arms the plan.
        self.page[4:8] = bytes(4)
        self.page[8:28] = struct.pack("=5I", times, error, what, 0, done)
        self.page[0:8] = struct.pack("=2I", 0, first)

    def failed(self):
        return struct.unpack("=7I", self.page[:])[5]
