#!/usr/bin/env python3
"""weekwheel import crontab: what is carried over, what cron refuses, names, and the difference to what the server has."""
# tier: check, waits
import base64
import os
import random
import re

from harness import Case, Server, alone, check, equal, main, matches, seed

BEGIN = 2847571200  # 2060-03-27T00:00:00Z, a day before Berlin's clocks go forward


CRONTAB = """# a comment
CRON_TZ=Europe/Berlin
MAILTO=ops@example.org
SHELL=/bin/bash
GREETING = "it's me"
0 3 * * *   /usr/local/bin/backup --all > backup.log
*/5 * * * * cat > mail.txt%to: ada%%100\\% sure
@daily backup
@reboot start-it
61 * * * * wrong
0 4 * * *
  30 4 1 * mon echo "$GREETING" > greeting.txt
"""


def bare(text):
    """Without the hash of a line that ends the name of its schedule."""
    return re.sub(r"(\t[^\t]+)-[0-9a-f]{6}(?=\t)", r"\1", text)


class Crontab(Case):
    def test_a_crontab_moves_in(self):
        with open("crontab", "w", encoding="utf-8") as file:
            file.write(CRONTAB)
        with Server("--clock", "virtual") as server, server.client() as a:
            a.ask("advance %d" % (BEGIN - int(a.ask("advance 0").split()[1])))
            ww = server.program
            ended = ww.run(1, "import", "crontab", "crontab")
            equal(bare(ended.out).splitlines(), ["cron\tbackup-all-backup.log\t0 3 * * *\tEurope/Berlin",
                                           "cron\tcat-mail.txt-to-ada-100-sure\t*/5 * * * *\tEurope/Berlin",
                                           "cron\tbackup\t@daily\tEurope/Berlin",
                                           "cron\techo-GREETING-greeting.txt\t30 4 1 * mon\tEurope/Berlin"])
            for words in ("crontab:3: MAILTO is not carried over", "crontab:4: SHELL is not carried over: let the worker run '-- /bin/bash'",
                          "crontab:9: @reboot is not carried over",
                          "crontab:10: this line is not carried over: '61' is not a valid minute", "crontab:11: expected five fields",
                          "4 new schedules, 3 lines left out"):
                assert words in ended.err, (words, ended.err)
            equal(len(a.jobs("list-schedules tube=cron")), 4)
            # Again: they stay. The scripts do what the lines did.
            matches("^0 new schedules, 4 as before, 3", ww.run(1, "import", "crontab", "crontab").err)
            equal(len(a.jobs("list-schedules tube=cron")), 4)
            equal(a.ask("use cron"), "USING cron")
            for name in [line.split("\t")[1] for line in ended.out.splitlines()][1::2]:
                equal(a.ask("run-schedule " + name).split()[0], "INSERTED")
            ww.run(0, "work", "--tube", "cron", "--drain", "--", "sh")
            equal([open(name, encoding="utf-8").read() for name in ("mail.txt", "greeting.txt")], ["to: ada\n\n100% sure\n", "it's me\n"])

    def imported(self, text, shell="sh"):
        """Import a crontab, run each of its schedules once, and return their names and the jobs that failed."""
        with open("crontab", "wb") as file:
            file.write(text)
        with Server("--clock", "virtual") as server, server.client() as a:
            ended = server.program.run(0, "import", "crontab", "crontab")
            names = [line.split("\t")[1] for line in ended.out.splitlines()]
            a.ask("use cron")
            for name in names:
                equal(a.ask("run-schedule " + name).split()[0], "INSERTED")
            server.program.run(0, "work", "--tube", "cron", "--drain", "--", shell)
            return names, server.program.run(0, "list", "--state", "buried", "--tube", "cron").out

    LINES = ["5 1 * * * cd /srv/example.org && /usr/local/bin/run manage.py clear", "10 1 * * * cd /srv/example.org && /usr/local/bin/run manage.py delete",
             "*/10 * * * * cd /srv/example.org && /usr/local/bin/run manage.py send", "15 1 * * * same", "20 1 * * * same", "0 0 * * * twice",
             "0 0 * * * twice", "CRON_TZ=Asia/Tokyo", "15 1 * * * same"]

    def schedules(self, a, tube="cron"):
        """What is put when, whatever the names are."""
        return sorted((one["cron"], base64.b64decode(one["body"]).decode()) for one in a.jobs("list-schedules body=yes tube=" + tube))

    def test_names_do_not_depend_on_neighbours(self):
        """Whichever lines go, no command of another one is put twice, and none is lost."""
        def write(lines):
            with open("tab", "w", encoding="ascii") as file:
                file.write("".join(line + "\n" for line in lines))
        with Server("--clock", "virtual") as server, server.client() as a:
            write(self.LINES)
            server.program.run(0, "import", "crontab", "tab")
            whole = self.schedules(a)
            equal(len(whole), len(self.LINES) - 1)
            for gone in (*range(len(self.LINES) - 2), len(self.LINES) - 1):
                write(self.LINES[:gone] + self.LINES[gone + 1:])
                server.program.run(0, "import", "crontab", "tab")
                equal(self.schedules(a), whole)
            write(self.LINES[:-2][::-1] + self.LINES[-2:])
            server.program.run(0, "import", "crontab", "tab")
            equal(self.schedules(a), whole)

    def test_replace(self):
        """The schedules of the tube become what the file says. A dry run shows the difference, and changes nothing."""
        random.seed(seed())
        with Server("--clock", "virtual") as server, server.client() as a:
            ww = server.program
            ww.run(0, "schedule", "add", "mine", "@daily", "x", "--tube", "other")
            before = []
            for _ in range(12):
                lines = random.sample(self.LINES[:5], random.randrange(1, 6))
                with open("tab", "w", encoding="ascii") as file:
                    file.write(random.choice(["", "A=1\n", "CRON_TZ=Asia/Tokyo\n"]) + "".join(line + "\n" for line in lines))
                dry = ww.run(0, "import", "crontab", "--replace", "--dry-run", "--tz", "UTC", "tab")
                equal(self.schedules(a), before)
                real = ww.run(0, "import", "crontab", "--replace", "--tz", "UTC", "tab")
                equal(real.out, dry.out)
                before = self.schedules(a)
                equal(len(before), len(lines))
                equal(ww.run(0, "import", "crontab", "--replace", "--tz", "UTC", "tab").out, "")
                with open("alone", "w", encoding="ascii") as file:
                    file.write("")
            # As when "crontab -l" failed.
            ended = ww.run(1, "import", "crontab", "--replace", "alone")
            matches("nothing was changed: alone has no line with a time, and --replace would remove every schedule", ended.err)
            equal(self.schedules(a), before)
            equal(len(self.schedules(a, "other")), 1)
            with open("tab", "w", encoding="ascii") as file:
                file.write("0 1 * * * x\n")
            kinds = [line.split("\t")[0] for line in ww.run(0, "import", "crontab", "--replace", "--tz", "UTC", "tab").out.splitlines()]
            equal(sorted(kinds), ["+"] + len(before) * ["-"])
            equal([line[0] for line in ww.run(0, "import", "crontab", "--replace", "--tz", "Asia/Tokyo", "tab").out.splitlines()], ["~"])
            # A line that is refused would lose its schedule.
            before = self.schedules(a)
            for text in ("0 25 * * * x\n", "0 1 * * * y\n0 1 * * * x", "0 1 * * * y\n0 2 * *\n"):
                with open("tab", "w", encoding="ascii") as file:
                    file.write(text)
                for words in (("--dry-run",), ()):
                    ended = ww.run(1, "import", "crontab", "--replace", *words, "tab")
                    equal(ended.out, "")
                    matches("nothing was changed: with --replace, no line may be refused", ended.err)
                equal(self.schedules(a), before)
            # What is paused stays so, and a span of less than a second is the same again.
            with open("tab", "w", encoding="ascii") as file:
                file.write("0 1 * * * x\n@reboot y\n")
            name = a.jobs("list-schedules tube=cron")[0]["name"]
            equal((a.ask("use cron"), a.ask("pause-schedule " + name)), ("USING cron", "PAUSED"))
            for words, kinds in (((), "c"), (("--run", "1500ms"), "c"), (("--run", "1500ms", "--replace"), "")):
                ended = ww.run(1, "import", "crontab", "--tz", "Asia/Tokyo", *words, "tab")
                equal("".join(line[0] for line in ended.out.splitlines()), kinds)
                check(a.jobs("list-schedules tube=cron")[0]["paused"], "it goes on")
            # With --system, users that have no line any more count as well, and all files do.
            for texts, kinds in ((("0 1 * * * ada x\n0 1 * * * bob x\n", "0 2 * * * bob z\n"), "+++"), (("0 1 * * * bob x\n", "0 2 * * * bob z\n"), "-")):
                for name, text in zip("ab", texts):
                    with open(name, "w", encoding="ascii") as file:
                        file.write(text)
                equal("".join(line[0] for line in ww.run(0, "import", "crontab", "--replace", "--system", "--tz", "UTC", "a", "b").out.splitlines()), kinds)
            equal(len(self.schedules(a)), 1)

    def test_what_follows_a_percent_sign_is_input(self):
        """No byte of it is ever run: it is the standard input of the command before it, as in crontab(5)."""
        inputs = [b"", b" ", b"END_OF_CRONTAB_INPUT%touch bad", b"AINPUT-1%AINPUT-2%touch bad", b"AINPUT-1", "I\u00f1igo%A\u00e4%AINPUT-\u00e4%B\u00e4".encode(),
                  b"%".join(bytes((c,)) for c in range(65, 91)) + b"%ZINPUT-1%ZINPUT-2%touch bad", b"'", b"''\\''%touch bad", b'"$(touch bad)"`touch bad`$HOME',
                  b"\\", b"\\\\", b"a\\%b\\\\%c%%d", b"%", b"%%", b"a ", b"\ta\t", b"# a", b"<<X%X", b"&& touch bad; touch bad", bytes(c for c in range(1, 256) if c != 10)]
        draw = random.Random(seed())
        inputs += [bytes(draw.choices([c for c in range(1, 256) if c not in b"\r\n"], k=50)) for _ in range(20)]
        lines = [b"@daily cat >%d.out%%%s" % (i, text) for i, text in enumerate(inputs)]
        names, buried = self.imported(b"\n".join(lines) + b"\n")
        equal((len(names), buried, os.path.exists("bad")), (len(inputs), "", False))
        for i, text in enumerate(inputs):
            want = b"".join(b"%" if part == b"\\%" else b"\n" if part == b"%" else part for part in re.findall(rb"\\%|[^\n]", text))
            want += b"\n" if want and not want.endswith(b"\n") else b""
            with open("%d.out" % i, "rb") as file:
                equal(file.read(), want, text)

    def test_a_command_is_what_stands_before_a_percent_sign(self):
        """All of it gets the input, however it is written; without a % its input is empty."""
        commands = {b"read a; read b; echo $a-$b%one%two": b"one-two\n", b"cat </dev/null%data": b"", b"cat; wc -c%hello": b"hello\n0\n",
                    b"cat # below 90% touch bad": b" touch bad\n", b"echo x \\%x\\": b"x %x\\\n", b"cat; echo y": b"y\n", b"echo 'it''s' \"q\" \\\\": b"its q \\\n",
                    b"%touch bad": b"", b"if read a; then cat; fi%1%2%3": b"2\n3\n", b"cat; cat <<END%a\\%b%END": b"a%b\nEND\n",
                    b"printf '\\%s|' a b\\ ": b"a|b |", b"echo a\\\\%touch bad": b"a\\\n",
                    b"echo a\\\\%; touch bad": b"a\\\n", b"printf '\\%s|' a\\\\\\% b; cat%c": b"a\\%|b|c\n"}
        lines = [b"@daily exec >%d.out; %s" % (i, command) for i, command in enumerate(commands)]
        names, buried = self.imported(b"\n".join(lines) + b"\n")
        equal((len(names), buried, os.path.exists("bad")), (len(commands), "", False))
        for i, (command, want) in enumerate(commands.items()):
            with open("%d.out" % i, "rb") as file:
                equal(file.read(), want, command)

    def test_a_command_that_begins_with_a_dash(self):
        """It is no option of eval, as in bash."""
        with open("-x", "w", encoding="ascii") as file:
            file.write("#!/bin/sh\ntouch ran\n")
        os.chmod("-x", 0o755)
        equal(self.imported(b"PATH=.:/usr/bin:/bin\n@daily -x\n", "bash"), (["x-b2c46a"], ""))
        assert os.path.exists("ran")

    def test_a_line_that_cron_refuses_is_left_out(self):
        """It has never run, so nobody knows what it does. Each is named with its line and what to write."""
        os.mkdir("victim")
        for line, why in ((b"0 1 * * * rm -rf victim/`date +%Y`", r"the command at its first %, and sh refuses what is before it: write \\% for"),
                          (b"0 1 * * * echo 'a%b'", "sh refuses what is before it"), (b"* * * * * * rm -rf victim", r"a \* where the command begins: write five"),
                          (b"0 1 L * * x", "cron refuses L"), (b"0 1 * * 05L x", "cron refuses L"),
                          (b"0 1 * * friL x", "cron refuses L"), (b"0 1 * * fri#2 x", "cron refuses L, #"),
                          (b"0 1 ? * * x", "cron refuses"), (b"0 1 1,L-3 * * x", "cron refuses"), (b"1,5/15 * * * * x", "cron refuses .* / behind one value"),
                          (b"@Daily x", "a name in capitals"), (b"@every 5m", "expected a length of time"), (b"0 1 * * * rm -rf victim\r", "carriage return.*sed 's"),
                          (b"\r", "a line of a carriage return alone.*sed 's"), (b" \t\r", "a carriage return alone"),
                          (b"\xef\xbb\xbf0 1 * * * x", "byte order mark"), (b"-0 1 * * * x", "a - before the minute"),
                          (b"-@daily x", "a - before the minute"), (b"-A=b", "a - before the minute"),
                          (b"10-99/60 * * * * x", "'99' is not a valid minute"),
                          (b"5-/99 * * * * x", "this line is not carried over"),
                          (b"*,/60 1 * * * x", "this line is not carried over"),
                          (b"0 1 9-40/50 * * x", "'40' is not a valid day")):
            for before in (b"", b"SHELL=/bin/sh\n"):
                if before and b"\xef" in line:
                    continue
                with open("tab", "wb") as file:
                    file.write(before + line + b"\n")
                ended = alone.run(1, "import", "crontab", "--dry-run", "--tz", "UTC", "tab")
                matches("tab:%d: .*%s" % (2 if before else 1, why), ended.err)
                equal(ended.out, "")
        assert os.path.isdir("victim")
        for text, why in ((b"0 1 * * * x", "tab:1: cron ignores a last line without a newline: end it with one"), (b"\n0 1 * * * x\0\n0 2 * * * y\n", "byte 0 in it: save it")):
            with open("tab", "wb") as file:
                file.write(text)
            matches(why, alone.run(1, "import", "crontab", "--dry-run", "--tz", "UTC", "tab").err)
        # These it takes. Only sh itself can say what another shell takes.
        with open("tab", "wb") as file:
            file.write(b"\xef\xbb\xbf# a comment\r\nA=b\r\n \t\n\n*/5 1-5/2,7 * jul,JAN *,mon-FRI a%'\n"
                       b"@daily b '\\%'%'\nSHELL=/bin/bash\n0 0 * * 7 c <(d%)")
            file.write(b"\n0 0 * * 6-7 cat 'e'%'`$(\n# the end")
        equal([line.split("\t")[1] for line in bare(alone.run(0, "import", "crontab", "--dry-run", "--tz", "UTC", "tab").out).splitlines()], ["a", "b", "c-d", "cat-e"])

    def test_a_step_that_is_longer_than_its_field(self):
        """Cron takes the first value alone."""
        steps = {"*/60 * * * *": "0 * * * *", "*/90 0 * * *": "0 0 * * *", "0 */24 * * *": "0 0 * * *", "5,10-20/60,*/99 1-5/2 * * *": "5,10,0 1-5/2 * * *",
                 "0 0 */32 * mon": "0 0 */31 * mon", "0 0 2-9/40,12 jan-mar/13 0-7/8": "0 0 2-9/31,12 jan-mar/12 0-7/7", "*/59 */23 */31 */12 */7": None,
                 "0 0 * * */99999999999999999999": "0 0 * * */7"}
        with open("tab", "w", encoding="ascii") as file:
            file.write("".join("%s x\n" % step for step in steps))
        ended = alone.run(0, "import", "crontab", "--dry-run", "--tz", "UTC", "tab")
        equal([line.split("\t")[2] for line in ended.out.splitlines()], [want or step for step, want in steps.items()])
        matches(r"tab:3: a step is longer than its field, and cron takes the first value alone: '0 0 \* \* \*'$", ended.err)
        assert "tab:7" not in ended.err
        with open("tab", "w", encoding="ascii") as file:
            file.write("*/0 * * * * x\n")
        matches("tab:1: this line is not carried over: a step is missing",
                alone.run(1, "import", "crontab", "--dry-run", "--tz", "UTC", "tab").err)

    def test_a_long_command(self):
        """Debian's cron refuses it, but cronie may have run it."""
        for length in (998, 999):
            with open("tab", "w", encoding="ascii") as file:
                file.write("0 1 * * * %s\n" % ("x" * length))
            ended = alone.run(0, "import", "crontab", "--dry-run", "--tz", "UTC", "tab")
            equal(len(ended.out.splitlines()), 1)
            equal("tab:1: Debian's cron refuses a command of more than 998 bytes" in ended.err, length == 999)

    def test_two_backslashes(self):
        """Debian's cron makes one of them, and cronie does not."""
        for command, is_named in ((b"a \\\\ b", True), (b"a\\\\%b", True), (b"\\%\\\\\\", True),
                                  (b"a \\b\\%c\\", False), (b"a%\\\\", False)):
            with open("tab", "wb") as file:
                file.write(b"0 1 * * * " + command + b"\n")
            ended = alone.run(0, "import", "crontab", "--dry-run", "--tz", "UTC", "tab")
            equal("tab:1: Debian's cron makes one backslash of two" in ended.err, is_named, command)

    def test_variables_that_a_script_cannot_set(self):
        with open("crontab", "w", encoding="utf-8") as file:
            file.write("IFS=,\nPPID=5\nUID = 7\n'J'=6\n\"K\" = 'a b'\n1S=7\nR!=7\n'a b'=8\nOPTIND=x\n"
                       "0 3 * * * V=a,b; printf '%s|' $V $J \"$K\" > out\n".replace("%", r"\%"))
        with Server() as server:
            ended = server.program.run(0, "import", "crontab", "crontab")
            for number, words in ((1, "IFS is not carried over: the shell"), (2, "PPID is not"), (3, "UID is not"), (9, "OPTIND is not"),
                                  (6, "the variable '1S' is not carried over: sh can have none"), (7, "the variable 'R!' is"),
                                  (8, "the variable 'a b' is")):
                matches(f"crontab:{number}: {words}", ended.err)
            equal(len(ended.err.splitlines()), 8, ended.err)
            server.program.run(0, "schedule", "run", ended.out.split("\t")[1], "--tube", "cron")
            for shell in ("sh", "bash --posix"):
                server.program.run(0, "work", "--tube", "cron", "--drain", "--", *shell.split())
                equal(open("out", encoding="utf-8").read(), "a,b|6|a b|")
                os.unlink("out")
                server.program.run(0, "schedule", "run", ended.out.split("\t")[1], "--tube", "cron")

    def test_a_user_is_no_command_and_does_not_control_a_terminal(self):
        with open("system", "w", encoding="utf-8") as file:
            file.write("0 3 * * * bob;touch one\n0 3 * * * a\x1b[31m\x9b\u202eb two\n0 3 * * * %s three\n" % ("u" * 200))
        ended = alone.run(1, "import", "crontab", "--system", "--dry-run", "--tz", "UTC", "system")
        equal(bare(ended.out), "cron.bob;touch\tone\t0 3 * * *\tUTC\n")
        matches("(?s)system:2: no tube can be named after the user.*system:3: no tube .*--jobs 20 --tube 'cron.bob;touch' -- sh$",
                ended.err.rstrip())
        ended = alone.run(1, "import", "crontab", "no\x1b[31m\x9b\u202ename")
        matches(r"no\?\[31m\?\?name: ", ended.err)
        with Server() as server:
            matches(r"^a\?b: next at", server.program.run(0, "schedule", "add", "a\u202eb", "@daily", "x").out)
            server.program.run(2, "schedule", "add", "a\x9bb", "@daily", "x")

    def test_the_format_of_the_system(self):
        with open("dash", "w", encoding="ascii") as file:
            file.write("-5 0 * * * root x\n")
        equal(bare(alone.run(0, "import", "crontab", "--dry-run", "--system", "--tz", "UTC", "dash").out),
              "cron.root\tx\t5 0 * * *\tUTC\n")
        with open("system", "w", encoding="utf-8") as file:
            file.write("17 * * * * root cd / && run-parts\n@hourly www-data tidy\n5 5 * * * root\n")
        with Server("--clock", "virtual") as server:
            with open("wrong", "w", encoding="ascii") as file:
                file.write("15 25 * * * x\n0 0 31 2 * y\n0 3 * * * good\n")
            dry = server.program.run(1, "import", "crontab", "--dry-run", "wrong")
            equal(len(dry.out.splitlines()), 1)
            matches("^Would be: 1 new schedule, 2 lines left out", dry.err)
            real = server.program.run(1, "import", "crontab", "wrong")
            equal((real.out, real.err.splitlines()[:-1]), (dry.out, dry.err.splitlines()[:-1]))
            # What is not in it any more goes on, and is named.
            with open("wrong", "w", encoding="ascii") as file:
                file.write("0 4 *\t*  * root better\n")
            again = server.program.run(0, "import", "crontab", "--tz", "UTC", "wrong")
            equal(bare(again.out), "cron\troot-better\t0 4 * * *\tUTC\n")
            name = real.out.split("\t")[1]
            matches("the schedule '%s' is in no line, and goes on; .*remove '%s' --tube cron, or import with --replace" % (name, name), again.err)
            matches("wrong:1: the command begins with 'root', a user: .*--system", again.err)
            matches("weekwheel work --jobs 20 --tube cron -- sh", again.err)
            for ended in (real, again):
                server.program.run(0, "schedule", "remove", ended.out.split("\t")[1], "--tube", "cron")
            ended = server.program.run(1, "import", "crontab", "--system", "--tz", "UTC", "--dry-run", "system")
            equal(bare(ended.out).splitlines(), ["cron.root\tcd-run-parts\t17 * * * *\tUTC", "cron.www-data\ttidy\t@hourly\tUTC"])
            assert "system:3: expected five fields or @daily, a user and a command" in ended.err, ended.err
            equal(server.program.run(0, "schedule", "list", "--json").out, "")
            # A zone for all lines is refused once; one of the crontab's own is wrong for its lines.
            with open("wrong", "w", encoding="ascii") as file:
                file.write("0 1 * * * a\n0 2 * * * b\n")
            for words in (("--dry-run",), ()):
                ended = server.program.run(2, "import", "crontab", "--tz", "Nowhere", "wrong", *words)
                equal((ended.out, ended.err.splitlines()[0].split(": there")[0], len(ended.err.splitlines())), ("", "weekwheel: import crontab: --tz", 3))
            with open("wrong", "w", encoding="ascii") as file:
                file.write("CRON_TZ=Nowhere\n0 1 * * * a\n0 2 * * * b\n")
            matches("wrong:3: this line is not carried over: there is no such zone", server.program.run(1, "import", "crontab", "wrong").err)
            equal(server.program.run(0, "schedule", "list", "--json").out, "")
            for words in ((), ("a", "b"), ("--run", "x", "a")):
                server.program.run(2 if not words or "x" in words else 1, "import", "crontab", *words)


main()
