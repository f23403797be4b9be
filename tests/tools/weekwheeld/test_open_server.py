#!/usr/bin/env python3
"""docs/open-server.md: what it tells to do works, command by command."""
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, __file__.rsplit("/tests/", 1)[0] + "/tests/support")
from weekwheel import PATIENCE, ROOT, WEEKWHEEL, WEEKWHEELD, Case, check, environment, equal, main, matches, need_server

PAPER = os.path.join(ROOT, "docs", "open-server.md")


def blocks(language):
    """The fenced blocks of the paper. This machine has another name, and takes free ports."""
    with open(PAPER, encoding="utf-8") as file:
        text = file.read()
    for old, new in (("jobs.example.org", "localhost"), ("0.0.0.0:11300", "127.0.0.1:0"), ("0.0.0.0:11301", "127.0.0.1:0")):
        check(old in text, old)
        text = text.replace(old, new)
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


class Paper(Case):
    """Runs blocks, and keeps what they export."""

    def setUp(self):
        super().setUp()
        need_server()
        os.mkdir("bin")
        for program in (WEEKWHEEL, WEEKWHEELD):
            os.symlink(program, os.path.join("bin", os.path.basename(program)))
        self.environment = environment(PATH=os.path.abspath("bin") + ":" + os.environ["PATH"], WEEKWHEEL_SERVER=None,
                                       WEEKWHEEL_TLS_CA=None)
        self.ports = {}

    def run_block(self, text):
        for old, new in self.ports.items():
            text = text.replace(old, new)
        done = subprocess.run(["sh", "-euc", text], env=self.environment, capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        equal((done.returncode, done.stderr), (0, done.stderr if "openssl" in text or "curl" in text else ""), text)
        for name, value in re.findall(r"\b(WEEKWHEEL_\w+)=(\S+)", text):
            self.environment[name] = value
        return done.stdout

    def start(self, text):
        """Start the server of the block, and find its ports."""
        command = text.rstrip().removesuffix("&").replace("weekwheeld ", "exec weekwheeld ", 1)
        server = subprocess.Popen(["sh", "-euc", command], env=self.environment, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.send_signal, signal.SIGTERM)
        said = ""
        while not ("listening on tls" in said and "serving https" in said):
            line = server.stderr.readline()
            check(line, said)
            said += line
        self.ports = {"localhost:11300": "localhost:" + re.search(r"listening on tls:\S+?:(\d+)", said).group(1),
                      "localhost:11301": "localhost:" + re.search(r"serving https://\S+?:(\d+)/", said).group(1)}
        check("warning" not in said, said)

    @unittest.skipUnless(shutil.which("openssl") and shutil.which("curl"), "there is no openssl, or no curl")
    def test_what_the_paper_tells_to_do_works(self):
        certificate, tokens, server, put, work, look, http = blocks("sh")
        self.run_block(certificate)
        self.run_block(tokens)
        self.start(server)
        matches("^1 due .*, in 1 h$", self.run_block(put))
        matches("^ *1 +delayed +mail +ada ", self.run_block(look))
        self.run_block("weekwheel move --token-file boss.token --tube mail --key ada --in 0")
        equal(self.run_block(work), "mail: remind ada\n")
        port = self.ports["localhost:11300"].split(":")[1]
        python = blocks("python")[0].replace("11300", port)
        done = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True, timeout=PATIENCE, check=False)
        matches("INSERTED 2", done.stdout, done.stderr)
        matches(r'^ok\n\{"id":2,.*"tube":"mail"', self.run_block(http))
        with open(PAPER, encoding="utf-8") as file:
            for said in re.findall(r"^\| `([^`]*)`", file.read(), re.M):
                self.explained(said, look, put)

    def explained(self, said, look, put):
        """Each message of the last table comes from what it stands for."""
        address = self.ports["localhost:11300"]
        wrong = {"Connection refused": look.replace("--token", "--server tls:localhost:1 --token"),
                 "self-signed certificate": look.replace("weekwheel", "WEEKWHEEL_TLS_CA= weekwheel"),
                 "mismatch": look.replace("--token", f"--server tls:{address.replace('localhost', '127.0.0.1')} --token"),
                 "the server wants a token": "weekwheel list",
                 "the server does not know it": "WEEKWHEEL_TOKEN=0123456789abcdef weekwheel list",
                 "it needs the right put in the tube mail": put.replace("shop.token", "mailer.token")}.get(said)
        if not wrong:
            return equal(said, "certificate has expired")  # test_tls.py has it
        for old, new in self.ports.items():
            wrong = wrong.replace(old, new)
        done = subprocess.run(["sh", "-c", wrong], env=self.environment, capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        return matches("(?i)" + said, done.stderr, said)


if __name__ == "__main__":
    main()
