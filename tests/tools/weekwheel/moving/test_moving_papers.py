#!/usr/bin/env python3
"""The pages of docs/ about moving in and common tasks: what each tells to do works, and prints what it shows.

The blocks of a page are one script, with other ports. A block without a language is what the one before it prints. It has
other numbers: each run of digits stands for any, and so does one of blanks and dashes. Standard output and errors come in
another order than on a terminal, so the lines of a block may, too. Comments such as <!-- test: COMMANDS -->
belong to the script, too: they make what the reader has already, or wait.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, __file__.rsplit("/tests/", 1)[0] + "/tests/support")
from weekwheel import (BEANSTALKD, PATIENCE, ROOT, WEEKWHEEL, WEEKWHEELD, Case, Redis, environment, equal, free_port, main,
                       need_server)

PART = re.compile(r"^<!-- test:\n(?P<test>.*?)^-->$|^( *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$", re.M | re.S)
# Programs on the ports of the test.
PROGRAMS = {
    "weekwheeld": 'case "$*" in *--listen*) ;; *) set -- --listen 127.0.0.1:11300 "$@" ;; esac\nexec ' + WEEKWHEELD + ' "$@" 2>>log',
    "weekwheel": "exec " + WEEKWHEEL + ' "$@"',
    "beanstalkd": "exec " + BEANSTALKD + ' "$@"',
    "redis-cli": 'exec /usr/bin/redis-cli -p 6379 "$@"',
    "old": "exec " + sys.executable + " -c 'import socket, sys; s = socket.create_connection((\"127.0.0.1\", 11300)); "
           "s.sendall(sys.stdin.buffer.read()); [0 for _ in iter(lambda: s.recv(99), b\"\")]'",
}
# Behind a line that starts a server.
UP = "until weekwheel stats >/dev/null 2>&1; do sleep 0.02; done\n"


def alike(text):
    """Its lines in order, without numbers and the width of columns."""
    return sorted(re.sub(r"[ -]+", " ", re.sub(r"\d+", "0", line)) for line in text.splitlines())


class Papers(Case):
    def follow(self, name, ports):
        need_server()
        with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as file:
            text = file.read()
        script, shown, blocks = ["set -eu", "exec 2>&1", "shopt -u checkwinsize"], {}, 0
        for part in PART.finditer(text):
            if part["test"]:
                script.append("{\n" + part["test"] + "} >/dev/null")
            elif part["language"] == "sh":
                blocks += 1
                block = re.sub(r"^(weekwheeld .*&\n(?:export .*\n)?)", r"\1" + UP, part["text"], flags=re.M)
                script += [f"printf '\\001%s\\n' {blocks}", re.sub("^  ", "", block, flags=re.M) if part[2] else block]
            elif not part["language"]:
                shown[blocks] = part["text"]
        os.mkdir("bin")
        for program, lines in PROGRAMS.items():
            with open(os.path.join("bin", program), "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + self.replace(lines, ports) + "\n")
            os.chmod(os.path.join("bin", program), 0o755)
        said = self.run_script(self.replace("\n".join(script), ports), ports)
        parts = dict(part.split("\n", 1) for part in said.split("\1")[1:])
        equal(len(parts), blocks, said)
        for number, text in shown.items():
            equal(alike(parts[str(number)]), alike(text), f"{name}, block {number}")

    def replace(self, text, ports):
        for old, new in ports.items():
            text = text.replace(old, str(new))
        return text

    def run_script(self, script, ports):
        """All that it printed. What it left running is ended with it."""
        with open("script", "w", encoding="utf-8") as file:
            file.write(script + "\n")
        started = subprocess.Popen(["bash", "script"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   stdin=subprocess.DEVNULL, start_new_session=True,
                                   env=environment(PATH=os.path.abspath("bin") + ":" + os.environ["PATH"], TZ="UTC",
                                                   WEEKWHEEL_SERVER=f"127.0.0.1:{ports['11300']}"))
        try:
            # Servers have its output, too, so that does not end before them.
            status = started.wait(PATIENCE)
        finally:
            os.killpg(started.pid, signal.SIGKILL)
            said = started.communicate()[0]
        equal(status, 0, said)
        return said

    def test_from_cron(self):
        self.follow("from-cron.md", {"11300": free_port()})

    def test_debounce(self):
        self.follow("debounce.md", {"11300": free_port()})

    @unittest.skipUnless(shutil.which("sqlite3"), "there is no sqlite3")
    def test_outbox(self):
        self.follow("outbox.md", {"11300": free_port()})

    @unittest.skipUnless(os.access(BEANSTALKD, os.X_OK), "there is no beanstalkd")
    def test_from_beanstalkd(self):
        self.follow("from-beanstalkd.md", {"11300": free_port(), "11301": free_port()})

    @unittest.skipUnless(shutil.which("redis-cli"), "there is no redis-cli")
    def test_from_sidekiq(self):
        with Redis() as redis:
            self.follow("from-sidekiq.md", {"11300": free_port(), "6379": redis.port})


if __name__ == "__main__":
    main()
