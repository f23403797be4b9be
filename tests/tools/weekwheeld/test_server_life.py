#!/usr/bin/env python3
"""How weekwheeld starts, what it says when it cannot, what outlives it, and HTTP."""
# tier: check, waits
import json
import os
import resource
import signal
import socket
import stat
import subprocess

from harness import (PATIENCE, WEEK, WEEKWHEELD, Case, Client, Server, conversation, equal, main, matches,
                     need_server, refused, run)


# ---- Restarts

class Restart(Case):
    def test_killed_and_started_again(self):
        data = "jobs"
        with Server("--data", data, "--clock", "virtual") as server:
            with server.client() as a:
                for priority, body in ((9, b"nine"), (1, b"one"), (5, b"five")):
                    a.put(body, priority)
                a.put(b"later", delay=WEEK)
                a.put(b"bury me", tube="t")
                a.ask("use default")
                conversation(a, ("watch t", "WATCHING 2"), ("reserve-job 5", "RESERVED 5 7|bury me"), ("bury-job 5 3 tired", "BURIED"),
                             ("put-key 0 500 60 3 key every=60\r\nkey", "INSERTED 6"), ("reserve", "RESERVED 2 3|one"))
                equal(server.stop(signal.SIGKILL), -signal.SIGKILL)
        with Server("--data", data, "--clock", "virtual:%d" % (WEEK - 100)) as server:
            with server.client() as a:
                conversation(a, ("reserve", "RESERVED 6 3|key"), ("reserve", "RESERVED 2 3|one"),
                             ("reserve", "RESERVED 3 4|five"), ("delete 3", "DELETED"), ("peek-buried", "NOT_FOUND"),
                             ("use t", "USING t"), ("peek-buried", "FOUND 5 7|bury me"), ("watch t", "WATCHING 2"),
                             ("reserve", "RESERVED 1 4|nine"), ("reserve-with-timeout 0", "TIMED_OUT"))
                equal(a.jobs("list-delayed state=buried")[0]["error"], "tired")
                equal(a.numbers("stats-job 4")["state"], "delayed")
                a.ask("advance 101")
                equal(a.numbers("stats-job 4")["state"], "ready")
            equal(server.stop(), 0)

    def test_killed_in_the_middle_of_everything(self):
        data = "jobs"
        there, gone = set(), set()
        for tries in range(6):
            with Server("--data", data, "--sync", "system") as server, server.client() as a:
                # What was acknowledged before the last kill holds.
                for number in there:
                    assert a.ask("peek %d" % number).startswith("FOUND "), number
                for number in gone:
                    equal(a.ask("peek %d" % number), "NOT_FOUND")
                going = sorted(there)[::2]
                a.send("".join("put 0 0 60 5\r\n%05d\r\n" % number for number in range(300)) +
                       "".join("delete %d\r\n" % number for number in going))
                # The test reads that many answers. The others may or may not come.
                for _ in range(50 + 60 * tries):
                    word, *rest = a.line().split()
                    if word == "INSERTED":
                        there.add(int(rest[0]))
                    else:
                        equal(word, "DELETED")
                        there.remove(going[0])
                        gone.add(going.pop(0))
                server.stop(signal.SIGKILL)
                # A delete without an answer may have happened.
                there -= set(going)

    def test_stops_at_a_signal(self):
        data = "jobs"
        for number in (signal.SIGTERM, signal.SIGINT):
            with Server("--data", data) as server, server.client() as a:
                a.send("put 0 0 60 1\r\nx\r\n")
                answer = a.line()
                assert answer.startswith("INSERTED "), answer
                equal(server.stop(number), 0)
                assert a.is_closed()
        with Server("--data", data) as server, server.client() as a:
            equal(a.numbers("stats")["current-jobs-ready"], "2")

    def test_a_start_on_damage_names_the_file_and_the_cure(self):
        with Server("--data", "jobs") as server, server.client() as a:
            a.put()
            server.stop(signal.SIGKILL)
        os.remove("jobs/index.db")
        with self.assertRaises(AssertionError) as refused, Server("--data", "jobs"):
            pass
        matches("jobs: index.db is missing", str(refused.exception))
        matches("weekwheel recover jobs NEW", str(refused.exception))

    def test_a_write_that_fails_has_not_happened(self):
        def full():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            # More than the reserve, and than what a file of the journal is prepared with.
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000000, 5000000))

        with Server("--data", "jobs", before=full) as server, server.client() as a:
            conversation(a, ("put 0 0 60 1\r\nx", "INSERTED 1"), ("reserve", "RESERVED 1 1|x"))
            while a.put(b"y" * 50000).startswith("INSERTED "):
                pass
            before = a.numbers("stats-tube default")
            # The server reads all of this in one turn of its loop.
            server.process.send_signal(signal.SIGSTOP)
            a.send(b"list-tube-used\r\nput 0 0 60 50000\r\n" + b"y" * 50000 +
                   b"\r\nuse t\r\nput 0 0 60 1\r\nx\r\npeek-ready\r\ndelete 99999\r\n")
            server.process.send_signal(signal.SIGCONT)
            answers = [a.line() for _ in range(6)]
            equal(answers[0], "USING default")
            equal(answers[2], "USING t")
            for index in (1, 3):
                assert answers[index] in ("INTERNAL_ERROR", "OUT_OF_MEMORY"), answers
            for index in (4, 5):
                assert answers[index] in ("INTERNAL_ERROR", "OUT_OF_MEMORY", "NOT_FOUND"), answers
            equal(a.ask("stats-tube t").count("total-jobs: 0"), 1)
            after = a.numbers("stats-tube default")
            equal(after, dict(before, **{"current-using": "0"}))
            # The lease still holds.
            conversation(a, ("touch 1", "TOUCHED"), ("delete 1", "DELETED"), ("delete 1", "NOT_FOUND"))


# ---- HTTP

class Http(Case):
    def test_http(self):
        with Server("--clock", "virtual", "--http", "127.0.0.1:0") as server, server.client() as a:
            for number in range(3):
                a.ask("put-key 5 %d 60 1 k%%20%d\r\nx" % (30 + 60 * number, number))
            a.put(tube="t")
            a.send("reserve\r\n")
            equal(server.get("/healthz"), (200, "ok\n"))
            metrics = server.metrics()
            for line in ('weekwheeld_tube_jobs{tube="default",state="delayed"} 3', 'weekwheeld_tube_jobs{tube="t",state="ready"} 1',
                         'weekwheeld_commands_total{command="put-key"} 3', "weekwheeld_jobs_put_total 4"):
                assert line in metrics, line
            query = "?tube=default&prefix=k%201&limit=10&body=true"
            status, text = server.get("/list" + query)
            equal((status, [job["key"] for job in json.loads(text)["jobs"]]), (200, ["k 1"]))
            equal(server.get("/v1/jobs" + query), (status, text))
            equal(json.loads(server.get("/forecast?span=60&count=4")[1]), {"span": 60, "counts": [2, 1, 1, 0], "pace": 0})
            for path, status in (("/list?limit=5000", 400), ("/list?tube=a%20b", 404), ("/forecast?span=x", 400), ("/nothing", 404)):
                equal(server.get(path)[0], status)
            equal(server.get("/list", "DELETE")[0], 405)
            # A job is reserved 3 seconds after its due time, released, and reserved again.
            with server.client() as b:
                b.put(tube="late", delay=10)
                b.ask("watch late")
                b.ask("ignore default")
                b.ask("advance 13")
                for _ in range(2):
                    equal(b.ask("release %s 0 0" % b.ask("reserve").split()[1]), "RELEASED")
            name = "weekwheeld_job_delivery_delay_seconds"
            count = next(int(line.split()[-1]) for line in server.metrics() if line.startswith(name + "_count"))
            for line in (name + '_bucket{le="2.5"} %d' % (count - 1), name + '_bucket{le="5"} %d' % count,
                         name + "_sum 3.000000000"):
                assert line in server.metrics(), (line, server.metrics())
            equal(server.stop(), 0)


# ---- How it is started

class Start(Case):
    def test_reasons_not_to_start(self):
        data = "jobs"
        with Server("--data", data) as server:
            assert "in use by another server" in refused("--data", data, status=1)
            assert "is in use: end the server there" in run(1, WEEKWHEELD, "--memory", "--listen", server.address).err
        assert "did you mean '--memory'?" in refused("--memry")
        with open(os.path.join(data, "index.db"), "r+b") as file:
            file.write(b"\xff" * 16384)
        assert "damaged" in refused("--data", data, status=1)
        os.mkdir("former")
        with open(os.path.join("former", "data.mdb"), "w"):
            pass
        said = refused("--data", "former", status=1)
        assert "another version" in said and "weekwheel export" in said and "weekwheel import" in said, said
        equal(os.listdir("former"), ["data.mdb"])

    def test_help_and_version(self):
        need_server()
        done = run(0, WEEKWHEELD, "--help")
        assert "Example" in done.out and not done.err, done
        assert run(0, WEEKWHEELD, "--version").out.startswith("weekwheeld ")

    def test_configuration_file(self):
        path = "conf"
        with open(path, "w") as file:
            file.write("# a comment\n\nmemory\nmax-job-size = 3\n  clock=virtual  \n")
        with Server("--config", path) as server, server.client() as a:
            conversation(a, ("put 0 0 0 4\r\nabcd", "JOB_TOO_BIG"))
            assert a.ask("advance 1").startswith("ADVANCED ")
        with open(path, "w") as file:
            file.write("memory\nmax-jobsize = 3\n")
        said = refused("--config", path)
        assert "line 2 of " + path in said and "did you mean '--max-job-size'?" in said, said

    def test_unix_socket(self):
        path = "socket"
        for _ in range(2):
            with Server("--unix", path) as server:
                server.client().ask("stats")
                equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(path)
                with Client(connection) as a:
                    equal(a.put(), "INSERTED 1")
                    assert "is in use" in refused("--memory", "--unix", path, status=1)
                # The socket of a killed server is replaced.
                server.stop(signal.SIGKILL)
        with open("file", "w"):
            pass
        assert "is not a socket" in refused("--memory", "--unix", "file", status=1)
        assert "its folder" in refused("--memory", "--unix", "none/socket", status=1)

    def test_sockets_of_systemd(self):
        need_server()
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            # LISTEN_PID must be the server's own, so a shell sets it and becomes the server.
            process = subprocess.Popen(
                ["sh", "-c", 'exec 3<&%d; LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" --memory' % listener.fileno(), WEEKWHEELD],
                pass_fds=[listener.fileno()], stderr=subprocess.PIPE, text=True)
            with Client(socket.create_connection(listener.getsockname(), PATIENCE)) as a:
                equal(a.put(), "INSERTED 1")
            process.terminate()
            said = process.communicate(timeout=PATIENCE)[1]
            equal(process.returncode, 0)
            assert "listening on 127.0.0.1:%d" % listener.getsockname()[1] in said, said


main()
