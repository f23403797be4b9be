"""What the stories for Python share: the port, and words to test_sessiond_clients.py, which runs the server."""
import sys

port = int(sys.argv[1])


def ask(line):
    """The test does what a line asks for, and answers with a line."""
    print(line, flush=True)
    assert sys.stdin.readline() == "done\n"


def restart():
    ask("restart")


def advance(seconds):
    ask(f"advance {seconds}")


def same(got, expected):
    assert got == expected, f"{got!r}, not {expected!r}"
