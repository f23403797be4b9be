#!/usr/bin/env python3
"""Completion in zsh offers the words of the programs' help, and the tubes and keys of a server."""
# tier: check, no-sanitizers
import os
import pty
import re
import select
import shutil
import subprocess
import unittest

from sessiond import SESSIOND
from harness import PATIENCE, ROOT, WEEKWHEEL, WEEKWHEELD, Case, Server, check, environment, equal, lack, main, need_server, run

# What Tab finds goes to a file, with a line "." behind it. zsh adds matches by compadd; with -O, -A or -D it only filters.
SETUP = r"""
PROMPT= PS2= RPROMPT=
unsetopt prompt_cr prompt_sp zle_bracketed_paste 2>/dev/null
fpath=(%s $fpath)
autoload -Uz compinit
compinit -D -u
compadd() {
	local -a hits
	if [[ "${@[1,(i)(-|--)]}" != *-(O|A|D)\ * ]]; then
		builtin compadd -A hits "$@"
		print -rl -- $hits >>found
	fi
	builtin compadd "$@"
}
capture() { _main_complete; print -r -- . >>found; }
zle -C capture list-choices capture
bindkey '^I' capture
bindkey '^U' kill-whole-line
: >found
"""


class Zsh:
    """An interactive zsh, into which lines are typed."""

    def __init__(self, **env):
        with open("setup", "w", encoding="utf-8") as file:
            file.write(SETUP % os.path.join(ROOT, "tools", "weekwheel", "completion"))
        self.leader, follower = pty.openpty()
        path = os.path.dirname(WEEKWHEEL) + ":" + os.environ["PATH"]
        self.process = subprocess.Popen(["zsh", "-f", "-i"], stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
                                        env=environment(PATH=path, TERM="xterm", LC_ALL="C.UTF-8", WEEKWHEEL_SERVER="127.0.0.1:1", **env))
        os.close(follower)
        self.said, self.answers = b"", 0
        os.write(self.leader, b"source ./setup\n")
        self.wait(lambda: os.path.exists("found"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.leader)

    def wait(self, good):
        """Read what zsh draws, so that it goes on, until its file is as it should be."""
        for _ in range(PATIENCE * 50):
            if good():
                return
            if select.select([self.leader], [], [], 0.02)[0]:
                self.said += os.read(self.leader, 65536)
        raise AssertionError(self.said.decode(errors="replace"))

    def found(self):
        with open("found", encoding="utf-8") as file:
            return file.read()

    def offered(self, line):
        """What Tab behind this line offers, in order."""
        os.write(self.leader, b"\x15" + line.encode() + b"\t")
        self.answers += 1
        self.wait(lambda: re.findall(r"^\.$", self.found(), re.M)[self.answers - 1:])
        return sorted(set(self.found().split("\n.\n" if self.answers > 1 else ".\n")[self.answers - 1].split("\n")) - {"", "."})


def quoted(word):
    """The word as zsh writes it to the command line."""
    return re.sub(r"([^\w./%-])", r"\\\1", word)


def options(*command):
    """The long options of a program's help, and no other words."""
    return sorted(set(re.findall(r"^ +(?:-., )?(--[a-z-]+)", run(0, *command, "--help").out, re.M)))


@unittest.skipUnless(shutil.which("zsh"), lack("zsh"))
class Completion(Case):
    def test_words_of_the_help(self):
        commands = re.findall(r"^  ([a-z]+)  ", run(0, WEEKWHEEL, "--help").out, re.M)
        with open("zone.tab", "w", encoding="ascii") as file:
            file.write("#country\tcoordinates\tTZ\nDE\t+5230+01322\tEurope/Berlin\tmost of Germany\nRS\t+4450+02030\tEurope/Belgrade\n")
        with Zsh(TZDIR=os.getcwd()) as zsh:
            equal(zsh.offered("weekwheel "), sorted(commands + ["--help", "--version"]))
            equal(zsh.offered("weekwheel help st"), [command for command in sorted(commands) if command.startswith("st")])
            for command in commands:
                if command != "help":
                    equal(zsh.offered(f"weekwheel {command} -"), options(WEEKWHEEL, command), command)
            for line, words in {
                "weekwheel list --state ": "buried delayed ended ready reserved",
                "weekwheel list --sort d": "due",
                "weekwheel put --missed ": "all once skip",
                "weekwheel put --url x --method P": "PATCH POST PUT",
                "weekwheel replay --format ": "csv log swf",
                "weekwheel schedule add --overlap ": "allow skip wait",
                "weekwheel schedule r": "remove resume run",
                "weekwheel import cron": "crontab",
                "weekwheel cron --tz Europe/Be": "Europe/Belgrade Europe/Berlin",
                "weekwheel list --tube ": "",
                "weekwheel put --key ": "",
            }.items():
                equal(zsh.offered(line), words.split(), line)
            check("true" in zsh.offered("weekwheel work --tube x -- tru"), "the command of work")
            equal(zsh.offered("weekwheel put --file set"), ["setup"])
            if "fsck" in commands:
                check("--follow" in zsh.offered("weekwheel import --from beanstalkd://localhost --fol"), "the options of --from")
                equal(zsh.offered("weekwheel import --from be"), ["beanstalkd://"])

    def test_tubes_and_keys_of_a_server(self):
        with Server() as server:
            for key in ("cart 1", "cart-ä", "other"):
                server.program.run(0, "put", "--tube", "mail", "--key", key, "x")
            server.program.run(0, "put", "--tube", "more", "--key", "cartoon", "x")
            with Zsh() as zsh:
                at = f"--server {server.address} "
                equal(zsh.offered(f"weekwheel list {at}--tube m"), ["mail", "more"])
                equal(zsh.offered(f"weekwheel cancel {at}--tube mail --key cart"), ["cart-ä", r"cart\ 1"])
                equal(zsh.offered(f"weekwheel peek {at}--key carto"), ["cartoon"])

    def test_names_are_not_executed(self):
        """Anybody may choose a name. A terminal would obey some."""
        tube = "x$(touch$IFS$PWD/ran)"
        keys = ["$(touch ran)", "`touch ran`", 'k"e\\y', "a%41b", "*"]
        with Server() as server:
            for key in [*keys, "es\x1bc", "c1\u009b", "rtl\u202e"]:
                server.program.run(0, "put", "--tube", "keys", "--key", key, "x")
            server.program.run(0, "put", "--tube", tube, "x")
            with Zsh() as zsh:
                at = f"--server {server.address} "
                for command in ("list", "put"):
                    equal(zsh.offered(f"weekwheel {command} {at}--tube x"), [quoted(tube)])
                equal(zsh.offered(f"weekwheel cancel {at}--tube keys --key "), sorted(map(quoted, keys)))
                equal(zsh.offered(f"weekwheel list {at}--tube '{tube}' --key "), [])
                equal(zsh.offered(f"weekwheel list {at}--tube $(touch ran) --key "), [])
                equal(zsh.offered(f"weekwheel '$(touch ran)' -"), [])
        check(not os.path.exists("ran"), "a name was executed")

    def test_the_server(self):
        need_server()
        with Zsh() as zsh:
            equal(zsh.offered("weekwheeld -"), options(WEEKWHEELD))
            equal(zsh.offered("weekwheeld --sync "), ["always", "interval", "system"])
            equal(zsh.offered("weekwheeld --log-format t"), ["text"])
            if os.access(SESSIOND, os.X_OK):
                equal(zsh.offered("weekwheel-sessiond -"), options(SESSIOND))


if __name__ == "__main__":
    main()
