#!/usr/bin/env python3
"""What Tab writes to the line of an interactive bash is the name itself: nothing of it is executed, then or with Enter."""
# tier: check, no-sanitizers
import os
import pty
import select
import subprocess

from harness import PATIENCE, ROOT, WEEKWHEEL, Case, Server, check, environment, equal, main

TUBE, KEYS = "x$(touch$IFS$PWD/ran)", ["$(touch ran)", "`touch ran`", "cart 1!x", "it's"]


def typed(lines):
    """Type these lines into a bash of its own, and return when it has executed them."""
    leader, follower = pty.openpty()
    path = os.path.dirname(WEEKWHEEL) + ":" + os.environ["PATH"]
    shell = subprocess.Popen(["bash", "--norc", "--noprofile", "-i"], stdin=follower, stdout=follower, stderr=follower,
                             start_new_session=True, env=environment(PATH=path, TERM="dumb", LC_ALL="C.UTF-8"))
    os.close(follower)
    script = os.path.join(ROOT, "tools", "weekwheel", "completion", "weekwheel.bash")
    said = b""
    try:
        # A terminal holds few bytes that nobody has read.
        for line in [f"source {script}", "bind 'set enable-bracketed-paste off'", *lines]:
            os.write(leader, line.encode() + b"\necho so''me\n")
            said += wait(leader, b"some\r\n")
    finally:
        shell.kill()
        shell.wait()
        os.close(leader)
    return said.decode()


def wait(leader, end):
    said = b""
    for _ in range(PATIENCE * 50):
        if select.select([leader], [], [], 0.02)[0]:
            said += os.read(leader, 65536)
        if end in said:
            return said
    raise AssertionError(said.decode(errors="replace"))


class Completion(Case):
    def test_a_name_is_not_executed(self):
        with Server() as server:
            server.program.run(0, "put", "--tube", TUBE, "x")
            for key in KEYS:
                server.program.run(0, "put", "--tube", "keys", "--key", key, "x")
            # bash takes the port of an address for a word of its own.
            os.environ["WEEKWHEEL_SERVER"] = server.address
            told = ["list --tube x", "list --tube 'x", 'list --tube "x']
            told += [f"peek --tube keys --key {beginning}" for beginning in (r"\$", "'$", '"$', r"\`", "car", "'car", '"car', "it", "'it")]
            said = typed([f"weekwheel {words}\t" for words in told])
            del os.environ["WEEKWHEEL_SERVER"]
        equal(said.count("  " + TUBE + "  "), 3, said)
        for key, count in zip(KEYS, (3, 1, 3, 2)):
            equal(said.count(f" {key}\r\n"), count, said)
        check(not os.path.exists("ran"), "a name was executed")


if __name__ == "__main__":
    main()
