#!/usr/bin/env python3
"""Options that every server has: each server says the same of the same mistake, on its command line and in a file, ends with
status 2, and has the option in its help and at the same place of its manual."""
# tier: check, no-sanitizers
import functools
import json
import os
import re
import subprocess
import unittest

from expirer import EXPIRER
from sessiond import SESSIOND, Sessiond
from harness import PATIENCE, ROOT, WEEKWHEELD, Case, Server, check, equal, main, matches, need_server, run

# What each needs to begin at all.
SERVERS = {WEEKWHEELD: ("--memory",), SESSIOND: ()}
# weekwheel-expirer has some of the options, and lets nobody in but by HTTP.
PROGRAMS = {**SERVERS, **({EXPIRER: ("--redis", "redis://127.0.0.1:1")} if os.access(EXPIRER, os.X_OK) else {})}
# Of each option what it takes, what it refuses, and what it expects instead. "tokens" and "wrong" are files.
OPTIONS = {
    "listen": (("127.0.0.1:1", "[::1]:0", "tls:localhost:1"), ("", "11300", "h:65536", ":1", "tls:1"), "HOST:PORT"),
    "unix": (("socket",), ("",), "PATH"),
    "socket-mode": (("660", "0600"), ("", "66", "0680", "1660", "rw-"), "MODE|three octal digits"),
    "socket-group": (("www-data",), ("",), "NAME"),
    "http": (("127.0.0.1:1", "tls:[::1]:1"), ("", "80", "h:-1"), "HOST:PORT"),
    "http-host": (("jobs.example.org", "a_b-1"), ("", "a:80", "a b"), "NAME|a name without a port"),
    "tls-cert": (("any",), ("",), "FILE"),
    "tls-key": (("any",), ("",), "FILE"),
    "tls-client-ca": (("any",), ("",), "FILE"),
    "auth-file": (("tokens",), ("", "none", "wrong"), "FILE|a file with tokens: "),
    "http-auth-file": (("tokens",), ("", "none", "wrong"), "FILE|a file with tokens: "),
    "max-connections-per-address": (("0", "10000000"), ("", "-1", "10000001", "1K"), "N|a whole number, 0 to 10000000"),
    "max-buffers": (("1M", "1073741824"), ("", "1048575", "1m", "2000T"), "BYTES|bytes, 1048576 to 1125899906842624, also as in 64M"),
    "sync": (("always", "interval", "system"), ("", "often", "ALWAYS"), "WHEN|always, interval or system"),
    "sync-interval": (("1ms", "0.5", "1h"), ("", "0", "2h", "1x"), "TIME|a time such as 50ms, 2s or 30d, 1 ms to 1 h"),
    "clock": (("real", "virtual", "virtual:3.5"), ("", "virtual:", "virtual:x", "unreal"), "CLOCK|real, virtual or virtual:SECONDS"),
    "log-level": (("error", "warning", "info", "debug"), ("", "trace"), "LEVEL|error, warning, info or debug"),
    "log-format": (("text", "json"), ("", "xml"), "FORMAT|text or json"),
    "config": (("tokens-config",), ("", "none", "."), "FILE|a file with options: "),
}
FLAGS = ("insecure", "verbose", "version", "help")
# What goes with nothing but another option, with what both servers can have beside it.
LONE = (
    (("--socket-mode", "0600"), "--socket-mode is for --unix PATH: give that too"),
    (("--socket-group", "root"), "--socket-group is for --unix PATH: give that too"),
    (("--http-host", "a"), "--http-host is for --http HOST:PORT: give that too"),
    (("--http-auth-file", "tokens"), "--http-auth-file is for --http HOST:PORT: give that too"),
    (("--http", "127.0.0.1:1", "--auth-file", "tokens", "--http-auth-file", "tokens"), "exclude each other"),
    (("--tls-cert", "a"), "--tls-cert is for TLS: .* is missing"),
    (("--tls-key", "a"), "--tls-key is for TLS: "),
    (("--tls-client-ca", "a"), "--tls-client-ca is for TLS: "),
    (("--listen", "tls:127.0.0.1:1"), "--listen tls:HOST:PORT needs a certificate"),
    (("--http", "tls:127.0.0.1:1"), "--http tls:HOST:PORT needs a certificate"),
    (("--http", "0.0.0.0:1"), "everybody could use it, unencrypted"),
    (("--listen", "[::]:1"), "everybody could use it, unencrypted"),
    (("--listen", "tls:0.0.0.0:1", "--tls-cert", "a"), "no client needs a token or a certificate"),
)
MISTAKES = (
    (("--lisen", "1"), "unknown option '--lisen'; did you mean '--listen'"),
    (("-x",), "unknown option '-x'"),
    (("--sync", "always", "--sync=system"), "--sync is given twice"),
    (("--verbose=1",), "--verbose takes no value"),
    (("--unix",), "--unix needs a value: PATH"),
    (("operand",), "'operand': expected only options, OWN$"),
    (("--listen", "tls:127.0.0.1:0", "--tls-cert", "none"), "none: is not a readable certificate in PEM .No such file"),
    (("--unix", 108 * "a"), "at most 107 bytes"),
    (("--unix", "root"), "the name of a user; start the server as that user"),
)


def lacks(program, arguments):
    """Whether the program has not all of these options, which every server has."""
    words = [word[2:].split("=")[0] for word in arguments if word.startswith("--")]
    if words[:1] == ["config"] and "conf" in arguments:
        with open("conf", encoding="utf-8") as file:
            words += [line.split("=")[0].strip() for line in file]
    return bool((OPTIONS.keys() & set(words)) - set(common(program)))


def alike(status, *arguments, own=r"such as --.*|tokens and \w+", of=None):
    """Run each program that has these options with these arguments. They end so, with the same words but for the program's name
    and its own."""
    said = set()
    for program, first in (of or PROGRAMS).items():
        if lacks(program, arguments):
            continue
        err = run(status, program, *first, *arguments).err
        # Where there is no --listen, none is named.
        err = err.replace("--listen tls:HOST:PORT or --http", "--http")
        said.add(re.sub(own, "OWN", err.replace(os.path.basename(program), "PROGRAM")))
    equal(len(said), 1, (arguments, said))
    return said.pop()


def in_file(*lines):
    with open("conf", "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))
    return "--config", "conf"


@functools.cache
def common(program):
    """The options that every server has, in the order of the help."""
    part = run(0, program, "--help").out.split("\nOptions that every server has:\n")[1]
    return re.findall(r"^  (?:-\w, |    )--([a-z-]+)", part, re.M)


class Alike(Case):
    def setUp(self):
        super().setUp()
        need_server()
        if not os.access(SESSIOND, os.X_OK):
            raise unittest.SkipTest("this build has no weekwheel-sessiond: configure says what it lacks")
        for name, text in (("tokens", "a sha256:%064d admin:*\n" % 7), ("wrong", "a\n"), ("tokens-config", "# none\n\n")):
            with open(name, "w", encoding="ascii") as file:
                file.write(text)
            os.chmod(name, 0o600)

    def test_all_are_tried(self):
        for program in SERVERS:
            equal(sorted(common(program)), sorted(OPTIONS.keys() | set(FLAGS)))
        for program in PROGRAMS:
            # In the order of all servers.
            equal(common(program), [name for name in common(WEEKWHEELD) if name in common(program)])

    def test_each_row_is_read(self):
        for program in PROGRAMS:
            text = run(0, program, "--help").out
            letters = re.findall(r"^  -(\w), --", text, re.M)
            equal(len(letters), len(set(letters)), letters)
            for name in re.findall(r"^  (?:-\w, |    )--([a-z-]+)", text, re.M):
                matches(f"--{name} ('': expected|takes no value)", run(2, program, f"--{name}=").err)

    def test_good_values(self):
        for option, (good, _, _) in OPTIONS.items():
            for value in good:
                equal(alike(0, f"--{option}", value, "--version"), "")
                equal(alike(0, f"--{option}={value}", "--version"), "")
                if option != "config":
                    equal(alike(0, *in_file(f"\t{option} ={value} \r", "# and"), "--version"), "")
        for flag in FLAGS:
            equal(alike(0, f"--{flag}", "--version"), "")
            equal(alike(0, *in_file(flag), "--version"), "")

    def test_bad_values(self):
        for option, (_, bad, expected) in OPTIONS.items():
            for value in bad:
                for said in (alike(2, f"--{option}", value), "" if option == "config" else alike(2, *in_file("", f"{option} = {value}"))):
                    if said:
                        matches(f"PROGRAM: --{option} '{re.escape(value)}': expected ({expected})", said)
                        equal("that is line 2 of conf, where options have no dashes" in said, "line 2" in said)
                if option != "config":
                    check("line 2 of conf" in said, said)

    def test_what_goes_together(self):
        for arguments, expected in LONE:
            matches("PROGRAM: .*" + expected, alike(2, *arguments))
            lines = [f"{name[2:]} = {value}" for name, value in zip(arguments[::2], arguments[1::2])]
            matches("PROGRAM: .*" + expected, alike(2, *in_file(*lines)))
        for arguments, expected in MISTAKES:
            matches("PROGRAM: .*" + expected, alike(2, *arguments, of=SERVERS if arguments[0] in ("operand", "--lisen") else None))
        for program in PROGRAMS:
            said = run(2, program, *PROGRAMS[program], "--tls-key", "a").err
            equal("--listen" in said, program in SERVERS, said)
        matches("a configuration file cannot name another", alike(2, *in_file("config = tokens-config")))
        check("cannot name another" not in alike(2, *in_file("configure = x")), "configure is no option at all")
        for program in SERVERS:
            matches("--sync-interval is for --sync interval", run(2, program, "--data", "d", "--sync", "system", "--sync-interval", "1s").err)
            for line in ("sync = always", "sync-interval = 1s"):
                matches(f"--{line.split()[0]} is for --data", run(2, program, *SERVERS[program], *in_file(line)).err)

    def test_what_fails_later_has_status_1(self):
        for arguments in (("--listen", "192.0.2.1:1", "--insecure"), ("--unix", "none/socket")):
            alike(1, *arguments, own=r": .*")
            said = alike(1, "--log-format", "json", *in_file("log-level = error"), *arguments, own=r'"time".*')
            equal(said, "{OWN\n")
        for program, first in PROGRAMS.items():
            last = run(1, program, *first, "--log-format=json", "--http", "192.0.2.1:1", "--insecure").err.splitlines()[-1]
            equal(json.loads(last)["level"], "error")
            name = os.path.basename(program)
            with open(os.path.join(ROOT, "tools", name, name + ".service"), encoding="utf-8") as unit:
                check("\nRestartPreventExitStatus=2\n" in unit.read(), name)

    def test_what_is_no_small_file(self):
        """Of each option that names a file."""
        os.mkfifo("pipe")
        with open("huge", "wb") as file:
            file.truncate(1 << 40)
        os.chmod("huge", 0o600)
        for program, first in PROGRAMS.items():
            options = re.findall(r"--([a-z-]+) FILE", run(0, program, "--help").out)
            check("config" in options and "auth-file" in options, options)
            for option in options:
                # What is read again has to be a file: a pipe is refused at once.
                again = option.startswith("tls-") or option in ("auth-file", "http-auth-file", "push-ca-file", "expired-ca")
                for name, reason in ((".", "it is a directory"), ("huge", "it has more than 1 MiB"),
                                     ("/dev/zero", "it is not a file" if again else "it has more than 1 MiB"),
                                     *((("pipe", "it is not a file"),) if again else ())):
                    beside = ("--listen" if program != EXPIRER else "--http", "tls:127.0.0.1:0") if option.startswith("tls-") else ()
                    beside += ("--tls-cert", name) if option in ("tls-key", "tls-client-ca") else ()
                    beside += ("--expired-to", "beanstalk://127.0.0.1:1/t") if option.startswith("expired-") else ()
                    matches(f"{re.escape(name)}.*{reason}", run(2, program, *first, *beside, f"--{option}={name}").err)

    def test_a_pipe_is_waited_for(self):
        os.mkfifo("pipe")
        for program, first in PROGRAMS.items():
            with subprocess.Popen([program, *first, "--config", "pipe"], stderr=subprocess.PIPE, text=True) as server:
                matches("waiting for the end of pipe$", server.stderr.readline())
                with open("pipe", "w", encoding="ascii") as pipe:
                    pipe.write("lisen = 1\n")
                matches("unknown option '--lisen'", server.stderr.read())
                equal(server.wait(timeout=PATIENCE), 2)
            # As a shell's <(...).
            equal(run(0, "bash", "-c", f"{program} --config <(echo version)").err, "")
            matches("unknown option '--lisen'", run(2, program, "--config=/dev/stdin", stdin=b"lisen = 1\n").err)

    def test_clients_are_seen_by_both(self):
        for server in (Server("--verbose"), Sessiond("--verbose")):
            with server:
                with server.client():
                    while "a client has connected, 1 in all" not in (line := server.process.stderr.readline()):
                        check(line, "it said so")
                while "a client has left, 0 remain" not in (line := server.process.stderr.readline()):
                    check(line, "it said so")

    def test_the_manual_has_them_in_one_place(self):
        for program in PROGRAMS:
            with open(os.path.join(ROOT, "man", os.path.basename(program) + ".1"), encoding="utf-8") as file:
                part = re.search(r'^\.SS "?Options that every server has"?\n(.*?)(?=^\.S[SH] )', file.read(), re.M | re.S)[1]
            heads = re.findall(r"^\.TP\n\.B[RI]* \"?(.*)$", part.replace("\\-", "-"), re.M)
            equal([re.search(r"--([a-z-]+)", head)[1] for head in heads], common(program))


if __name__ == "__main__":
    main()
