#!/usr/bin/env python3
"""What weekwheeld answers to its clients, in whatever pieces their bytes come.

Time is that of a virtual clock wherever it matters. No test waits for time to pass.
"""
# tier: check
import json
import os
import signal
import socket

from harness import PATIENCE, WEEK, Case, Server, conversation, equal, main, matches, until


# ---- Commands of beanstalkd

class Commands(Case):
    def test_a_job_lives(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            conversation(a, ("put 5 0 60 5\r\nhello", "INSERTED 1"), ("peek 1", "FOUND 1 5|hello"),
                         ("peek-ready", "FOUND 1 5|hello"), ("reserve", "RESERVED 1 5|hello"), ("touch 1", "TOUCHED"),
                         ("peek-ready", "NOT_FOUND"), ("release 1 7 10", "RELEASED"), ("peek-delayed", "FOUND 1 5|hello"),
                         ("kick 5", "KICKED 1"), ("reserve-job 1", "RESERVED 1 5|hello"), ("bury 1 9", "BURIED"),
                         ("peek-buried", "FOUND 1 5|hello"), ("kick-job 1", "KICKED"), ("kick-job 1", "NOT_FOUND"),
                         ("kick 1", "KICKED 0"))
            numbers = a.numbers("stats-job 1")
            equal([numbers[name] for name in ("pri", "reserves", "releases", "buries", "kicks", "state", "delay", "ttr")],
                  ["9", "2", "1", "1", "2", "ready", "10", "60"])
            conversation(a, ("delete 1", "DELETED"), ("delete 1", "NOT_FOUND"), ("peek 1", "NOT_FOUND"),
                         ("stats-job 1", "NOT_FOUND"), ("reserve-with-timeout 0", "TIMED_OUT"))

    def test_tubes_are_named_and_forgotten(self):
        with Server() as server, server.client() as a, server.client() as b:
            conversation(a, ("list-tube-used", "USING default"), ("use t", "USING t"), ("watch u", "WATCHING 2"),
                         ("watch u", "WATCHING 2"), ("watch v", "WATCHING 3"),
                         ("list-tubes-watched", "OK 22|---\n- default\n- u\n- v\n"), ("ignore default", "WATCHING 2"),
                         ("list-tubes-watched", "OK 12|---\n- v\n- u\n"), ("ignore nix", "WATCHING 2"),
                         ("ignore v", "WATCHING 1"), ("ignore u", "NOT_IGNORED"),
                         ("list-tubes", "OK 22|---\n- default\n- t\n- u\n"), ("stats-tube nix", "NOT_FOUND"))
            equal(a.numbers("stats-tube t")["current-using"], "1")
            a.close()
            until(lambda: b.ask("list-tubes") == "OK 14|---\n- default\n", "the tubes are forgotten")

    def test_errors(self):
        with Server("--max-job-size", "10") as server, server.client() as a:
            conversation(a, ("nix", "UNKNOWN_COMMAND"), ("", "UNKNOWN_COMMAND"), ("delete x", "BAD_FORMAT"),
                         ("use -x", "BAD_FORMAT"), ("put 0 0 0 11\r\nquit\r\nquit\r", "JOB_TOO_BIG"),
                         ("put 0 0 0 12\r\n0123456789ab", "JOB_TOO_BIG"), (b"put 0 0 0 2\r\nabcd", "EXPECTED_CRLF"),
                         ("put 0 99999999999 0 4\r\nquit", "BAD_FORMAT"), ("put 4294967296 0 0 4\r\nquit", "BAD_FORMAT"),
                         ("put 0 0 99999999999 4\r\nquit", "BAD_FORMAT"), ("x" * 300, "BAD_FORMAT"),
                         ("x" * 9000, "BAD_FORMAT"), ("use x\0y", "BAD_FORMAT"), ("touch 1", "NOT_FOUND"),
                         ("release 1 1 1", "NOT_FOUND"), ("bury 1 1", "NOT_FOUND"), ("reserve-job 1", "NOT_FOUND"),
                         ("reserve-job 0", "NOT_FOUND"), ("delete 0", "NOT_FOUND"), ("peek 0", "NOT_FOUND"),
                         ("pause-tube nix 1", "NOT_FOUND"), ("advance 5", "UNKNOWN_COMMAND"), ("put 0 0 0 0\r\n", "INSERTED 1"))

    def test_a_body_of_unknown_length_ends_the_connection(self):
        with Server() as server:
            for size, answer in (("+4", "BAD_FORMAT"), ("0x4", "BAD_FORMAT"), ("", "BAD_FORMAT"), ("4 4", "BAD_FORMAT"),
                                 ("4" + 250 * " ", None), (" " * 3000 + "4", "BAD_FORMAT"), ("9" * 20, "JOB_TOO_BIG")):
                with server.client() as a:
                    a.send(f"put 0 0 60 {size}\r\nput 0 0 60 4\r\nquit\r\n".encode())
                    if answer:
                        equal((a.line(), a.socket.recv(100)), (answer, b""))
                    else:
                        # The size is there, however long the line is: what follows it is no command either.
                        equal(a.line(), "BAD_FORMAT")
            with server.client() as a:
                conversation(a, ("put 0 0 60 +4", "BAD_FORMAT"))
                equal(a.socket.recv(100), b"")
            with server.client() as a:
                equal((a.numbers("stats")["total-jobs"], a.numbers("stats")["cmd-put"]), ("0", "1"))
            line = server.process.stderr.readline()
            matches("clients that do not say how long a body is are closed, as it would be taken for commands; the first came from 127", line)

    def test_another_clients_job_is_not_found(self):
        with Server() as server, server.client() as a, server.client() as b:
            a.put(b"x")
            equal(a.ask("reserve"), "RESERVED 1 1|x")
            for line in ("delete 1", "release 1 0 0", "bury 1 0", "touch 1", "reserve-job 1", "kick-job 1"):
                equal(b.ask(line), "NOT_FOUND")
            equal(a.ask("delete 1"), "DELETED")

    def test_ready_jobs_come_by_priority_then_by_age(self):
        with Server() as server, server.client() as a:
            for priority, body in ((9, b"c"), (5, b"a"), (5, b"b"), (4294967295, b"d")):
                a.put(body, priority)
            equal([a.ask("reserve")[-1] for _ in range(4)], ["a", "b", "c", "d"])

    def test_waiting_clients_are_served_in_their_order(self):
        with Server() as server, server.client() as a:
            waiting = [server.client() for _ in range(5)]
            for number, client in enumerate(waiting):
                client.send("watch t\r\nreserve\r\n")
                equal(client.line(), "WATCHING 2")
                a.until_waiting(number + 1)
            a.send("use t\r\n" + "".join("put 0 0 60 1\r\n%d\r\n" % number for number in range(5)))
            for number, client in enumerate(waiting):
                equal(client.answer(), "RESERVED %d 1|%d" % (number + 1, number))
                client.close()

    def test_jobs_of_a_client_that_goes_are_released(self):
        with Server() as server, server.client() as a, server.client() as b:
            a.put(b"x", priority=77)
            equal(a.ask("reserve"), "RESERVED 1 1|x")
            b.send("reserve\r\n")
            a.close()
            equal(b.answer(), "RESERVED 1 1|x")
            equal(b.numbers("stats-job 1")["pri"], "77")

    def test_time_to_run(self):
        with Server("--clock", "virtual") as server, server.client() as a, server.client() as b:
            a.put(b"x", ttr=10)
            equal(a.ask("reserve"), "RESERVED 1 1|x")
            a.send("reserve-with-timeout 100\r\n")
            b.until_waiting()
            b.ask("advance 8.5")
            equal(b.numbers("stats")["current-waiting"], "1")
            b.ask("advance 0.6")
            equal(a.line(), "DEADLINE_SOON")
            conversation(a, ("reserve", "DEADLINE_SOON"), ("touch 1", "TOUCHED"))
            b.ask("advance 10")
            conversation(b, ("reserve", "RESERVED 1 1|x"))
            conversation(a, ("delete 1", "NOT_FOUND"), ("release 1 0 0", "NOT_FOUND"))
            equal(b.numbers("stats")["job-timeouts"], "1")
            equal(b.numbers("stats-job 1")["timeouts"], "1")
            conversation(b, ("delete 1", "DELETED"))

    def test_timeout_of_a_reserve(self):
        with Server("--clock", "virtual") as server, server.client() as a, server.client() as b:
            a.send("reserve-with-timeout 3\r\nstats-tube nix\r\n")
            b.until_waiting()
            b.ask("advance 2.9")
            equal(b.numbers("stats")["current-waiting"], "1")
            b.ask("advance 0.2")
            equal(a.line(), "TIMED_OUT")
            equal(a.line(), "NOT_FOUND")

    def test_pause(self):
        with Server("--clock", "virtual") as server, server.client() as a, server.client() as b:
            conversation(a, ("use p", "USING p"), ("watch p", "WATCHING 2"), ("pause-tube p 100", "PAUSED"))
            a.put(b"x")
            a.send("reserve\r\n")
            b.until_stats("current-waiting", 1, "stats-tube p")
            numbers = b.numbers("stats-tube p")
            equal([numbers["pause"], numbers["pause-time-left"], numbers["cmd-pause-tube"]], ["100", "100", "1"])
            b.ask("advance 99")
            equal(b.numbers("stats-tube p")["current-waiting"], "1")
            b.ask("advance 1.1")
            equal(a.answer(), "RESERVED 1 1|x")

    def test_a_pause_of_no_seconds_ends_at_once_and_is_counted(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            conversation(a, ("use p", "USING p"), ("watch p", "WATCHING 2"), ("pause-tube p 0", "PAUSED"), ("pause-tube p 0", "PAUSED"))
            a.put(b"x")
            conversation(a, ("reserve-with-timeout 0", "RESERVED 1 1|x"), ("release 1 0 0", "RELEASED"), ("pause-tube p 50", "PAUSED"),
                         ("reserve-with-timeout 0", "TIMED_OUT"), ("pause-tube p 0", "PAUSED"),
                         ("reserve-with-timeout 0", "RESERVED 1 1|x"))
            # Nobody uses or watches the tube for a while, but its job keeps it.
            conversation(a, ("use default", "USING default"), ("ignore p", "WATCHING 1"))
            equal(a.numbers("stats-tube p")["cmd-pause-tube"], "4")

    def test_stats_have_the_names_that_beanstalkd_gives(self):
        with Server() as server, server.client() as a:
            names = list(a.numbers("stats"))
            equal(names[:5], ["current-jobs-" + state for state in ("urgent", "ready", "reserved", "delayed", "buried")])
            equal([name for name in names if name.startswith("cmd-")],
                  ["cmd-" + verb for verb in (
                      "put", "peek", "peek-ready", "peek-delayed", "peek-buried", "reserve", "reserve-with-timeout",
                      "delete", "release", "use", "watch", "ignore", "bury", "kick", "touch", "stats", "stats-job",
                      "stats-tube", "list-tubes", "list-tube-used", "list-tubes-watched", "pause-tube")])
            equal(names[27:], ["job-timeouts", "total-jobs", "max-job-size", "current-tubes", "current-connections",
                               "current-producers", "current-workers", "current-waiting", "total-connections", "pid",
                               "version", "rusage-utime", "rusage-stime", "uptime", "binlog-oldest-index",
                               "binlog-current-index", "binlog-records-migrated", "binlog-records-written",
                               "binlog-max-size", "draining", "id", "hostname", "os", "platform",
                               "oldest-ready"])
            a.put(b"x", priority=1023)
            a.put(b"x", priority=1024)
            numbers = a.numbers("stats")
            equal([numbers[name] for name in ("current-jobs-urgent", "current-jobs-ready", "cmd-put", "total-jobs",
                                              "current-producers", "current-workers", "max-job-size", "pid")],
                  ["1", "2", "2", "2", "1", "0", "65535", str(server.process.pid)])

    def test_tubes_are_counted_and_watched_once(self):
        with Server() as server, server.client() as a, server.client() as b:
            conversation(a, ("watch v", "WATCHING 2"), ("watch w", "WATCHING 3"), ("watch v", "WATCHING 3"),
                         ("ignore default", "WATCHING 2"),
                         # The last one has taken its place.
                         ("list-tubes-watched", "OK 12|---\n- w\n- v\n"), ("ignore w", "WATCHING 1"),
                         ("list-tubes-watched", "OK 8|---\n- v\n"), ("watch w", "WATCHING 2"))
            conversation(b, ("ignore w", "WATCHING 1"), ("use u", "USING u"))
            # v, w and default without jobs, u with one, and one that no client names.
            b.put(b"x")
            conversation(b, ("use x", "USING x"))
            b.put(b"x")
            conversation(b, ("use u", "USING u"))
            equal(b.numbers("stats")["current-tubes"], "5")

    def test_draining(self):
        with Server() as server, server.client() as a:
            equal(a.put(), "INSERTED 1")
            server.process.send_signal(signal.SIGUSR1)
            a.until_stats("draining", "true")
            conversation(a, ("put 0 0 0 4\r\nquit", "DRAINING"), (b"put 0 0 0 1\r\nabc", "EXPECTED_CRLF"))


# ---- Bytes in any pieces

class Bytes(Case):
    def test_every_split(self):
        text = b"put 1 0 60 4\r\nbo\r\n\r\nreserve\r\npeek-buried\r\nput 9999999999 0 0 4\r\nquit\r\nstats-job 0\r\n"
        with Server() as server, server.client() as a:
            a.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for cut in range(1, len(text)):
                a.send(text[:cut])
                a.send(text[cut:])
                equal([a.answer() for _ in range(5)], ["INSERTED %d" % cut, "RESERVED %d 4|bo\r\n" % cut, "NOT_FOUND",
                                                       "BAD_FORMAT", "NOT_FOUND"])
                equal(a.ask("delete %d" % cut), "DELETED")

    def test_byte_for_byte(self):
        with Server() as server, server.client() as a:
            a.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in b"put 1 0 60 4\r\nbody\r\nreserve\r\n":
                a.send(bytes([byte]))
            equal(a.answer(), "INSERTED 1")
            equal(a.answer(), "RESERVED 1 4|body")

    def test_pipelined(self):
        count = 5000
        with Server() as server, server.client() as a:
            a.send(b"".join(b"put 0 0 60 6\r\n%06d\r\n" % number for number in range(count)))
            for number in range(count):
                equal(a.line(), "INSERTED %d" % (number + 1))
            a.send("reserve\r\n" * count)
            for number in range(count):
                equal(a.answer(), "RESERVED %d 6|%06d" % (number + 1, number))
            a.send("".join("delete %d\r\n" % (number + 1) for number in range(count)) + "reserve-with-timeout 0\r\n")
            for number in range(count):
                equal(a.line(), "DELETED")
            equal(a.line(), "TIMED_OUT")

    def test_half_closed(self):
        with Server() as server, server.client() as a, server.client() as b, server.client() as c:
            a.send("put 0 0 60 1\r\nx\r\nreserve\r\nreserve\r\nstats-job 7\r\n")
            a.socket.shutdown(socket.SHUT_WR)
            equal([a.answer() for _ in range(4)], ["INSERTED 1", "RESERVED 1 1|x", "TIMED_OUT", "NOT_FOUND"])
            assert a.is_closed()
            b.send("reserve-with-timeout 0\r\n")
            equal(b.answer(), "RESERVED 1 1|x")
            c.send("reserve\r\n")
            b.until_waiting()
            c.socket.shutdown(socket.SHUT_WR)
            equal(c.line(), "TIMED_OUT")
            assert c.is_closed()

    def test_quit(self):
        with Server() as server, server.client() as a:
            a.send("put 0 0 60 1\r\nx\r\nquit\r\nput 0 0 60 1\r\ny\r\n")
            equal(a.line(), "INSERTED 1")
            assert a.is_closed()
            with server.client() as b:
                equal(b.numbers("stats")["total-jobs"], "1")

    def test_a_client_that_never_reads(self):
        with Server("--max-output", "65536") as server, server.client() as a, server.client() as b:
            equal(a.put(b"x" * 60000), "INSERTED 1")
            a.socket.setblocking(False)
            sent = 0
            try:
                while sent < 1 << 26:
                    sent += a.socket.send(b"peek 1\r\n" * 4096)
            except BlockingIOError:
                pass
            # The server reads no more than it can answer, and goes on with other clients.
            assert sent < 1 << 26
            equal(b.ask("stats-job 9"), "NOT_FOUND")
            with open("/proc/%d/statm" % server.process.pid) as file:
                assert int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") < 1 << 27
            # When the client reads at last, all answers come.
            a.socket.setblocking(True)
            a.socket.settimeout(PATIENCE)
            for _ in range(min(sent // 8, 500)):
                equal(len(a.answer()), len("FOUND 1 60000|") + 60000)

    def test_a_slow_body(self):
        with Server("--max-job-size", "10000000") as server, server.client() as a, server.client() as b:
            body = bytes(range(256)) * 20000
            a.send(b"put 0 0 60 %d\r\n" % len(body))
            a.send(body[:1000])
            equal(b.ask("stats-job 9"), "NOT_FOUND")
            a.send(body[1000:] + b"\r\n")
            equal(a.line(), "INSERTED 1")
            b.send("reserve\r\n")
            equal(b.line(), "RESERVED 1 %d" % len(body))
            assert b.block(len(body)) == body

    def test_limit_on_connections(self):
        with Server("--max-connections", "2") as server, server.client() as a, server.client() as b:
            equal(a.ask("list-tube-used"), "USING default")
            equal(b.ask("list-tube-used"), "USING default")
            with server.client() as c:
                assert c.is_closed()
            b.close()
            a.until_stats("current-connections", 1)
            with server.client() as c:
                equal(c.ask("list-tube-used"), "USING default")


# ---- Commands of our own

class OwnCommands(Case):
    def test_keys(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            conversation(a, ("put-key 1 60 30 1 a%20b\r\nx", "INSERTED 1"), ("put-key 1 90.5 30 1 a%20b version=1\r\ny", "REPLACED 1"),
                         ("put-key 1 90 30 1 a%20b version=1\r\nz", "STALE"), ("put-key 1 90 30 1 - \r\nz", "BAD_FORMAT"),
                         ("peek-key a%20b", "FOUND 1 1|y"), ("peek-key b", "NOT_FOUND"), ("move-key a%20b 10", "MOVED 3"),
                         ("move 1 10 version=2", "STALE"), ("move 1 5 version=3", "MOVED 4"), ("move 9 5", "NOT_FOUND"))
            equal(a.numbers("stats-key a%20b")["time-left"], "5")
            a.ask("advance 5")
            conversation(a, ("reserve-with-timeout 0", "RESERVED 1 1|y"), ("move-key a%20b 1", "RESERVED"),
                         ("delete-key a%20b", "RUNNING"), ("delete-key a%20b", "NOT_FOUND"), ("delete 1", "NOT_FOUND"),
                         ("put-key 0 0 1 1 -\r\nx", "INSERTED 2"), ("put-key 0 0 1 1 %2D\r\nx", "INSERTED 3"),
                         ("delete-key %2D version=7", "STALE"), ("delete-key %2D", "DELETED"))

    def test_modes_of_a_key(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            conversation(a, ("put-key 1 60 30 1 k mode=if-absent\r\nx", "INSERTED 1 1"), ("put-key 1 5 30 1 k version=0\r\ny", "KEPT 1 1"),
                         ("put-key 1 50 30 1 k mode=keep-later\r\ny", "KEPT 1 1"), ("peek-key k", "FOUND 1 1|x"),
                         ("put-key 1 50 30 1 k mode=keep-earlier\r\nz", "REPLACED 1 2"), ("peek-key k", "FOUND 1 1|z"),
                         ("put-key 1 0 30 1 - mode=if-absent\r\nx", "BAD_FORMAT"),
                         ("put-key 1 0 30 1 k unique=0\r\nx", "BAD_FORMAT"),
                         ("put-key 1 0 30 1 k every=9 unique=9\r\nx", "BAD_FORMAT"),
                         ("put-key 1 0 30 1 k mode=if-absent version=5\r\nx", "BAD_FORMAT"))
            equal(a.numbers("stats")["total-jobs"], "2")

    def test_debounce(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            conversation(a, ("put-key 1 10 30 1 k debounce=15\r\nx", "INSERTED 1 1"), ("put-key 1 9 30 1 k debounce=15\r\nx", "REPLACED 1 2"))
            a.ask("advance 8")
            equal(a.ask("put-key 1 10 30 1 k debounce=15\r\ny"), "REPLACED 1 3")
            equal([(job["left"], job["debounced"]) for job in a.jobs("list-delayed")], [(7, 8)])
            a.ask("advance 7")
            equal(a.ask("reserve"), "RESERVED 1 1|y")

    def test_a_unique_job_after_its_end(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            conversation(a, ("put-key 1 0 30 1 k unique=60\r\nx", "INSERTED 1 1"))
            equal([job["unique"] for job in a.jobs("list-delayed")], [60])
            conversation(a, ("reserve", "RESERVED 1 1|x"), ("delete 1", "DELETED"), ("put-key 1 0 30 1 k unique=60\r\nx", "ENDED 1 1"),
                         ("put-key 1 0 30 1 k\r\nx", "ENDED 1 1"), ("peek 1", "NOT_FOUND"), ("delete 1", "NOT_FOUND"))
            equal(a.jobs("list-delayed"), [])
            equal([(job["id"], job["state"], job["left"]) for job in a.jobs("list-delayed state=ended")], [(1, "ended", 60)])
            a.ask("advance 59")
            equal(a.ask("put-key 1 0 30 1 k\r\nx"), "ENDED 1 1")
            a.ask("advance 1")
            conversation(a, ("put-key 1 0 30 1 k unique=60\r\nx", "INSERTED 2 1"), ("reserve", "RESERVED 2 1|x"), ("delete 2", "DELETED"),
                         ("delete-key k", "DELETED"), ("put-key 1 0 30 1 k\r\nx", "INSERTED 3"))

    def test_backoff_and_last_attempt(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            equal(a.ask("put-key 1 0 30 1 - attempts=2 backoff=100\r\nx"), "INSERTED 1")
            conversation(a, ("reserve", "RESERVED 1 1|x"), ("release-job 1 1 - no%20luck", "RELEASED"),
                         ("reserve-with-timeout 0", "TIMED_OUT"))
            job = a.jobs("list-delayed")[0]
            equal((job["error"], job["state"], job["releases"]), ("no luck", "delayed", 1))
            assert 75 <= job["left"] <= 100, job
            a.ask("advance 101")
            conversation(a, ("reserve-with-timeout 0", "RESERVED 1 1|x"), ("release-job 1 1 - never%0A%22mind%22", "BURIED"))
            job = a.jobs("list-delayed state=buried")[0]
            equal((job["error"], job["state"]), ('never\n"mind"', "buried"))
            conversation(a, ("kick 1", "KICKED 1"), ("reserve", "RESERVED 1 1|x"), ("bury-job 1 5 why", "BURIED"))

    def test_a_reason_of_any_bytes_is_listed_as_json(self):
        """Overlong forms, a surrogate, a code above U+10FFFF, half a character, and a good one."""
        reasons = {"%E0%80%80": 3, "%C0%AF": 2, "%ED%A0%80": 3, "%F4%90%80%80": 4, "%F0%80%80%80": 4, "%E2%82": 2,
                   "%F0%9F%98%80%FF": "\U0001f600\ufffd", "%7F%22": "\x7f\""}
        with Server("--clock", "virtual") as server, server.client() as a:
            equal(a.ask("put-key 1 0 30 1 -\r\nx"), "INSERTED 1")
            for reason, error in reasons.items():
                equal(a.ask("reserve"), "RESERVED 1 1|x")
                equal(a.ask("release-job 1 1 0 " + reason), "RELEASED")
                error = "\ufffd" * error if isinstance(error, int) else error
                equal([job["error"] for job in a.jobs("list-delayed")], [error])

    def test_a_worker_that_is_gone_has_failed(self):
        """A job on which workers die must not kill one worker after the other."""
        with Server("--clock", "virtual") as server, server.client() as a:
            equal(a.ask("put-key 1 0 30 1 - attempts=2 backoff=100\r\nx"), "INSERTED 1")
            for attempt in range(2):
                with server.client() as worker:
                    equal(worker.ask("reserve"), "RESERVED 1 1|x")
                a.until_stats("current-jobs-reserved", 0)
                equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")
                job = a.jobs("list-delayed")[0]
                equal((job["state"], job["error"]), (("delayed", "buried")[attempt], "the connection was closed"))
                a.ask("advance 101")

    def test_wall_time_and_periods(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            now = int(a.ask("advance 0").split()[1])
            equal(a.ask("put-at 0 %d 30 1 k every=60 missed=all\r\nx" % (now + 30)), "INSERTED 1")
            a.ask("advance 29")
            equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")
            a.ask("advance 1")
            conversation(a, ("reserve-with-timeout 0", "RESERVED 1 1|x"), ("delete 1", "DELETED"),
                         ("reserve-with-timeout 0", "TIMED_OUT"))
            job = a.jobs("list-delayed")[0]
            equal((job["clock"], job["due"], job["every"], job["key"]), ("wall", str(now + 90), 60, "k"))
            a.ask("advance 180")
            for _ in range(3):
                conversation(a, ("reserve-with-timeout 0", "RESERVED 1 1|x"), ("delete 1", "DELETED"))
            conversation(a, ("reserve-with-timeout 0", "TIMED_OUT"), ("delete-key k", "DELETED"))

    def test_lists_and_forecasts(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            for number in range(25):
                equal(a.ask("put-key 0 %d 60 2 k%d\r\n%02d" % (60 * number + 30, number, number)), "INSERTED %d" % (number + 1))
            a.put(b"other", delay=10, tube="t")
            equal([len(a.jobs("list-delayed " + what)) for what in (
                "tube=t", "tube=default prefix=k1", "state=ready", "state=delayed,ready limit=5")], [1, 11, 0, 6])
            seen, after = [], 0
            while after is not None:
                page = a.jobs("list-delayed limit=7 body=yes after=%d" % after)
                after = page.pop()["next"] if "next" in page[-1] else None
                seen += [job["id"] for job in page]
            equal(seen, list(range(1, 27)))
            equal([(job["id"], job["key"], job["body"]) for job in a.jobs("list-delayed id=7 body=yes")], [(7, "k6", "MDY=")])
            equal((a.jobs("list-delayed id=999"), a.ask("list-delayed id=x")), ([], "BAD_FORMAT"))
            equal(json.loads(a.ask("forecast 60 3 tube=default").split("|")[1]), {"span": 60, "counts": [1, 1, 1]})
            equal(json.loads(a.ask("forecast 600 3").split("|")[1]), {"span": 600, "counts": [11, 10, 5]})

    def test_a_virtual_week(self):
        with Server("--clock", "virtual") as server, server.client() as a:
            now = int(a.ask("advance 0").split()[1])
            equal(a.put(b"week", delay=WEEK), "INSERTED 1")
            equal(a.put(b"half a year", delay=26 * WEEK), "INSERTED 2")
            equal(a.ask("advance %d" % (WEEK - 1)), "ADVANCED %d" % (now + WEEK - 1))
            equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")
            a.ask("advance 1")
            equal(a.ask("reserve-with-timeout 0"), "RESERVED 1 4|week")
            a.ask("delete 1")
            a.ask("advance %d" % (25 * WEEK - 1))
            equal(a.ask("reserve-with-timeout 0"), "TIMED_OUT")
            a.ask("advance 1")
            equal(a.ask("reserve-with-timeout 0"), "RESERVED 2 11|half a year")


main()
