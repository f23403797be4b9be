#!/usr/bin/env python3
"""The commands of weekwheel that talk to a server. The server is a fake, which says what a test needs: the words of
beanstalkd or of weekwheeld, nonsense or nothing."""
# tier: check, waits
import json
import os
import signal
import socket
import subprocess
import threading
import time

from harness import PATIENCE, WEEKWHEEL, Case, Program, check, compiled, equal, free_port, main, matches


class Fake:
    """A server that answers each line with what a function returns, and keeps the lines. None closes the connection."""

    def __init__(self, answer, port=0):
        self.answer, self.lines, self.changed = answer, [], threading.Condition()
        self.socket = socket.create_server(("127.0.0.1", port))
        self.client = Program("127.0.0.1:%d" % self.socket.getsockname()[1])
        self.server = threading.Thread(target=self.serve, daemon=True)
        self.server.start()

    def serve(self):
        while True:
            try:
                connection = self.last = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        try:
            with connection, connection.makefile("rb") as lines:
                self.answer_lines(connection, lines)
        except OSError:
            pass  # the client has gone

    def answer_lines(self, connection, lines):
        for line in lines:
            with self.changed:
                self.lines.append(line.rstrip(b"\r\n").decode())
                self.changed.notify_all()
            said = self.answer(self.lines[-1], lines)
            if said is None:
                return
            connection.sendall(said)

    def wait(self, good):
        """Wait until a function accepts the lines that were sent."""
        with self.changed:
            check(self.changed.wait_for(lambda: good(self.lines), PATIENCE), self.lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A thread in accept would take the connections of the next fake, whose descriptor has the same number.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.server.join()
        self.socket.close()


def always(said):
    return lambda line, lines: said


def table(**answers):
    """Answers by the first word of a command, as beanstalkd's are. Reads the body that follows a put."""
    def answer(line, lines):
        word = line.split(" ")[0]
        if word.startswith("put"):
            lines.readline()
        return answers.get(word.replace("-", "_"), b"UNKNOWN_COMMAND\r\n")
    return answer


STATS = b"---\nid: 7\ntube: default\nstate: reserved\npri: 9\nttr: 1\nreserves: %d\n"


def worker(reserves, **more):
    """beanstalkd with one job, which it delivers once."""
    stats = STATS % reserves
    jobs = [b"TIMED_OUT\r\n", b"RESERVED 7 4\r\nbody\r\n"]
    answers = dict(delete=b"DELETED\r\n", release=b"RELEASED\r\n", bury=b"BURIED\r\n", touch=b"TOUCHED\r\n",
                   stats_job=b"OK %d\r\n%s\r\n" % (len(stats), stats), watch=b"WATCHING 2\r\n",
                   ignore=b"WATCHING 1\r\n")
    answers.update(more)
    known = table(**answers)

    def answer(line, lines):
        return (jobs.pop() if len(jobs) > 1 else jobs[0]) if line.startswith("reserve") else known(line, lines)
    return answer


def listing(**more):
    job = dict(id=7, version=2, state="reserved", tube="t", key="a%20b", priority=9, run=60, attempts=0, reserves=2)
    job.update(more)
    body = json.dumps(job).encode() + b'\n{"next":7}'
    return b"OK %d\r\n%s\r\n" % (len(body), body)


def own(**job):
    return worker(1, stats_key=b"NOT_FOUND\r\n", list_delayed=listing(**job), release_job=b"RELEASED\r\n",
                  bury_job=b"BURIED\r\n")


class FakeServers(Case):
    def test_nobody_listens(self):
        with socket.create_server(("127.0.0.1", 0)) as unused:
            client = Program("127.0.0.1:%d" % unused.getsockname()[1])
        matches(r"Connection refused; start weekwheeld there, or name another with --server", client.run(1, "stats").err)
        for address in ("nonsense", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", ":11300", "::1:11300", "unix:",
                        "unix:" + "x" * 200, "host:port"):
            matches("weekwheel stats: --server '%s.*': expected HOST:PORT" % address[:50],
                    client.run(2, "stats", "--server", address).err)
            matches("weekwheel put: WEEKWHEEL_SERVER '.*': expected HOST:PORT", Program(address).run(2, "put", "x").err)
        matches("No such file", client.run(1, "stats", "--server", "unix:" + os.path.abspath("missing")).err)

    def test_a_silent_server_is_given_up(self):
        with Fake(always(b"")) as fake:
            matches("no answer for 0.1 s", fake.client.run(1, "stats", "--timeout", "100ms").err)

    def test_a_server_that_closes(self):
        with Fake(always(None)) as fake:
            matches("connection was lost", fake.client.run(1, "stats").err)
            matches("connection was lost", fake.client.run(1, "put", "x").err)
            # Nothing else is said that is not known.
            equal(fake.client.run(1, "history").err.count("\n"), 1)
            matches("connection was lost.*\n.*stopped after line 0", fake.client.run(1, "put", "--lines", stdin=b"a\n").err)

    def test_answers_of_no_protocol_are_refused(self):
        for said in (b"HTTP/1.1 400 Bad Request\n", b"x" * 5000, b"OK 99999999999\r\n", b"OK 3\r\nabcdef\r\n", b"\0\r\n"):
            with Fake(always(said)) as fake:
                matches("not beanstalkd's protocol", fake.client.run(1, "stats").err, said)
        with Fake(always(b"\x1b[2J weird\r\n")) as fake:
            result = fake.client.run(1, "put", "x")
            check("\x1b" not in result.err, result)
            matches("which is not expected", result.err)
        with Fake(always(b"INSERTED\r\n")) as fake:
            matches("lacks a number", fake.client.run(1, "put", "x").err)
        with Fake(always(b"OK 2\r\n{}\r\n")) as fake:
            matches("lacks some of its 60 numbers", fake.client.run(1, "forecast").err)
            equal(fake.client.run(0, "list", "--all").out, "")

    def test_a_list_that_never_ends_is_given_up(self):
        with Fake(always(b'OK 10\r\n{"next":7}\r\n')) as fake:
            fake.client.run(0, "list", "--all")
            equal(fake.lines, ["list-delayed limit=1000", "list-delayed after=7 limit=1000"])

    def test_options_of_put_become_commands(self):
        with Fake(table(put=b"INSERTED 7\r\n", put_key=b"REPLACED 7\r\n", put_at=b"INSERTED 8\r\n", use=b"USING t\r\n",
                        stats_key=b"NOT_FOUND\r\n")) as fake:
            fake.client.run(0, "put", "--tube", "t", "--in", "1m", "--priority", "5", "--run", "2m", "abc")
            equal(fake.lines, ["use t", "put 5 60 120 3"])
            del fake.lines[:]
            fake.client.run(0, "put", "--in", "250ms", "abc")
            equal(fake.lines, ["stats-key weekwheel", "put-key 1024 0.25 60 3 -"])
            del fake.lines[:]
            fake.client.run(0, "put", "--key", "-", "--at", "@1800000000.5", "--every", "1.5s", "--attempts", "3",
                            "--backoff", "10s", "--backoff-max", "1h", "--missed", "skip", "--skip", "1h", "--if-version",
                            "4", "abc")
            equal(fake.lines[1:], ["put-at 1024 1800000000.5 60 3 %2D every=1.5 attempts=3 backoff=10 backoff-max=3600 "
                                   "missed=skip skip=3600 version=4"])

    def test_options_have_limits(self):
        with Fake(table()) as fake:
            for command in (("put",), ("schedule", "add", "n", "@daily")):
                for keep in ("0", "999ms"):
                    matches("--keep '%s'" % keep, fake.client.run(2, *command, "--keep", keep, "x").err)
            matches("--attempts '0'", fake.client.run(2, "schedule", "add", "n", "@daily", "--attempts", "0", "x").err)
            equal(fake.lines, [])
            said = fake.client.run(1, "schedule", "add", "n", "@daily", "--skip", "0", "x").err
            check("--missed" not in said, said)

    def test_modes_of_a_key_become_commands(self):
        with Fake(table(put_key=b"KEPT 7 3\r\n", stats_key=b"NOT_FOUND\r\n")) as fake:
            for words, sent in ((("--if-absent",), "mode=if-absent"), (("--if-version", "0"), "mode=if-absent"),
                                (("--keep-earlier",), "mode=keep-earlier"), (("--keep-later",), "mode=keep-later"),
                                (("--debounce", "1h"), "debounce=3600"), (("--unique", "1.5s"), "unique=1.5")):
                equal(fake.client.run(0, "put", "--key", "k", *words, "x").out, "7 is kept as it is; nothing was put\n")
                equal(fake.lines[-1], "put-key 1024 0 60 1 k " + sent)
                matches("--key, which is missing", fake.client.run(2, "put", *words, "x").err)
            matches("leave all but one out", fake.client.run(2, "put", "--key", "k", "--if-absent", "--unique", "1h", "x").err)
            matches("jobs that run once", fake.client.run(2, "put", "--key", "k", "--every", "1h", "--unique", "1h", "x").err)

    def test_a_body_is_never_taken_for_commands(self):
        # beanstalkd does not know put-key, and would read the body as the next command.
        with Fake(table(put=b"INSERTED 7\r\n")) as fake:
            for option in (("--key", "k"), ("--at", "@1"), ("--every", "1h"), ("--in", "0.5")):
                matches("this server has no keys", fake.client.run(1, "put", *option, "delete 5").err)
                matches("this server has no keys", fake.client.run(1, "put", "--lines", "--attempts", "1", stdin=b"x").err)
            equal(set(fake.lines), {"stats-key weekwheel"})
        with Fake(table(put=b"BAD_FORMAT\r\n")) as fake:
            result = fake.client.run(1, "put", "--lines", stdin=b"one\ntwo\n")
            matches("BAD_FORMAT", result.err)
            matches("stopped after line 1", result.err)

    def test_a_worker_of_beanstalkd(self):
        with Fake(worker(1)) as fake:
            equal(fake.client.run(0, "work", "--tube", "t", "--drain", "cat").out, "body")
            equal(fake.lines, ["stats-key weekwheel", "watch t", "ignore default", "reserve-with-timeout 0", "stats-job 7",
                               "delete 7", "reserve-with-timeout 0"])
        with Fake(worker(20)) as fake:
            fake.client.run(0, "work", "--drain", "--attempts", "0", "false")
            seconds = int(fake.lines[3].removeprefix("release 7 9 "))
            check(2700 <= seconds <= 3600, fake.lines)
        with Fake(worker(10)) as fake:
            matches("buried", fake.client.run(0, "work", "--drain", "false").err)
            equal(fake.lines[3], "bury 7 9")
        with Fake(worker(1)) as fake:
            fake.client.run(0, "work", "--drain", "--release-delay", "0.1", "false")
            equal(fake.lines[3], "release 7 9 1")

    def test_a_worker_of_weekwheeld(self):
        with Fake(own()) as fake:
            equal(fake.client.run(0, "work", "--drain", "--", "sh", "-c", 'echo "$WEEKWHEEL_JOB_KEY"').out, "a b\n")
            equal(fake.lines[1:5], ["headers", "reserve-with-timeout 0", "list-delayed id=7", "delete 7"])
        with Fake(own(key=None)) as fake:
            equal(fake.client.run(0, "work", "--drain", "--", "sh", "-c", 'echo "[$WEEKWHEEL_JOB_KEY]"').out, "[]\n")
        with Fake(own(key="a%00b")) as fake:
            equal(fake.client.run(0, "work", "--drain", "--", "sh", "-c", 'echo "$WEEKWHEEL_JOB_KEY"').out, "a%00b\n")
        with Fake(own(reserves=1)) as fake:
            fake.client.run(0, "work", "--drain", "--", "sh", "-c", "echo 'no luck' >&2; exit 4")
            equal(fake.lines[4], "release-job 7 9 1 exit%20status%204%3A%20no%20luck")
        # If the job has a backoff of its own, the server chooses the delay.
        with Fake(own(backoff=10, attempts=5)) as fake:
            matches("again after its backoff: .*, doubled", fake.client.run(0, "work", "--drain", "false").err)
            equal(fake.lines[4], "release-job 7 9 - exit%20status%201")
        # If the job has a limit of its own, the server knows the last attempt. A kick starts its count anew.
        with Fake(own(backoff=0.5, attempts=2)) as fake:
            fake.client.run(0, "work", "--drain", "false")
            equal(fake.lines[4], "release-job 7 9 - exit%20status%201")
        with Fake(own(backoff=10)) as fake:
            fake.client.run(0, "work", "--drain", "--release-delay", "250ms", "false")
            equal(fake.lines[4], "release-job 7 9 0.25 exit%20status%201")
        with Fake(own(id=8)) as fake:
            process = fake.client.start("work", "--", "touch", "ran")
            matches("no connection; trying again", process.stderr.readline())
            process.terminate()
            process.communicate(timeout=PATIENCE)
            check(not os.path.exists("ran"), "a job that the server does not know any more was run")

    def test_a_job_is_touched_while_its_command_runs(self):
        os.mkfifo("in")
        with Fake(worker(1)) as fake:
            process = fake.client.start("work", "--drain", "-v", "--", "sh", "-c", "read x <in")
            fake.wait(lambda lines: lines.count("touch 7") == 3)
            with open("in", "wb") as go:
                go.write(b"go\n")
            matches("job 7: done", process.communicate(timeout=PATIENCE)[1])
            equal(fake.lines[-2:], ["delete 7", "reserve-with-timeout 0"])

    def test_a_lost_lease_is_reported(self):
        os.mkfifo("in")
        with Fake(worker(1, touch=b"NOT_FOUND\r\n", delete=b"NOT_FOUND\r\n")) as fake:
            process = fake.client.start("work", "--drain", "--", "sh", "-c", "read x <in")
            fake.wait(lambda lines: "touch 7" in lines)
            matches("its time to run cannot be extended any more: it expired, or the job was cancelled or put again", process.stderr.readline())
            with open("in", "wb") as go:
                go.write(b"go\n")
            matches("the server does not have it reserved here any more", process.communicate(timeout=PATIENCE)[1])

    def test_a_worker_reconnects_to_its_server(self):
        known = worker(1)
        broken = []

        def answer(line, lines):
            if line.startswith("reserve") and len(broken) < 2:
                broken.append(line)
                return None
            return known(line, lines)
        with Fake(answer) as fake:
            result = fake.client.run(0, "work", "--drain", "cat")
            equal(result.out, "body")
            matches("no connection; trying again", result.err)

    def test_a_worker_gives_up_a_silent_server(self):
        with Fake(worker(1, delete=b"")) as fake:
            process = fake.client.start("work", "--timeout", "0.1", "--", "true")
            matches("was lost before it was deleted; it will be delivered again", process.stderr.readline())
            matches("no connection; trying again", process.stderr.readline())
            process.terminate()
            process.communicate(timeout=PATIENCE)
            equal(process.returncode, 0)

    def hurried(self):
        """What makes the seconds of a program hundredths."""
        if os.environ.get("SANITIZE"):
            self.skipTest("a sanitizer has to be the first that is loaded")
        return {"LD_PRELOAD": compiled("support/hurried.c", "-shared", "-fPIC")}

    def test_a_server_may_listen_a_moment_later(self):
        preload = self.hurried()["LD_PRELOAD"] + ":" + compiled("support/refused.c", "-shared", "-fPIC")
        with Fake(table(put=b"INSERTED 7\r\n")) as fake:
            equal(fake.client.run(0, "put", "x", LD_PRELOAD=preload, REFUSED="49").out, "7 due now\n")
            matches("Connection refused", fake.client.run(1, "put", "x", LD_PRELOAD=preload, REFUSED="50").err)

    def test_a_worker_asks_again_and_again(self):
        """So it notices a server that answers nothing more, and whose connection stays."""
        said = [b"TIMED_OUT\r\n", b"TIMED_OUT\r\n"]

        def answer(line, lines):
            return said.pop() if line.startswith("reserve") and said else known(line, lines)
        known = table(reserve_with_timeout=b"", watch=b"WATCHING 2\r\n")
        with Fake(answer) as fake:
            process = subprocess.Popen([WEEKWHEEL, "work", "--timeout", "200", "true"], env=fake.client.environment(**self.hurried()),
                                       stderr=subprocess.PIPE, text=True)
            matches("no connection; trying again", process.stderr.readline())
            asked = [line for line in fake.lines if line.startswith("reserve")]
            equal(asked[:3], 3 * ["reserve-with-timeout 30"])
            process.terminate()
            process.communicate(timeout=PATIENCE)
            equal(process.returncode, 0)

    def test_a_worker_comes_before_its_server(self):
        port = free_port()
        client = Program("127.0.0.1:%d" % port)
        for option in ("--no-wait", "--drain"):
            ended = client.run(1, "work", option, "true")
            check("trying again" not in ended.err, ended)
        process = subprocess.Popen([WEEKWHEEL, "work", "--timeout", "200", "true"], stderr=subprocess.PIPE, text=True,
                                   env=client.environment(**self.hurried()))
        matches("Connection refused; start weekwheeld there", process.stderr.readline())
        matches("no connection; trying again", process.stderr.readline())
        for _ in range(3):
            matches("Connection refused", process.stderr.readline())
        with Fake(table(reserve_with_timeout=b"", watch=b"WATCHING 2\r\n"), port) as fake:
            fake.wait(lambda lines: "reserve-with-timeout 30" in lines)
            process.terminate()
            process.communicate(timeout=PATIENCE)
            equal(process.returncode, 0)
        process = client.start("work", "true")
        matches("Connection refused", process.stderr.readline())
        matches("no connection; trying again", process.stderr.readline())
        process.terminate()
        equal(process.communicate(timeout=PATIENCE)[1], "")
        equal(process.returncode, -signal.SIGTERM)
        with Fake(always(b"")) as fake:
            ended = Program("tls:" + fake.client.address).run(1, "work", "--tls-ca", "missing", "true")
            check("trying again" not in ended.err, ended)

    def test_a_worker_whose_token_got_no_answer_goes_on(self):
        """As behind a proxy whose server is away."""
        calls = []

        def answer(line, lines):
            calls.append(line)
            return None if len(calls) < 3 else known(line, lines)
        known = table(auth=b"OK\r\n", reserve_with_timeout=b"", watch=b"WATCHING 2\r\n")
        with Fake(answer) as fake:
            process = subprocess.Popen([WEEKWHEEL, "work", "--timeout", "200", "true"], stderr=subprocess.DEVNULL,
                                       env=fake.client.environment(WEEKWHEEL_TOKEN=20 * "x", **self.hurried()))
            fake.wait(lambda lines: "reserve-with-timeout 30" in lines)
            process.terminate()
            equal(process.wait(PATIENCE), 0)

    def test_many_idle_runners_of_a_silent_server(self):
        """One of them tries to connect at a time, so that the worker hears signals."""
        with Fake(table(reserve_with_timeout=b"", watch=b"WATCHING 2\r\n", ignore=b"WATCHING 1\r\n")) as fake:
            process = subprocess.Popen([WEEKWHEEL, "work", "-n", "20", "--timeout", "200", "--tube", "t", "true"], stderr=subprocess.PIPE, text=True,
                                       env=fake.client.environment(**self.hurried()))
            fake.wait(lambda lines: lines.count("reserve-with-timeout 30") == 20)
            fake.answer = always(b"")
            matches("no connection; trying again", process.stderr.readline())
            seen = len(fake.lines)
            for _ in range(4):
                matches("no answer for 3 min 20 s|no answer for 200 s", process.stderr.readline())
            check(len(fake.lines) - seen <= 6, fake.lines[seen:])
            process.terminate()
            process.communicate(timeout=PATIENCE)
            equal(process.returncode, 0)

    def test_a_body_that_comes_slowly(self):
        """Each piece of an answer gives the rest more time."""
        def answer(line, lines):
            if line.startswith("reserve") and not said:
                said.append(line)
                return b"RESERVED 7 40\r\n"
            return known(line, lines)
        said, known = [], worker(1)
        with Fake(answer) as fake:
            process = subprocess.Popen([WEEKWHEEL, "work", "--timeout", "200", "--tube", "t", "cat"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       env=fake.client.environment(**self.hurried()))
            fake.wait(lambda lines: any(line.startswith("reserve") for line in lines))
            for _ in range(10):
                time.sleep(0.3)
                fake.last.sendall(b"body")
            fake.last.sendall(b"\r\n")
            fake.wait(lambda lines: "delete 7" in lines)
            process.terminate()
            equal(process.communicate(timeout=PATIENCE)[0][:40], 10 * b"body")

    def test_a_report_is_as_long_as_its_bytes(self):
        """Whatever the server says before or after it."""
        for length in ('"report":"YWJj","length":3000', '"length":3000,"report":"YWJj"', '"length":3000,"report":"*"', '"length":3000'):
            run = b'{"id":7,"run":1,"tube":"t","outcome":"finished","attempt":1,"ended":"1",%s}' % length.encode()
            with Fake(table(stats_key=b"NOT_FOUND\r\n", history=b"OK %d\r\n%s\r\n" % (len(run), run))) as fake:
                said = "abc" if "YWJj" in length else ""
                shown = json.loads(fake.client.run(0, "history", "--json").out)
                equal((shown.get("report", ""), shown["length"]), (said, len(said)))
                equal(fake.client.run(0, "history", "--output").out.splitlines()[1:], ["    abc"] if said else [])

    def test_only_what_a_server_says_is_shown(self):
        stats = STATS % 2 + b"age: 10\ndelay: 3\n"
        known = dict(stats_key=b"NOT_FOUND\r\n", peek=b"FOUND 7 3\r\nabc\r\n", stats_job=b"OK %d\r\n%s\r\n" % (len(stats), stats))
        said = {"id": "7", "tube": "default", "state": "reserved", "priority": 9, "delay": 3, "run": 1, "reserves": 2, "length": 3, "body": "abc"}
        with Fake(table(**known)) as fake:
            shown = json.loads(fake.client.run(0, "peek", "--json", "7").out)
            check(shown.pop("created").startswith("20"), shown)
            equal(shown, said)
        with Fake(table(list_delayed=listing(state="ready", left=0, due="5", clock="elapsed"), **known)) as fake:
            shown = json.loads(fake.client.run(0, "peek", "--json", "7").out)
            check(shown.pop("created").startswith("20"), shown)
            equal(shown, dict(said, tube="t", key="a b", state="ready", left=0, clock="elapsed", version=2, run=60, attempts=0))

    def test_a_peek_takes_what_is_said_of_its_job(self):
        for number, has_key in ((7, True), (8, False)):
            with Fake(worker(1, peek=b"FOUND 7 4\r\nbody\r\n", list_delayed=listing(id=number))) as fake:
                equal("a b" in fake.client.run(0, "peek", "7").out, has_key)

    def test_a_due_time_on_elapsed_time_is_that_of_a_delayed_job(self):
        for state, clock, has_due in (("delayed", "elapsed", True), ("ready", "elapsed", False), ("reserved", "elapsed", False),
                                      ("ended", "elapsed", False), ("ready", "wall", True)):
            job = listing(state=state, left=30, due="1800000000", clock=clock)
            with Fake(table(stats_key=b"NOT_FOUND\r\n", list_delayed=job, peek=b"FOUND 7 0\r\n\r\n", stats_job=b"OK 6\r\nid: 7\n\r\n")) as fake:
                for command in (("list", "--limit", "1"), ("peek", "7")):
                    equal("due" in json.loads(fake.client.run(0, *command, "--json").out), has_due, (command, state, clock))

    def test_tubes_are_counted(self):
        with Fake(table(list_tubes=b"OK 14\r\n---\n- default\n\r\n",
                        stats_tube=b"OK 20\r\n---\nname: \"default\"\n\r\n")) as fake:
            matches("^default ", fake.client.run(0, "stats").out)

    def test_a_tube_that_another_client_just_used_is_not_suggested_for_itself(self):
        """The server does not know the tube at the first question, and lists it at the second."""
        for name, hint in ("mail", ""), ("mial", "; did you mean 'mial'[?]"):
            names = b"---\n- default\n- %s\n" % name.encode()
            with Fake(table(list_tubes=b"OK %d\r\n%s\r\n" % (len(names), names), stats_tube=b"NOT_FOUND\r\n")) as fake:
                matches("no tube mail: nobody uses or watches it, and it has no job%s [(]NOT_FOUND[)]" % hint,
                        fake.client.run(1, "pause", "mail", "1m").err)

    def test_top_of_beanstalkd_has_no_wheels(self):
        tube = b"---\nname: default\ncurrent-jobs-ready: 4\n"
        stats = b"---\ncurrent-jobs-ready: 4\nversion: \"1.13\"\nuptime: 7\n"
        with Fake(table(list_tubes=b"OK 14\r\n---\n- default\n\r\n", stats=b"OK %d\r\n%s\r\n" % (len(stats), stats),
                        stats_tube=b"OK %d\r\n%s\r\n" % (len(tube), tube))) as fake:
            frame = fake.client.run(0, "top", "--once").out
            matches("^No wheels: this server does not show when its jobs are due$", frame)
            matches("^default +4 ", frame)
            equal(len(frame.splitlines()), 23)
            known = json.loads(fake.client.run(0, "top", "--json").out)
            equal((known["wheels"], known["oldest"], known["version"], known["uptime"]), (None, None, "1.13", 7))
            equal([(tube["name"], tube["ready"]) for tube in known["tubes"]], [("default", 4)])

    def test_top_asks_for_parts_of_slots(self):
        stats = b"---\ncurrent-jobs-ready: 3\ncurrent-jobs-reserved: 1\n"
        known = table(list_tubes=b"OK 4\r\n---\n\r\n", stats=b"OK %d\r\n%s\r\n" % (len(stats), stats),
                      advance=b"ADVANCED 1796119137\r\n")

        def answer(line, lines):
            if not line.startswith("forecast"):
                return known(line, lines)
            # Overdue jobs count for the first part. One job is due at once, two in the span that ends at 09:59:01.
            count = int(line.split()[2])
            counts = dict(enumerate([7, 0, 0, 0, 2])) if count == 3600 else {0: 5, 9: 2, 40: 4}
            body = json.dumps({"counts": [counts.get(i, 0) for i in range(count)]}).encode()
            return b"OK %d\r\n%s\r\n" % (len(body), body)
        with Fake(answer) as fake:
            lines = fake.client.run(0, "top", "--once", LC_ALL="C").out.splitlines()
            equal(fake.lines[-7:], ["advance 0", "forecast 0.1 600", "forecast 1 3600", "forecast 15 5760", "forecast 60 10080",
                                    "list-limits", "list-schedules"])
            equal(lines[0][:19], "2026-12-01 09:58:57")
            title = next(i for i, line in enumerate(lines) if line.startswith("Overdue"))
            equal(lines[title], "Overdue 3; due in 60 s: 7, 1 h: 5, 1 d: 13, 7 d: 13")
            equal(lines[title + 1], "sec   @" + " " * 55 + "#   max 4")
            # Three are due in tenths of this second, and the count of this second is not used for them.
            equal(lines[title + 3], "min  " + " " * 58 + "@* max 3")


main()
