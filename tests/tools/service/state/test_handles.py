#!/usr/bin/env python3
"""A server that cannot start, wherever it gives up, says why, ends with its own status, and leaves neither a socket's file nor, as
the sanitizers see, memory."""
# tier: check
import os
import re
import socket
import sys

from expirer import EXPIRER
from sessiond import SESSIOND
from harness import WEEKWHEELD, Case, equal, main, matches, need_server, run

DOOR = ("--listen", "127.0.0.1:0")


class Starts(Case):
    def setUp(self):
        super().setUp()
        need_server()
        self.busy = self.enterContext(socket.socket()) if sys.version_info >= (3, 11) else socket.socket()
        self.busy.bind(("127.0.0.1", 0))
        self.busy.listen()
        self.port = f"127.0.0.1:{self.busy.getsockname()[1]}"
        with open("file", "wb"):
            pass

    def fails(self, status, why, program, *arguments):
        said = run(status, program, *arguments).err
        matches(why, said)
        equal(os.path.exists("socket"), False, said)

    def test_a_door_that_another_program_has(self):
        for program in (WEEKWHEELD, "--memory"), (SESSIOND,):
            self.fails(1, "in use", *program, *DOOR, "--unix", "socket", "--listen", self.port)
            self.fails(1, "in use", *program, *DOOR, "--unix", "socket", "--http", self.port)
            self.fails(1, "in use", *program, "--unix", "socket", "--http", "127.0.0.1:0", "--listen", self.port)
        self.fails(1, "in use", EXPIRER, "redis://127.0.0.1:1/", "--http", self.port)

    def test_files_that_are_missing(self):
        for program in (WEEKWHEELD, "--memory"), (SESSIOND,):
            self.fails(2, "none.pem", *program, *DOOR, "--unix", "socket", "--http", "tls:127.0.0.1:0", "--tls-cert", "/none.pem", "--tls-key", "/none.pem")
            self.fails(1, "none/socket", *program, *DOOR, "--unix", "none/socket")
        for program in (WEEKWHEELD,), (SESSIOND,):
            self.fails(1, re.escape("file"), *program, *DOOR, "--unix", "socket", "--data", "file/data")

    def test_a_store_that_cannot_be_opened(self):
        self.fails(2, "none.pem", WEEKWHEELD, *DOOR, "--unix", "socket", "--store", "rediss://127.0.0.1:1/?ca=/none.pem")
        self.fails(2, "none.pem", EXPIRER, "rediss://127.0.0.1:1/?ca=/none.pem", "--http", "127.0.0.1:0")


main()
