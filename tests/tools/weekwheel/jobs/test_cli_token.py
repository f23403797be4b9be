#!/usr/bin/env python3
"""weekwheel token, and the tokens that other commands speak."""
# tier: check
import hashlib
import json
import os
import signal

from harness import Case, Server, alone, check, equal, main, matches


def write(text, path="tokens", mode=0o600):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read().strip()).hexdigest()


class Tokens(Case):
    def made(self, name, *grants):
        return alone.run(0, "token", "--token-file", name + ".token", name, *grants).out

    def test_a_token_is_made_and_spoken(self):
        write(self.made("boss", "admin:*") + self.made("mailer", "work:mail") + self.made("shop", "put:mail,x"))
        equal(os.stat("boss.token").st_mode & 0o777, 0o600)
        with open("shop.token", encoding="utf-8") as file:
            shop = file.read().strip()
        with open("tokens", encoding="utf-8") as file:
            check(shop not in file.read(), "the file leaks a token")
        equal(json.loads(self.made("other", "--json", "put:mail,x", "read:*")),
              {"name": "other", "hash": "sha256:" + sha256("other.token"), "grants": ["put:mail,x", "read:*"]})
        with Server("--auth-file", "tokens") as server:
            program = server.program.run
            matches(r"the server wants a token: give it with --token-file", program(1, "put", "-t", "mail", "hello").err)
            matches(r"--token-file or WEEKWHEEL_TOKEN", program(1, "stats").err)
            equal(program(0, "put", "-t", "mail", "--token-file", "shop.token", "hello").out, "1 due now\n")
            equal(program(0, "put", "-t", "mail", "hello", WEEKWHEEL_TOKEN=shop).out, "2 due now\n")
            # The option counts more than the environment.
            matches("it needs the right put in the tube mail; .*DENIED",
                    program(1, "put", "-t", "mail", "--token-file", "mailer.token", "x", WEEKWHEEL_TOKEN=shop).err)
            matches("it needs the right put in the tube default", program(1, "put", "x", WEEKWHEEL_TOKEN=shop).err)
            matches("it needs the right read in all tubes", program(1, "list", WEEKWHEEL_TOKEN=shop).err)
            matches("the token: the server does not know it: .*DENIED", program(1, "put", "x", WEEKWHEEL_TOKEN="wrong" * 5).err)
            equal(program(0, "work", "-t", "mail", "--drain", "--token-file", "mailer.token", "--", "cat").out, "hellohello")
            for arguments in (("stats",), ("list",), ("forecast",), ("kick", "--most", "5"), ("top", "--once")):
                program(0, *arguments, "--token-file", "boss.token")
            server.stop()
            check(shop not in server.said, server.said)

    def test_a_worker_that_may_not_work_ends(self):
        write(self.made("boss", "admin:*") + self.made("shop", "put:mail") + self.made("mailer", "work:mail"))
        with Server("--auth-file", "tokens") as server:
            program = server.program.run
            matches("wants a token", program(1, "work", "-n", "3", "--", "true").err)
            ended = program(1, "work", "-t", "mail", "-n", "3", "--token-file", "shop.token", "--", "true")
            equal(ended.err.count("it needs the right work in the tube mail"), 1, ended)
            check("trying again" not in ended.err, ended)
            # Its token is taken away while it waits.
            worker = server.program.start("work", "-t", "mail", "--token-file", "mailer.token", "--", "true")
            with server.client() as boss:
                with open("boss.token", encoding="ascii") as file:
                    equal(boss.ask("auth " + file.read().strip()), "OK")
                boss.until_waiting()
                write(self.made("other", "read:x"))
                server.process.send_signal(signal.SIGHUP)
                matches("the server does not know it", worker.communicate(timeout=60)[1])
                equal(worker.returncode, 1)

    def test_wrong_files_of_tokens(self):
        for name, text in (("empty", ""), ("short", "x" * 15), ("long", "x" * 201), ("space", "x" * 16 + " y"), ("cr", "x" * 16 + "\rquit")):
            write(text, name)
            said = alone.run(2, "stats", "--token-file", name).err if name != "cr" else ""
            check(name == "cr" or ("--token-file " + name in said and "16 to 200 printable bytes" in said), said)
        matches("No such file", alone.run(2, "stats", "--token-file", "none").err)
        for option, command in (("--token-file", "stats"), ("--store-file", "export")):
            matches("it is a directory", alone.run(2, command, option, ".").err)
            matches("it has more than 1 MiB", alone.run(2, command, option, "/dev/zero").err)
        # The name of a file, which may look like a token, is none.
        for name in ("a", "a-file-with-a-long-name"):
            with open(name, "w", encoding="ascii"):
                pass
            matches("WEEKWHEEL_TOKEN has the name of a file: .*; give the file with --token-file$", alone.run(2, "stats", WEEKWHEEL_TOKEN=name).err)
        matches("WEEKWHEEL_TOKEN: expected 16 to 200", alone.run(2, "stats", WEEKWHEEL_TOKEN="x" * 20 + "\r\nquit").err)
        matches("others may read loose", alone.run(1, "stats", "--token-file", write("x" * 20, "loose", 0o644)).err)
        alone.run(0, "token", "--token-file", "a.token", "a", "read:*")
        matches("a.token cannot be made: File exists", alone.run(1, "token", "--token-file", "a.token", "a", "read:*").err)
        for arguments, remedy in ((("a", "read:*"), "--token-file FILE is missing"), (("--token-file", "b", "a"), "what it may do are missing"),
                                  (("--token-file", "b", "a", "read"), "expected rights and tubes"),
                                  (("--token-file", "b", "a b", "read:*"), "'a b': expected a name of up to 64 letters"),
                                  (("--token-file", "b", "a", "wrok:*"), "'wrok' is not a right; .* read, put or write, work and admin; did you mean 'work'"),
                                  (("--token-file", "b", "a", "read,:*"), "'' is not a right"),
                                  (("--token-file", "b", "a", "put:"), "expected names of tubes"),
                                  (("--token-file", "b", "a", "put:x", "put:a,b c"), "'put:a,b c': expected names of tubes")):
            matches(remedy, alone.run(2, "token", *arguments).err)
        check(not os.path.exists("b"), "a token was made")


if __name__ == "__main__":
    main()
