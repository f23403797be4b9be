#!/usr/bin/env python3
"""What the server tells systemd, its units, and how its binaries are hardened."""
# tier: check
import os
import re
import signal
import socket
import subprocess
import unittest

from sessiond import SESSIOND, Sessiond
from harness import BUILD, PATIENCE, ROOT, WEEKWHEELD, Case, Server, alone, equal, main, need_program, run

UNITS = os.path.join(ROOT, "tools", "weekwheeld")


class Notify(Case):
    def listens(self, name):
        end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(end.close)
        end.bind(name)
        end.settimeout(PATIENCE)
        return end

    def test_the_watchdog_is_fed_from_the_loop(self):
        end = self.listens("notify")
        with Server(NOTIFY_SOCKET=os.path.abspath("notify"), WATCHDOG_USEC="60000", WATCHDOG_PID=None) as server:
            equal(end.recv(100), b"READY=1\nSTATUS=\nWATCHDOG_USEC=60000")
            for _ in range(3):
                equal(end.recv(100), b"WATCHDOG=1")
            server.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, server.process.pid, os.WSTOPPED | os.WNOWAIT)
            end.setblocking(False)
            with self.assertRaises(BlockingIOError):
                while True:
                    equal(end.recv(100), b"WATCHDOG=1")
            end.settimeout(PATIENCE)
            server.process.send_signal(signal.SIGCONT)
            equal(end.recv(100), b"WATCHDOG=1")
            server.process.terminate()
            said = end.recv(100)
            while said == b"WATCHDOG=1":
                said = end.recv(100)
            equal(said, b"STOPPING=1")
            equal(server.process.wait(PATIENCE), 0)

    def test_another_process_is_watched(self):
        name = "\0weekwheel-test-%d" % os.getpid()
        end = self.listens(name)
        with Server(NOTIFY_SOCKET="@" + name[1:], WATCHDOG_USEC="1000", WATCHDOG_PID="1") as server:
            equal(end.recv(100), b"READY=1\nSTATUS=")
            with server.client() as a:
                for _ in range(100):
                    a.put()
            equal(server.stop(), 0)
        equal(end.recv(100), b"STOPPING=1")

    def test_without_systemd(self):
        for path in ("", "/nonexistent", 200 * "x"):
            with Server(NOTIFY_SOCKET=path) as server:
                equal(server.stop(), 0)


class Units(Case):
    def test_systemd_understands_them(self):
        need_program("systemd-analyze")
        paths = ("weekwheeld/weekwheeld.service", "weekwheeld/weekwheeld.socket", "weekwheel-sessiond/weekwheel-sessiond.service",
                 "weekwheel-sessiond/weekwheel-sessiond.socket",
                 "weekwheel-expirer/weekwheel-expirer.service", "weekwheel/jobs/weekwheel-work@.service")
        names = [os.path.basename(path) for path in paths]
        for path, name in zip(paths, names):
            with open(os.path.join(UNITS, "..", path), encoding="utf-8") as unit, open(name, "w", encoding="utf-8") as copy:
                copy.write(re.sub("(?m)^ExecStart=[^ ]*", "ExecStart=/bin/true", re.sub("(?m)^Documentation=.*\n", "", unit.read())))
        done = run(0, "systemd-analyze", "verify", *(os.path.abspath(name) for name in names))
        equal(done.out + done.err, "")


    def test_the_id_of_the_boot_can_be_read(self):
        """Without it, each start would believe the wall clock."""
        for name in ("weekwheeld", "weekwheel-sessiond"):
            with open(os.path.join(UNITS, "..", name, name + ".service"), encoding="utf-8") as unit:
                assert "ProcSubset" not in unit.read(), "it hides /proc/sys/kernel/random/boot_id"

    def test_what_their_heads_say_of_tls_and_tokens(self):
        """The lines behind "#   ", as systemd would see them, are options that the server takes."""
        self.examine("weekwheeld", "11300", Server)
        if os.access(SESSIOND, os.X_OK):
            self.examine("weekwheel-sessiond", "6380", Sessiond)

    def examine(self, name, port, server):
        with open(os.path.join(UNITS, "..", name, name + ".service"), encoding="utf-8") as unit:
            head = unit.read().split("[Unit]")[0]
        lines = "\n".join(re.findall(r"(?m)^#   (.*)$", head)).replace("\\\n", "")
        command = next(line for line in lines.splitlines() if line.startswith("ExecStart=" + name) and "tls:" in line)
        names = re.findall(r"LoadCredential=(\w+):", lines)
        for credential in re.findall(r"\$\{CREDENTIALS_DIRECTORY\}/(\w+)", command):
            self.assertIn(credential, names)
        need_program("openssl")
        run(0, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "30", "-subj", "/CN=localhost", "-keyout", "key", "-out", "cert")
        made = alone.run(0, "token", "--token-file", "t-" + name, "t", "read:*")
        with open("tokens", "w", encoding="utf-8") as tokens:
            os.chmod("tokens", 0o600)
            tokens.write(made.out)
        command = command.replace("${CREDENTIALS_DIRECTORY}", os.getcwd()).replace("${STATE_DIRECTORY}", os.getcwd())
        command = re.sub(r" \$WEEKWHEEL\w+", "", command).replace("tls:0.0.0.0:" + port, "tls:127.0.0.1:0")
        arguments = command.split()[1:]
        with server(*arguments) as started:
            equal(started.stop(), 0)


# ---- Binaries

def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], capture_output=True, text=True, check=True).stdout


class Hardening(Case):
    def test_binaries(self):
        """As "hardening-check" of Debian looks at them. Sanitizers bring checks of their own."""
        with open(os.path.join(BUILD, "config.mk"), encoding="utf-8") as config:
            settings = config.read()
        if not re.search(r"(?m)^HARDENING = .*fstack-protector", settings):
            raise unittest.SkipTest("this build is not hardened")
        library = os.path.join(BUILD, "lib", "libweekwheel_jobs.so.1")
        for path in (WEEKWHEELD, SESSIOND, os.path.join(BUILD, "bin", "weekwheel"), library):
            if not os.path.exists(path):
                continue
            head, segments, dynamic, symbols = (readelf(what, path) for what in ("-h", "-l", "-d", "--dyn-syms"))
            assert "DYN" in head, path
            assert "GNU_RELRO" in segments and "BIND_NOW" in dynamic, (path, "full RELRO")
            assert re.search(r"GNU_STACK .* RW ", segments), (path, "a stack that is not executed")
            assert "__stack_chk_fail" in symbols, (path, "stack protector")
            if path == WEEKWHEELD:
                assert re.search(r" __\w+_chk@", symbols), (path, "FORTIFY")
            assert "RUNPATH" not in dynamic or "$ORIGIN/../lib" in dynamic, (path, "where libraries are looked for")


main()
