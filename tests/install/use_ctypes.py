#!/usr/bin/env python3
"""What a Python program does with an installed weekwheel: use_ctypes.py LIBRARY ALLOCATOR. ALLOCATOR is what the library
must take its memory from."""
import ctypes
import sys
from ctypes import CFUNCTYPE, byref, c_char_p, c_size_t, c_uint64, c_void_p

path, allocator = sys.argv[1:]
library = ctypes.CDLL(path)
library.ww_allocator_name.restype = c_char_p
UNLIMITED = c_size_t(-1)
expired = []


@CFUNCTYPE(None, c_void_p, c_void_p, c_uint64)
def expire(_wheel, _timer, missed):
    expired.append(missed)


def call(name, *arguments):
    result = getattr(library, name)(*arguments)
    assert result == 0, f"{name} answers {result}"


assert library.ww_allocator_name().decode() == allocator, library.ww_allocator_name()
wheel = c_void_p()
timer = (c_uint64 * 16)()  # more than a struct ww_timer takes
call("ww_wheel_create", byref(wheel), None)
call("ww_timer_init", timer, expire)
call("ww_wheel_schedule", wheel, timer, c_uint64(1800))
call("ww_wheel_advance", wheel, c_uint64(1799), UNLIMITED, None)
assert expired == [], expired
call("ww_wheel_advance", wheel, c_uint64(1800), UNLIMITED, None)
assert expired == [0], expired
call("ww_wheel_destroy", wheel)
