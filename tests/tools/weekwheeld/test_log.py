#!/usr/bin/env python3
"""What the server reports: levels, JSON, and the prefix that systemd's journal reads."""
# tier: check
import json
import os
import signal
import socket
import subprocess

from harness import WEEKWHEELD, Case, Client, Server, environment, equal, free_port, main, matches, need_server, refused, until


def connects(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except ConnectionRefusedError:
        return False


class Log(Case):
    def setUp(self):
        need_server()
        super().setUp()

    def said(self, *arguments):
        """What a server says that a client visits, and that is told twice to accept no more jobs."""
        port = free_port()
        with subprocess.Popen([WEEKWHEELD, "--memory", "--listen", "127.0.0.1:%d" % port, *arguments], text=True,
                              stderr=subprocess.PIPE) as process:
            try:
                until(lambda: connects(port), "it listens")
                with Client(socket.create_connection(("127.0.0.1", port))) as a:
                    for _ in range(2):
                        process.send_signal(signal.SIGUSR1)
                        until(lambda: a.put() == "DRAINING", "it drains")
            finally:
                process.terminate()
            said = process.stderr.read()
        equal(process.returncode, 0, said)
        return said

    def test_levels(self):
        words = (("error", None), ("warning", "draining: jobs"), ("info", "listening on"), ("debug", "a client has connected"))
        for last, (level, _) in enumerate(words):
            said = self.said("--log-level", level)
            for index, (_, word) in enumerate(words):
                if word:
                    equal(word in said, index <= last, (level, word, said))
            assert said.count("draining") <= 1, said
        equal(self.said("--log-level", "error"), "")

    def test_json(self):
        with Server("--memory", "--log-format", "json", "--verbose") as server, server.client() as a:
            server.process.send_signal(signal.SIGUSR1)
            until(lambda: a.put() == "DRAINING", "it drains")
            equal(server.stop(), 0)
        lines = [json.loads(line) for line in server.said.splitlines()]
        draining = [line for line in lines if line.get("state") == "draining"]
        equal(len(draining), 1, lines)
        equal((draining[0]["event"], draining[0]["level"]), ("begin", "warning"))
        matches(r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ$", draining[0]["time"])
        assert {"info", "debug"} <= {line["level"] for line in lines}, lines

    def test_burials(self):
        with Server("--memory", "--log-format", "json") as server, server.client() as a:
            for number in range(100):
                equal(a.ask("put-key 0 0 60 1 k%d attempts=1\r\nx" % number), "INSERTED %d" % (number + 1))
            for number in range(100):
                matches("RESERVED", a.ask("reserve"))
                equal(a.ask(("bury-job %d 0 broken" if number else "release-job %d 0 0 worn") % (number + 1)), "BURIED")
            equal(server.stop(), 0)
        lines = [json.loads(line) for line in server.said.splitlines()]
        buried = [line for line in lines if "is buried (" in line["message"]]
        equal([buried[0][name] for name in ("level", "job", "tube", "key", "reserves", "reason")],
              ["info", 1, "default", "k0", 1, "worn"])
        equal(buried[1]["reason"], "broken")
        # Those without a line are counted.
        over = [line for line in lines if line.get("state") == "burials"]
        assert over and len(buried) < 100, lines

    def test_the_journal(self):
        """A pipe or a file is the journal if systemd says that this very one is."""
        with open("log", "w+b") as file:
            about = os.fstat(file.fileno())
            for inode, before in ((about.st_ino, "<3>weekwheeld: "), (about.st_ino + 1, "weekwheeld: ")):
                file.truncate(0)
                file.seek(0)
                subprocess.run([WEEKWHEELD, "--memory", "--listen", "192.0.2.1:1"], stderr=file, check=False,
                    env=environment(JOURNAL_STREAM="%d:%d" % (about.st_dev, inode)))
                file.seek(0)
                said = file.read().decode()
                assert said.startswith(before), said

    def test_options(self):
        assert "error, warning, info or debug" in refused("--memory", "--log-level", "loud")
        assert "text or json" in refused("--memory", "--log-format", "xml")


main()
