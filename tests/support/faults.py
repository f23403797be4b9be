"""Calls of a server that fail by plan. tests/support/system/fail.c, which is loaded before the server, carries it out."""
import errno
import mmap
import os
import struct

from harness import numbers_of, system_with

CALLS = numbers_of("support/system/system.h", "CALL_")
WRITE, SYNC, SIZE, MEMORY = (CALLS[name] for name in ("WRITE", "SYNC", "SIZE", "MEMORY"))
FOREVER = 1 << 31
HALF = numbers_of("support/system/fail.h", "FAULT_")["HALF"]
# struct fault_plan of fail.h: which, first, times, error, done, quick, split, at, calls, failed, file.
PLAN = struct.Struct("=11I64s")


class Plan:
    def __init__(self):
        path = os.path.abspath("plan")
        with open(path, "w+b") as file:
            file.write(bytes(PLAN.size))
            file.flush()
            self.page = mmap.mmap(file.fileno(), PLAN.size)
        self.environment = {"LD_PRELOAD": system_with("fail.c", "memory.c"), "FAULTS": path}

    def set(self, first, times=1, error=errno.ENOMEM, what=MEMORY, done=0, file=""):
        """The calls of the kinds in what fail from the first one on, so many times; first 0: none. error 0: half of
        all parts is written. The first writes that are done do their work all the same. Only calls on files whose path has file
        count."""
        # The kinds of calls arm the plan.
        self.page[0:4] = bytes(4)
        self.page[4:] = PLAN.pack(0, first, times, error, done, 0, HALF, 0, 0, 0, 0, file.encode())[4:]
        self.page[0:4] = struct.pack("=I", what if first else 0)

    def failed(self):
        return PLAN.unpack(self.page[:])[10]
