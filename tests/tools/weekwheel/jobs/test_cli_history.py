#!/usr/bin/env python3
"""weekwheel history: how runs ended, as people see it."""
# tier: check
import contextlib
import json
import os
import pty
import re
import subprocess

from harness import WEEKWHEEL, Beanstalkd, Case, Program, Server, check, equal, main, matches, objects

FAILS = "echo first >&2; printf 'a\\tline' >&2; exit 3"


class History(Case):
    def test_a_worker_tells_of_its_runs(self):
        with Server() as server:
            cli = Program(server.address)
            matches("^No run is kept[.] Jobs ask", cli.run(0, "history").err)
            cli.run(0, "put", "--keep", "1d", "--key", "k", "--attempts", "1", "x")
            cli.run(0, "put", "--keep", "1d", "y")
            cli.run(0, "put", "y")
            said = cli.run(0, "work", "--history", "--drain", "--", "sh", "-c", "[ $(cat) = y ] || { %s; }" % FAILS).err
            matches("exit status 3: a.line'; buried", said)
            first, second = objects(cli.run(0, "history", "--json").out)
            equal((first["outcome"], first["key"], second["outcome"], second["key"]), ("finished", None, "buried", "k"))
            report = json.loads(second["report"])
            equal((report["status"], report["output"]), (3, "first\na\tline"))
            assert 0 <= report["seconds"] < 60, report
            shown = cli.run(0, "history", "--output").out
            matches(r"\d\d:\d\d:\d\d  finished   attempt 1  default  job 2 .* by .*:\d+\n", shown)
            matches(r"buried     attempt 1  default k  job 1 .*\n    exit status 3: a.line\n    first\n    a\tline\n$", shown)
            equal(cli.run(0, "history", "--output", "1").out, shown.split("\n", 1)[1])
            for words in (("--key", "z"), ("--schedule", "nosuch"), ("999",), ("--tube", "t")):
                matches("^No run is kept of these jobs; 'weekwheel history' alone shows", cli.run(0, "history", *words).err)
            equal(len(cli.run(0, "history", "--limit", "1").out.splitlines()), 1)

    def test_output_that_is_long_or_no_text(self):
        with Server() as server:
            cli = Program(server.address)
            cli.run(0, "put", "--keep", "1d", "x")
            cli.run(0, "work", "--history", "--drain", "--", "sh", "-c",
                    "for i in 1 2 3; do head -c 1500 /dev/zero >&2; echo >&2; done; echo end >&2")
            run, = objects(cli.run(0, "history", "--json").out)
            report = run["report"].encode()
            assert len(report) <= 4096, len(report)
            assert json.loads(report)["output"].endswith("\nend\n"), report

    def test_runs_of_a_schedule(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            cli = Program(server.address)
            cli.run(0, "schedule", "add", "--keep", "7d", "night", "0 3 * * *", "x")
            for _ in range(2):
                matches("ADVANCED", a.ask("advance 86400"))
                cli.run(0, "work", "--history", "--drain", "--", "true")
            equal(len(cli.run(0, "history", "--schedule", "night").out.splitlines()), 2)
            matches("^No run is kept", cli.run(0, "history", "--schedule", "nigh").err)

    def test_many_pages(self):
        with Server() as server, server.client() as a:
            a.send(b"".join(b"put-key 0 0 60 1 - keep=86400\r\nx\r\n" for _ in range(2500)))
            for _ in range(2500):
                matches("INSERTED", a.line())
            for _ in range(2500):
                job = int(a.ask("reserve").split()[1])
                equal(a.ask("delete %d" % job), "DELETED")
            cli = Program(server.address)
            equal([int(run["id"]) for run in objects(cli.run(0, "history", "--json", "--limit", "9999").out)],
                  list(range(2500, 0, -1)))
            equal(len(cli.run(0, "history", "--limit", "2300").out.splitlines()), 2300)

    def test_reports_do_not_control_a_terminal(self):
        with Server() as server, server.client() as a:
            a.ask("put-key 0 0 60 1 - keep=86400\r\nx")
            a.ask("reserve")
            said = json.dumps({"worker": "w\x1b]0;x\x07\x9b1m", "seconds": 1, "output": "\x1b[2Jtext\x9b1m \u202eback\nmore"})
            equal(a.ask("report 1 %d\r\n%s" % (len(said), said)), "REPORTED")
            equal(a.ask("delete 1"), "DELETED")
            a.send(b"put 0 0 60 18\r\n\x1b[2Jtext\x9b1m\xc2\x9b2m\xe2\x80\xae\r\n")
            equal(a.line(), "INSERTED 2")
            for words in (["history", "--output"], ["peek", "2"]):
                shown = self.on_terminal(server, words)
                assert "?[2Jtext?1m" in shown and not re.search("[\x1b\x07\x9b\u202e\udc9b]", shown), shown

    def test_what_commands_write_on_a_terminal(self):
        """What work passes on, with lines of any length; a pipe gets it as it is."""
        with Server() as server, server.client() as a:
            body = b"\x1b[2Jtext\x9b1m\xc2\x9b2m\r\n\t\xc3\xa4" + b"\x1b" * 3000 + b"end\n"
            for words in (["--", "sh", "-c", "cat >&2"], ["--log", "--", "cat"], ["--json", "--", "sh", "-c", "cat >&2"]):
                words = ["work", "--drain", *words]
                matches("^INSERTED", a.put(body))
                shown = self.on_terminal(server, words)
                check("?[2Jtext?1m?2m" in shown and "\u00e4??" in shown and "end" in shown, shown)
                check(not re.search("[\x1b\x9b\udc9b]", shown), shown)
                matches("^INSERTED", a.put(body))
                ended = subprocess.run([WEEKWHEEL, *words], capture_output=True, env=Program(server.address).environment(), check=True)
                check(body[:16] in ended.stderr, ended.stderr[:100])

    def on_terminal(self, server, words):
        leader, follower = pty.openpty()
        subprocess.run([WEEKWHEEL, *words], stdout=follower, stderr=follower, env=Program(server.address).environment(), check=True)
        os.close(follower)
        shown = b""
        # Linux ends a terminal that nobody has open by an error.
        with contextlib.suppress(OSError):
            while piece := os.read(leader, 65536):
                shown += piece
        os.close(leader)
        return shown.decode(errors="surrogateescape")

    def test_without_weekwheeld(self):
        with Beanstalkd() as other:
            cli = Program("127.0.0.1:%d" % other.port)
            matches("keeps no history", cli.run(1, "history").err)
            matches("keeps no history", cli.run(1, "work", "--history", "--drain", "--", "true").err)


if __name__ == "__main__":
    main()
