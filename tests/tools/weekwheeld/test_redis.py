#!/usr/bin/env python3
"""Several weekwheelds that have their jobs in one Redis: each sees what the others do, and jobs outlive a server or a
Redis that is killed."""
# tier: check, waits, threads
import contextlib
import os
import re
import signal
import socket
import struct
import threading
import time
import unittest
from random import Random

from harness import (PATIENCE, Case, Cluster, Redis, Server, compiled, conversation, equal, free_port, main, objects, refused, seed,
                     until)
from web import Web, token_of


def reserved(client, wait=10):
    """The id of the next job, and its body."""
    answer = client.ask("reserve-with-timeout %d" % wait)
    assert answer.startswith("RESERVED "), answer
    head, body = answer.split("|", 1)
    return int(head.split()[1]), body


def state(client, number):
    answer = client.ask("stats-job %d" % number)
    return answer if answer == "NOT_FOUND" else re.search(r"^state: (\w+)$", answer, re.M).group(1)


def refuses(server):
    try:
        server.client().close()
    except OSError:
        return True
    return False


def inserted(answer):
    assert answer.startswith("INSERTED "), answer
    return int(answer.split()[1])


def scripts(redis):
    """How many Redis has run."""
    found = re.search(r"cmdstat_evalsha:calls=(\d+)", redis.ask("INFO", "commandstats"))
    return int(found.group(1)) if found else 0


class Stopped:
    """A server that stops when one of its threads has something for its loop."""

    def __init__(self, redis, *arguments):
        self.file = os.path.abspath("stop")
        self.server = redis.server(*arguments, WW_STOP=self.file,
                                   LD_PRELOAD=compiled("support/stopped.c", "-shared", "-fPIC", "-ldl"))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.server.__exit__(*error)

    def has_stopped(self):
        with open(f"/proc/{self.server.process.pid}/stat", encoding="utf-8") as stat:
            return not os.path.exists(self.file) and stat.read().split(") ")[1][0] == "T"

    def stop(self):
        open(self.file, "w", encoding="utf-8").close()

    @contextlib.contextmanager
    def having(self, other, number):
        """The block makes it reserve that job. Then the client of another server gets and deletes the job, and it goes on."""
        self.stop()
        yield
        try:
            while True:
                until(self.has_stopped, "it has stopped")
                if state(other, number) == "reserved":
                    break
                # It was about something else.
                self.stop()
                self.server.process.send_signal(signal.SIGCONT)
            until(lambda: other.ask("reserve-job %d" % number) != "NOT_FOUND", "its lease has ended")
            equal(other.ask("delete %d" % number), "DELETED")
        finally:
            self.server.process.send_signal(signal.SIGCONT)


# ---- Each server sees what the others do

class Shared(Case):
    def test_put_on_one_and_reserve_on_the_other(self):
        with Redis() as redis, redis.server() as one, redis.server() as two, one.client() as a, two.client() as b:
            number = inserted(a.put(b"hello", priority=7))
            # The server that put the job can deliver it at once.
            equal(a.ask("reserve-with-timeout 0"), "RESERVED %d 5|hello" % number)
            conversation(a, ("release %d 7 0" % number, "RELEASED"), ("reserve-with-timeout 0", "RESERVED %d 5|hello" % number),
                         ("release %d 7 0" % number, "RELEASED"))
            equal(reserved(b), (number, "hello"))
            equal(state(a, number), "reserved")
            # A client of the other server has it, which counts here like any other client.
            for line in ("delete", "touch", "release %d 0 0", "bury %d 0", "reserve-job", "kick-job"):
                equal(a.ask(line % number if "%" in line else "%s %d" % (line, number)), "NOT_FOUND")
            conversation(b, ("touch %d" % number, "TOUCHED"), ("release %d 3 0" % number, "RELEASED"))
            equal(reserved(a), (number, "hello"))
            conversation(a, ("bury %d 5" % number, "BURIED"))
            conversation(b, ("peek-buried", "FOUND %d 5|hello" % number), ("kick-job %d" % number, "KICKED"))
            equal(reserved(b), (number, "hello"))
            conversation(b, ("delete %d" % number, "DELETED"))
            equal(state(a, number), "NOT_FOUND")
            # Each server may delete a job that nobody has.
            number = inserted(b.put(b"later", delay=1000))
            equal(state(a, number), "delayed")
            conversation(a, ("peek-delayed", "FOUND %d 5|later" % number), ("delete %d" % number, "DELETED"),
                         ("delete %d" % number, "NOT_FOUND"))
            equal(b.ask("peek %d" % number), "NOT_FOUND")

    @unittest.skipIf(os.environ.get("SANITIZE"), "a sanitizer has to be the first that is loaded")
    def test_a_server_that_was_stopped_hands_out_no_job_that_has_ended(self):
        """Stopped when it had the job, and its loop did not know yet. Meanwhile another server's worker deletes the job."""
        with Redis() as redis, Stopped(redis) as stopped, redis.server() as two, two.client() as b:
            with stopped.server.client() as a:
                # With so many, another thread asks.
                for tube in range(20):
                    a.ask("watch t%d" % tube)
                with stopped.having(b, inserted(b.put(b"x", ttr=1))):
                    a.send("reserve-with-timeout 4\r\n")
                equal(a.answer(), "TIMED_OUT")
                number = inserted(b.put(b"x", ttr=1))
                with stopped.having(b, number):
                    a.send("reserve-job %d\r\n" % number)
                equal(a.answer(), "NOT_FOUND")
                # It goes on as ever.
                number = inserted(b.put(b"y"))
                equal(reserved(a), (number, "y"))

    @unittest.skipIf(os.environ.get("SANITIZE"), "a sanitizer has to be the first that is loaded")
    def test_a_server_that_was_stopped_gives_back_what_else_it_had(self):
        """It had five that have not ended, too, each with one attempt. One that waits and got no more asks for another."""
        token = token_of("worker", "work:*", "put:*")
        with Redis() as redis, Stopped(redis, "--http", "127.0.0.1:0", "--auth-file", "tokens") as stopped, \
                redis.server() as two, two.client() as b, Web(stopped.server, token) as web:
            for wait, most, gets in (0, 10, 5), (20, 10, 5), (20, 1, 1):
                # A server knows at once of what was put there, and of others' jobs when a message has come.
                for _ in range(5):
                    web.good("POST", "jobs", {"body": "x", "priority": 7, "run": "1h", "attempts": 1})
                number = int(web.good("POST", "jobs", {"body": "x", "priority": 0, "run": "1s"})["id"])
                with stopped.having(b, number):
                    web.begin("POST", "leases", {"most": most, "wait": wait})
                leases = web.end()[1]["leases"]
                # Without a wait it may give back all that it had, and be asked again.
                if not wait and not leases:
                    leases = web.good("POST", "leases", {"most": 10})["leases"]
                equal([lease["attempt"] for lease in leases], [1] * gets)
                for lease in leases:
                    web.good("POST", "jobs/%s/finish" % lease["id"], {"token": lease["token"]})

    def test_clients_that_ask_the_same_of_all_tubes_share_an_answer(self):
        """Each such question keeps Redis from other work, of all its servers."""
        with Redis() as redis, redis.server() as one, contextlib.ExitStack() as stack:
            clients = [stack.enter_context(one.client()) for _ in range(40)]
            for number, line in enumerate(("list-tubes", "stats")):
                clients[0].ask("use tube%d" % number)
                inserted(clients[0].put(b"x"))
                clients[0].ask(line)
                before = scripts(redis)
                clients[0].ask(line)
                single = scripts(redis) - before
                redis.process.send_signal(signal.SIGSTOP)
                try:
                    for client in clients[1:]:
                        client.send(line + "\r\n")
                    # The loop has come to those before it.
                    clients[0].ask("list-tube-used")
                finally:
                    redis.process.send_signal(signal.SIGCONT)
                for client in clients[1:]:
                    answer = client.answer()
                    assert ("- tube0\n" if number == 0 else "total-jobs: 3\n") in answer, answer
                # The store's worker asks now and then, too.
                used = scripts(redis) - before - single
                assert used <= 4 * single, (used, single)
                # A question hears of what was put before it.
                clients[1].ask("use later%d" % number)
                inserted(clients[1].put(b"x"))
                clients[1].ask("use default")
                assert "- later%d\n" % number in clients[2].ask("list-tubes")

    def test_a_put_or_release_is_seen_at_once_on_its_server(self):
        with Redis() as redis, redis.server() as one, one.client() as a:
            for _ in range(100):
                # All in one turn of the server's loop, before it reads any message.
                a.send("put 0 0 60 1\r\nx\r\nreserve-with-timeout 0\r\n")
                number = inserted(a.line())
                equal(a.answer(), "RESERVED %d 1|x" % number)
                a.send("release %d 0 0\r\nreserve-with-timeout 0\r\nbury %d 0\r\nkick 1\r\nreserve-with-timeout 0\r\n"
                       "delete %d\r\nreserve-with-timeout 0\r\n" % (number, number, number))
                equal([a.answer() for _ in range(7)], ["RELEASED", "RESERVED %d 1|x" % number, "BURIED", "KICKED 1",
                                                       "RESERVED %d 1|x" % number, "DELETED", "TIMED_OUT"])

    def test_a_connection_that_closes_asks_once_for_each_lease(self):
        jobs = 300
        with Redis() as redis, redis.server() as one, redis.server() as two, one.client() as a, two.client() as b:
            for number in range(jobs):
                inserted(a.put(b"%d" % number, priority=number))
            with socket.create_connection(("127.0.0.1", redis.port), PATIENCE) as monitor:
                with one.client() as worker:
                    for _ in range(jobs):
                        reserved(worker)
                    monitor.sendall(b"MONITOR\r\n")
                    equal(monitor.recv(5), b"+OK\r\n")
                b.until_stats("current-jobs-ready", jobs, "stats-tube default")
                # It sees its own command as well, after all others.
                monitor.sendall(b"ECHO the-end\r\n")
                with monitor.makefile("rb") as lines:
                    asked = sum(b'"release"' in line and b" lua] " not in line for line in iter(lines.readline, b"$7\r\n"))
            assert jobs <= asked < jobs * 1.1, asked
            given = a.jobs("list-delayed limit=1000")
            equal(sorted(job["priority"] for job in given), list(range(jobs)))
            equal({(job["state"], job["releases"], job["error"]) for job in given}, {("ready", 1, "the connection was closed")})

    def test_clients_that_wait_at_a_tube_ask_together(self):
        with Redis() as redis, redis.server("--redis-shards", "1") as one, one.client() as a, contextlib.ExitStack() as stack:
            conversation(a, ("use t", "USING t"))
            clients = [stack.enter_context(one.client()) for _ in range(8)]
            for client in clients:
                conversation(client, ("watch t", "WATCHING 2"), ("ignore default", "WATCHING 1"))
            # Some may ask alone just then, as they have begun to wait.
            for _ in range(20):
                equal(a.ask("pause-tube t 3600"), "PAUSED")
                numbers = [inserted(a.put(b"x")) for _ in clients]
                for client in clients:
                    client.send("reserve\r\n")
                a.until_waiting(len(clients))
                with socket.create_connection(("127.0.0.1", redis.port), PATIENCE) as monitor:
                    monitor.sendall(b"MONITOR\r\n")
                    equal(monitor.recv(5), b"+OK\r\n")
                    equal(a.ask("pause-tube t 0"), "PAUSED")
                    got = [(client, int(client.answer().split()[1])) for client in clients]
                    monitor.sendall(b"ECHO the-end\r\n")
                    with monitor.makefile("rb") as lines:
                        asked = re.findall(rb'"EVALSHA".* "(\d+)" "\d+" "t"', b"".join(iter(lines.readline, b"$7\r\n")))
                equal(sorted(number for _, number in got), numbers)
                for client, number in got:
                    equal(client.ask("delete %d" % number), "DELETED")
                if max(map(int, asked)) > 1:
                    break
            else:
                raise AssertionError("each asked alone")
            # Jobs that become ready while some ask are for those who got none.
            for _ in range(30):
                for client in clients:
                    client.send("reserve\r\n")
                a.send(len(clients) * "put 0 0 60 1\r\nx\r\n")
                numbers = [inserted(a.line()) for _ in clients]
                got = [int(client.answer().split()[1]) for client in clients]
                equal(sorted(got), sorted(numbers))
                for client, number in zip(clients, got):
                    equal(client.ask("delete %d" % number), "DELETED")

    def test_a_list_of_large_bodies_comes_in_pieces(self):
        with Redis() as redis, redis.server() as server, server.client() as a:
            for _ in range(300):
                inserted(a.put(b"x" * 60000, delay=1000))
            ids, after, pieces = [], "", 0
            while after is not None:
                text = a.ask("list-delayed limit=1000 body=yes" + after)
                assert len(text) < 16 << 20, len(text)
                found = objects(text.split("|", 1)[1])
                ids += [job["id"] for job in found if "id" in job]
                after = " after=%d" % found[-1]["next"] if "next" in found[-1] else None
                pieces += 1
            equal((len(ids), len(set(ids))), (300, 300))
            assert pieces >= 3, pieces

    def test_a_waiting_client_gets_a_job_put_on_the_other(self):
        with Redis() as redis, redis.server() as one, redis.server() as two, one.client() as a, two.client() as b:
            for body, delay in ((b"now", 0), (b"soon", 1)):
                b.send("watch t\r\nreserve-with-timeout 30\r\n" if delay == 0 else "reserve-with-timeout 30\r\n")
                if delay == 0:
                    equal(b.line(), "WATCHING 2")
                with two.client() as c:
                    c.until_waiting()
                began = time.time()
                number = inserted(a.put(body, tube="t", delay=delay))
                equal(b.answer(), "RESERVED %d %d|%s" % (number, len(body), body.decode()))
                assert time.time() - began >= delay - 0.001, "too early"
                conversation(b, ("delete %d" % number, "DELETED"))

    def test_keys_and_tubes_are_shared(self):
        with Redis() as redis, redis.server() as one, redis.server() as two, one.client() as a, two.client() as b:
            number = inserted(a.ask("put-key 0 1000 60 1 k attempts=3\r\n1"))
            conversation(b, ("put-key 0 1000 60 1 k\r\n2", "REPLACED %d" % number), ("peek-key k", "FOUND %d 1|2" % number))
            conversation(a, ("move-key k 2000 version=1", "STALE"), ("move-key k 2000 version=2", "MOVED 3"))
            inserted(a.put(b"x", tube="only-here", delay=100))
            equal(b.numbers("stats-tube only-here")["current-jobs-delayed"], "1")
            assert "- only-here\n" in b.ask("list-tubes")
            conversation(b, ("pause-tube only-here 1000", "PAUSED"), ("pause-tube nix 1", "NOT_FOUND"))
            equal(a.numbers("stats-tube only-here")["pause"], "1000")
            equal(sorted(job["id"] for job in b.all_jobs()), sorted(job["id"] for job in a.all_jobs()))
            conversation(b, ("delete-key k", "DELETED"))
            equal(a.ask("peek-key k"), "NOT_FOUND")
            a.until_stats("redis-workers", 2)
            numbers = [client.numbers("stats") for client in (a, b)]
            equal([entry["redis-shards"] for entry in numbers], ["16", "16"])
            until(lambda: sum(int(client.numbers("stats")["redis-shards-watched"]) for client in (a, b)) == 16,
                  "each shard is watched by one")

    def test_jobs_of_a_client_that_goes_are_for_all(self):
        with Redis() as redis, redis.server() as one, redis.server() as two, two.client() as b:
            a = one.client()
            number = inserted(a.put(b"x", priority=77, ttr=3600))
            equal(reserved(a), (number, "x"))
            b.send("reserve\r\n")
            a.close()
            equal(b.answer(), "RESERVED %d 1|x" % number)
            equal(b.numbers("stats-job %d" % number)["pri"], "77")
            # Likewise when a server is told to end.
            with one.client() as c:
                conversation(b, ("release %d 1 0" % number, "RELEASED"))
                equal(reserved(c), (number, "x"))
                b.send("reserve\r\n")
                equal(one.stop(), 0)
                equal(b.answer(), "RESERVED %d 1|x" % number)

    def test_a_deadline_that_comes_soon(self):
        with Redis() as redis, redis.server() as one, redis.server() as two, one.client() as a, two.client() as b:
            number = inserted(a.put(b"x", ttr=1))
            equal(reserved(a), (number, "x"))
            equal(a.ask("reserve"), "DEADLINE_SOON")
            equal(reserved(b), (number, "x"))
            conversation(a, ("touch %d" % number, "NOT_FOUND"), ("delete %d" % number, "NOT_FOUND"))
            conversation(b, ("delete %d" % number, "DELETED"))

    def test_the_program_works_with_it(self):
        with Redis() as redis, redis.server() as one, redis.server() as two, two.client() as b:
            def weekwheel(server, *arguments):
                done = server.program.run(0, *arguments)
                equal(done.err, "")
                return done.out

            bodies = ["job %d" % number for number in range(10)]
            for number, body in enumerate(bodies):
                weekwheel((one, two)[number % 2], "put", "--key", "k%d" % number, body)
            equal(len(weekwheel(one, "list", "--all", "--json").splitlines()), 10)
            # Each worker asks the server about the job that it got. Ids have no order here.
            got = weekwheel(one, "work", "-n", "2", "--drain", "--", "sh", "-c", 'echo "$WEEKWHEEL_JOB_KEY: $(cat)"')
            equal(sorted(got.splitlines()), sorted("k%d: %s" % entry for entry in enumerate(bodies)))
            equal(b.all_jobs(), [])


# ---- A server is killed

class ServerKilled(Case):
    def test_killed(self):
        with Redis() as redis, redis.server("--redis-lease", "1") as one, redis.server("--redis-lease", "1") as two:
            with one.client() as a, two.client() as b:
                taken = {inserted(a.put(b"taken", ttr=1)) for _ in range(5)}
                equal({reserved(a)[0] for _ in taken}, taken)
                due = {inserted(a.put(b"due", delay=1)) for _ in range(5)}
                one.stop(signal.SIGKILL)
                got = {}
                for _ in range(10):
                    number, body = reserved(b, 30)
                    got[number] = body
                    conversation(b, ("delete %d" % number, "DELETED"))
                equal(got, dict([(number, "taken") for number in taken] + [(number, "due") for number in due]))
                equal(b.numbers("stats")["job-timeouts"], "5")

    def test_each_job_once(self):
        jobs, workers = 400, 6
        seen, errors = [], []

        def work(server):
            try:
                with server.client() as client:
                    while True:
                        number, body = reserved(client, PATIENCE)
                        equal(client.ask("delete %d" % number), "DELETED")
                        if body == "end":
                            return
                        seen.append(body)
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)

        with Redis() as redis, redis.server() as one, redis.server() as two:
            threads = [threading.Thread(target=work, args=((one, two)[number % 2],)) for number in range(workers)]
            for thread in threads:
                thread.start()
            with one.client() as a, two.client() as b:
                for number in range(jobs):
                    inserted((a, b)[number % 2].put(b"%d" % number, delay=number % 3 == 0))
                until(lambda: len(seen) >= jobs or errors, "all jobs are done")
                for _ in threads:
                    inserted(a.put(b"end", priority=1))
                for thread in threads:
                    thread.join()
                equal(errors, [])
                equal(sorted(seen, key=int), [str(number) for number in range(jobs)])
                numbers = a.numbers("stats")
                equal([numbers["current-jobs-" + which] for which in ("ready", "reserved", "delayed", "buried")], ["0"] * 4)


# ---- Redis is killed

class RedisKilled(Case):
    def test_redis_killed_and_back(self):
        with Redis() as redis, redis.server("--http", "127.0.0.1:0", "--redis-timeout", "0.5") as server:
            with server.client() as a, server.client() as waits, server.client() as impatient, server.client() as comes:
                number = inserted(a.put(b"x", delay=3600))
                mine = inserted(a.put(b"mine", ttr=3600))
                equal(reserved(a), (mine, "mine"))
                equal(server.get("/healthz"), (200, "ok\n"))
                waits.send("reserve\r\n")
                a.until_waiting()
                redis.kill()
                # Commands that ask the store are refused at once, and the others are answered.
                for line in ("put 0 0 60 1\r\nx", "delete %d" % number, "touch %d" % mine, "peek %d" % number, "kick 1", "stats",
                             "list-tubes", "stats-tube default", "list-delayed", "pause-tube default 1", "release %d 0 0" % mine):
                    equal(a.ask(line), "INTERNAL_ERROR")
                conversation(a, ("use t", "USING t"), ("watch t", "WATCHING 2"), ("list-tube-used", "USING t"),
                             ("use default", "USING default"))
                equal(server.get("/healthz")[0], 503)
                assert "weekwheeld_store_up 0" in server.metrics()
                # New clients may wait, also for a tube that the server must ask about first. A timeout of 0 is refused.
                for client in (impatient, comes):
                    conversation(client, ("watch unknown", "WATCHING 2"), ("ignore default", "WATCHING 1"))
                conversation(impatient, ("reserve-with-timeout 0", "INTERNAL_ERROR"), ("reserve-with-timeout 1", "TIMED_OUT"))
                comes.send("reserve\r\n")
                redis.start()
                until(lambda: a.ask("peek %d" % number).startswith("FOUND"), "it is back")
                equal(server.get("/healthz"), (200, "ok\n"))
                # The lease still holds.
                conversation(a, ("touch %d" % mine, "TOUCHED"), ("delete %d" % mine, "DELETED"))
                new = inserted(a.put(b"new"))
                equal(waits.answer(), "RESERVED %d 3|new" % new)
                new = inserted(a.put(b"new", tube="unknown"))
                equal(comes.answer(), "RESERVED %d 3|new" % new)
            equal(server.stop(), 0)
            equal(len(re.findall("cannot be reached", server.said)), 1)
            equal(len(re.findall("is back", server.said)), 1)
            assert "a command failed" not in server.said, server.said

    def test_settings_of_redis_that_lose_jobs_are_told(self):
        with Redis() as redis:
            with redis.server() as server:
                pass
            assert "appendonly" not in server.said and "noeviction" not in server.said, server.said
            for line in ("appendonly no", "maxmemory 100mb", "maxmemory-policy allkeys-lru"):
                equal(redis.ask("CONFIG", "SET", *line.split()), "+OK")
            with redis.server() as server:
                pass
            assert "set appendonly to yes" in server.said and "set maxmemory-policy to noeviction" in server.said, server.said

    def test_the_program_while_redis_is_lost(self):
        # It does not mistake the server for beanstalkd, which lacks keys and reasons.
        with Redis() as redis, redis.server("--http", "127.0.0.1:0") as server, server.client() as a:
            equal(a.ask("put-key 0 0 60 1 - attempts=5 backoff=3600\r\nx").split()[0], "INSERTED")
            redis.kill()
            done = server.program.run(1, "put", "--key", "k", "x")
            assert "INTERNAL_ERROR" in done.err and "beanstalkd" not in done.err, done
            with server.program.start("work", "--", "sh", "-c", "echo why >&2; exit 3") as worker:
                try:
                    until(lambda: "weekwheeld_waiting 1" in server.metrics(), "the worker waits")
                    redis.start()
                    job = until(lambda: "{" in a.ask("list-delayed") and [one for one in a.all_jobs() if one["releases"]],
                                "it failed")
                    equal([(one["error"], one["left"] > 2000) for one in job], [("exit status 3: why", True)])
                finally:
                    worker.terminate()

    def test_redis_frozen(self):
        with Redis() as redis, redis.server("--redis-timeout", "0.2") as server, server.client() as a, server.client() as b:
            b.send("reserve\r\n")
            a.until_waiting()
            redis.process.send_signal(signal.SIGSTOP)
            try:
                equal(a.ask("put 0 0 60 1\r\nx"), "INTERNAL_ERROR")
                equal(a.ask("use t"), "USING t")
            finally:
                redis.process.send_signal(signal.SIGCONT)
            until(lambda: a.ask("stats").startswith("OK"), "it is back")
            a.put(b"y", tube="default")
            assert b.answer().startswith("RESERVED "), "the waiting client is not served"

    def test_a_cluster_that_loses_a_node(self):
        # On a busy machine a node may be silent for an eighth of a short timeout, and is then set aside.
        with Cluster() as cluster, cluster.server("--redis-timeout", "10") as one, cluster.server() as two:
            with one.client() as a, two.client() as b:
                equal(a.numbers("stats")["redis-nodes"], "3")
                for number in range(60):
                    inserted(a.put(b"%d" % number, delay=number % 2))
                got = [reserved(b) for _ in range(60)]
                equal(sorted(int(body) for _, body in got), list(range(60)))
                cluster.nodes[1].kill()
                # Jobs on the other nodes can be deleted, unless the whole cluster gives up.
                answers = {b.ask("delete %d" % number) for number, _ in got}
                assert answers <= {"DELETED", "INTERNAL_ERROR"} and "INTERNAL_ERROR" in answers, answers
                cluster.nodes[1].start()
                until(lambda: a.ask("stats").startswith("OK"), "it is back")
                until(lambda: all(b.ask("delete %d" % number) in ("DELETED", "NOT_FOUND") for number, _ in got), "all are deleted")
                equal(a.all_jobs(), [])


# ---- Clients do not wait for each other

class Side(Case):
    @contextlib.contextmanager
    def frozen(self, redis):
        redis.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            redis.process.send_signal(signal.SIGCONT)

    def test_others_go_on_while_redis_is_asked(self):
        with Redis() as redis, redis.server("--redis-timeout", str(PATIENCE // 2)) as server, contextlib.ExitStack() as open_ones:
            a, b = (open_ones.enter_context(server.client()) for _ in range(2))
            # More than there are threads.
            many = [open_ones.enter_context(server.client()) for _ in range(100)]
            with self.frozen(redis):
                for number, client in enumerate([a, *many]):
                    client.send("put 0 %d 60 1\r\nx\r\n" % number)
                # Redis says nothing, and no other client notices.
                for _ in range(3):
                    conversation(b, ("use t", "USING t"), ("watch t", "WATCHING 2"), ("list-tube-used", "USING t"))
                    server.client().close()
                b.send("list-tubes\r\n")
            for client in [a, *many]:
                inserted(client.answer())
            assert "- t\n" in b.answer()

    def test_a_call_that_is_alone_needs_no_other_thread(self):
        def switches(server):
            """How often each thread was given a processor, but for the loop's."""
            tasks = "/proc/%d/task" % server.process.pid
            return {task: read(tasks, task, "status").split("ctxt_switches:")[1:] for task in os.listdir(tasks)
                    if int(task) != server.process.pid}

        def read(*path):
            with open("/".join(path), encoding="ascii") as file:
                return file.read()

        with Redis() as redis, redis.server() as server, server.client() as a:
            alone = 0
            # On a busy machine Redis may be slow, and a thread of the store wakes from time to time.
            for number in range(200):
                before = switches(server)
                number = inserted(a.put(b"x", delay=1000))
                conversation(a, ("delete %d" % number, "DELETED"))
                alone += switches(server) == before
            assert alone > 0, "each call was another thread's"

    def test_the_loop_changes_hands_while_a_call_that_is_alone_waits(self):
        with Redis() as redis, redis.server("--redis-timeout", str(PATIENCE // 2)) as server, server.client() as a, server.client() as b:
            for number in range(5):
                inserted(a.put(b"x"))
                with self.frozen(redis):
                    a.send("put 0 0 60 1\r\nx\r\nuse t%d\r\n" % number)
                    conversation(b, ("list-tube-used", "USING default"))
                    with server.client() as c:
                        conversation(c, ("use t", "USING t"))
                    b.send("delete 99999\r\n")
                inserted(a.answer())
                equal(a.answer(), "USING t%d" % number)
                equal(b.answer(), "NOT_FOUND")
                conversation(a, ("use default", "USING default"))
            with self.frozen(redis):
                a.send("put 0 0 60 1\r\nx\r\n")
                conversation(b, ("list-tube-used", "USING default"))
                server.process.send_signal(signal.SIGTERM)
                until(lambda: refuses(server), "the signal is seen")
            inserted(a.answer())

    def test_answers_come_in_the_order_of_commands(self):
        random = Random(seed())
        commands = ["put 0 0 60 1\r\nx"] * 150
        for _ in range(150):
            tube = random.choice("ab")
            commands.append(random.choice((
                "put 1 0 60 2\r\nab", "put 1 0 60 2\r\nabcd", "put 1 0 60 70000\r\n" + 70000 * "x", "put 1 z 60 1",
                "put-key 0 9 60 1 k%s\r\nx" % tube, "put-key 0 9 60 1", "delete 4000000000000", "delete x", "use " + tube,
                "watch " + tube, "ignore " + tube, "list-tube-used", "list-tubes-watched", "kick 0", "nonsense",
                "reserve-with-timeout 0", "peek 4000000000000", "touch 4000000000000", "reserve-job 4000000000000")))
        # A refused put may take the beginning of the next line for its body.
        text = "".join(command + "\r\n" for command in commands) + "list-tube-used\r\nuse end\r\n"

        def told(client):
            answers = [client.answer()]
            while answers[-1] != "USING end":
                # Ids, and the order of equal jobs, are others in Redis.
                answers.append(re.sub(r"^(INSERTED|REPLACED|RESERVED) .*$", r"\1", client.answer(), flags=re.S))
            return answers[1:]

        with Server() as own, own.client() as a, Redis() as redis, redis.server() as server, server.client() as b:
            a.send(text)
            at = 0
            while at < len(text):
                step = random.choice((1, 100, 5000, 100000))
                b.send(text[at:at + step])
                at += step
            equal(told(b), told(a))

    def test_what_a_client_sends_along_goes_together(self):
        with Redis() as redis, redis.server() as server, server.client() as a, server.client() as b:
            def trips():
                return int(b.numbers("stats")["redis-round-trips"])
            inserted(a.put(b"x"))
            before = trips()
            a.send(600 * "put 0 9 60 1\r\nx\r\n")
            numbers = [inserted(a.line()) for _ in range(600)]
            equal(len(set(numbers)), 600)
            assert trips() - before < 300
            a.send("use t\r\nwatch t\r\n" + 300 * "put 0 0 60 1\r\nx\r\n" + 300 * "reserve\r\n")
            answers = [a.answer() for _ in range(602)]
            own = [int(answer.split()[1]) for answer in answers[302:]]
            before = trips()
            a.send("".join("delete %d\r\n" % number for number in own + own))
            equal([a.line() for _ in range(600)], 300 * ["DELETED"] + 300 * ["NOT_FOUND"])
            # Deletes of jobs that are nobody's go one by one.
            assert trips() - before < 500, trips() - before

    def test_a_client_that_goes_while_it_reserves_loses_no_job(self):
        with Redis() as redis, redis.server("--redis-timeout", str(PATIENCE // 2)) as server, server.client() as b:
            number = inserted(b.put(b"x", ttr=3600))
            for is_half in (False, True) * 2:
                a = server.client()
                with self.frozen(redis):
                    a.send("reserve\r\n")
                    # By then the server has asked.
                    for _ in range(3):
                        equal(b.ask("list-tube-used"), "USING default")
                    if is_half:
                        a.socket.shutdown(socket.SHUT_WR)
                    else:
                        # What it sends then is a reset: nobody is there to read an answer.
                        a.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        a.close()
                    equal(b.ask("list-tube-used"), "USING default")
                if is_half:
                    assert a.answer() in ("TIMED_OUT", "RESERVED %d 1|x" % number)
                    a.close()
                equal(reserved(b), (number, "x"))
                conversation(b, ("release %d 0 0" % number, "RELEASED"))

    def test_it_ends_while_redis_is_silent(self):
        with Redis() as redis, redis.server("--redis-timeout", "1") as server, server.client() as a, server.client() as b:
            inserted(a.put(b"x"))
            reserved(b)
            with self.frozen(redis):
                for client in (a, b):
                    client.send("put 0 0 60 1\r\nx\r\n")
                equal(server.stop(), 0)


# ---- How it is started

class Start(Case):
    def test_another_number_of_shards_is_warned_of(self):
        with Redis() as redis:
            for arguments, warned in ((("--redis-shards", "4"), False), (("--redis-shards", "4"), False),
                                      (("--redis-shards", "8"), True), ((), False)):
                with redis.server(*arguments) as server, server.client() as a:
                    equal(a.numbers("stats")["redis-shards"], "4")
                    equal(server.stop(), 0)
                    equal(server.said.count("--redis-shards 8 changes nothing: the store was made with 4"), int(warned))
                    equal("import" in server.said and "--redis-prefix" in server.said, warned)

    def test_a_store_that_nobody_serves(self):
        with Redis():
            said = refused("--store", "redis://127.0.0.1:%d/" % free_port(), status=1)
        assert "cannot be reached" in said and "cannot open the store in Redis" in said and "disk" not in said, said

    def test_redis_is_not_what_the_url_says(self):
        # The status is 1, so that systemd starts the server again: Redis may change to fit the command line.
        with Redis() as redis, Redis(folder="other") as other:
            for url, reason in ((redis.url + "99", "DB index is out of range"),
                                ("redis://127.0.0.1:%d,127.0.0.1:%d/" % (redis.port, other.port), "they are not a cluster")):
                said = refused("--store", url, status=1)
                assert reason in said and "give a database that it has" in said and "expected" not in said, said

    def test_a_password_is_not_shown(self):
        path = "url"
        with Redis("--requirepass", "s3cret") as redis:
            url = "redis://:s3cret@127.0.0.1:%d/" % redis.port
            assert "Redis refuses access" in refused("--store", redis.url, status=1)
            with open(path, "w") as file:
                file.write(url + "\n")
            for arguments, env in ((("--store-file", path), {}), ((), {"WEEKWHEELD_STORE": url})):
                with Server(*arguments, **env) as server, server.client() as a:
                    inserted(a.put())
                    equal(server.stop(), 0)
                    assert "s3cret" not in server.said, server.said
                    equal("others may read" in server.said, bool(arguments))
            with Server("--store", url) as server:
                assert "everybody on this machine can read the password" in server.said, server.said

    def test_each_prefix_is_a_store(self):
        with Redis() as redis, redis.server("--redis-prefix", "a") as one, redis.server("--redis-prefix", "b") as two:
            with one.client() as a, two.client() as b:
                inserted(a.put())
                equal(b.ask("reserve-with-timeout 0"), "TIMED_OUT")
                equal(b.all_jobs(), [])


main()
