#!/usr/bin/env python3
"""Two servers on one PostgreSQL, with a ring that turns each second, while one part after the other fails.

Writers put by SQL: alone and many, with keys and delays; some roll back, some keep their transaction open for 2 s. Workers
take jobs by the protocol of beanstalkd, and end or release them. history.py judges what all have heard: nothing that was
committed is lost, nothing is early, nothing is delivered that was rolled back or has ended. At the end no table has a row of
a job.

WW_SECONDS is how long it lasts (12), and WW_SEED the seed. A judged history that is wrong stays in build/.
"""
# tier: long, waits
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time

from harness import (BUILD, WEEKWHEELD, Case, Client, check, compiled, environment, equal, free_port, main, need_server,
                     seed, until)
from history import History
from postgres import Postgres, SqlError

SECONDS = float(os.environ.get("WW_SECONDS") or 12)
SECOND = 1_000_000_000
WRITERS, WORKERS, KEYS = 4, 3, 5
SILENT = 8  # s without an answer, after which a worker tries the other server


class Book:
    """The events, in the order in which they happened, by CLOCK_MONOTONIC."""

    def __init__(self):
        self.lock, self.events, self.calls = threading.Lock(), [], 0
        self.delivered, self.rolled_back, self.committed = set(), set(), set()
        self.note("begin")

    def note(self, event, **members):
        with self.lock:
            self.events.append({"event": event, "t": time.monotonic_ns(), **members})

    def call(self, event, **members):
        with self.lock:
            self.calls += 1
            number = self.calls
            self.events.append({"event": event, "t": time.monotonic_ns(), "call": number, **members})
        return number

    def wrong(self):
        history = History()
        for event in self.events:
            history.feed(event)
        if history.wrong:
            with open(os.path.join(BUILD, "postgres_chaos.history"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(event) + "\n" for event in self.events)
        return history.wrong + [f"rolled back, and delivered: {name}" for name in self.rolled_back & self.delivered] + \
            [f"committed, and never delivered: {name}" for name in self.committed - self.delivered]


class Actor(threading.Thread):
    """A thread that repeats its turn until it is told to stop, and says what was wrong with it."""

    def __init__(self, chaos, number):
        super().__init__(daemon=True)
        self.chaos, self.book, self.random = chaos, chaos.book, random.Random(f"{chaos.seed}-{type(self).__name__}-{number}")
        self.number, self.over, self.failed = number, threading.Event(), None

    def run(self):
        try:
            while not self.over.is_set():
                self.turn()
        except BaseException as error:
            self.failed = error

    def end(self):
        self.over.set()
        self.join()
        if self.failed:
            raise self.failed


class Writer(Actor):
    """Puts in transactions."""
    session = None
    count = 0

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.last = {}  # by key: the body that was committed last

    def turn(self):
        try:
            self.session = self.session or self.chaos.postgres.session()
        except SqlError:
            time.sleep(0.05)
            return
        puts = []
        will_commit, waits = self.random.random() > 0.1, self.random.random() < 0.03
        try:
            self.session.rows("BEGIN")
            for _ in range(self.random.choice((1, 1, 1, 2))):
                self.put(puts)
            time.sleep(2 if waits else 0)
            if not will_commit:
                self.session.rows("ROLLBACK")
        except SqlError as error:
            check(error.state[:2] in ("", "08", "57"), error)
            will_commit = False
            self.session.close()
            self.session = None
        self.finish(puts, will_commit)
        time.sleep(self.random.random() * 0.08)

    def finish(self, puts, will_commit):
        try:
            if will_commit:
                self.session.rows("COMMIT")
        except SqlError:
            # It has committed or not, and what has will still be taken.
            for _, key, _ in puts:
                self.book.committed.discard(self.last.pop(key, None))
            self.session.close()
            self.session = None
            return
        for number, key, body in puts:
            if not key or not will_commit:
                self.book.note("answer", call=number, ok=will_commit)
            # The server takes it after the commit, and then it replaces the one before: the judge may not know.
            else:
                self.book.committed.discard(self.last.get(key))
                self.last[key] = body
            (self.book.committed if will_commit else self.book.rolled_back).add(body)

    def put(self, puts):
        delay = self.random.choice((0, 0, 0, 0.2, 1, 1.7, 3))
        kind = self.random.random()
        if kind < 0.15:
            return self.put_many(puts, delay)
        self.count += 1
        body = f"{self.number}-{self.count}"
        # Only this writer uses these keys, one transaction after the other, each key once in it.
        key = self.random.choice([f"{self.number}.{key}" for key in range(KEYS)])
        if kind < 0.3 and all(other != key for _, other, _ in puts):
            return self.ask(puts, [body], delay,
                            f"SELECT weekwheel.put('default', 'key {key}|{body}', key => '{key}', delay => $1::interval)", key)
        when = "delay => $1::interval" if kind < 0.8 else "at => clock_timestamp() + $1::interval"
        return self.ask(puts, [body], delay, f"SELECT weekwheel.put('default', '{body}|{body}', {when})")

    def put_many(self, puts, delay):
        self.count += 1
        bodies = [f"{self.number}-{self.count}-{i}" for i in range(self.random.randrange(1, 30))]
        array = ",".join(f"'{body}|{body}'" for body in bodies)
        self.ask(puts, bodies, delay,
                 f"SELECT weekwheel.put_many('default', ARRAY[{array}], delay => $1::interval)")

    def ask(self, puts, bodies, delay, sql, key=None):
        since = time.monotonic_ns() + int(delay * SECOND) - 1000  # PostgreSQL counts microseconds
        for body in bodies:
            number = self.book.call("call", job=f"key {key}" if key else body, to="waiting", due=[since, since + 10 * SECOND],
                                    body=body)
            puts.append((number, key, body))
        self.session.rows(sql, f"{delay} seconds")


class Worker(Actor):
    """Takes jobs and ends them."""
    client = None

    def turn(self):
        if not self.client and not self.connect():
            time.sleep(0.02)
            return
        number = self.book.call("ask")
        try:
            answer = self.client.ask("reserve-with-timeout 1")
        except (OSError, EOFError):
            self.lose(number)
            return
        if not answer.startswith("RESERVED"):
            self.book.note("answer", call=number, ok=False)
            return
        name, body = answer.split("|", 1)[1].split("|")
        self.book.note("deliver", call=number, job=name, body=body,
                       **({} if name.startswith("key") else {"id": int(answer.split()[1])}))
        self.book.delivered.add(body)
        self.finish(number, name, int(answer.split()[1]))

    def finish(self, delivery, name, job):
        if self.random.random() < 0.05:
            due = time.monotonic_ns() + SECOND
            number = self.book.call("call", job=name, to="waiting", of=delivery, due=[due - 2000, due + 10 * SECOND])
            command, good = f"release {job} 0 1", "RELEASED"
        else:
            number = self.book.call("call", job=name, to="gone", of=delivery)
            command, good = f"delete {job}", "DELETED"
        try:
            answer = self.client.ask(command)
        except (OSError, EOFError):
            self.lose(number)
            return
        check(answer in (good, "NOT_FOUND", "INTERNAL_ERROR"), answer)
        # What could not be written may have been done.
        self.book.note(*(("over",) if answer == "INTERNAL_ERROR" else ("answer",)), call=number,
                       **({} if answer == "INTERNAL_ERROR" else {"ok": answer == good}))

    def connect(self):
        try:
            connection = socket.create_connection(("127.0.0.1", self.random.choice(self.chaos.ports)), SILENT)
        except OSError:
            return False
        self.client = Client(connection)
        connection.settimeout(SILENT)
        return True

    def lose(self, number):
        self.book.note("over", call=number)
        self.client.close()
        self.client = None


class Servers(Actor):
    """Starts each server again that has ended."""

    def __init__(self, chaos, library):
        super().__init__(chaos, 0)
        self.library, self.processes, self.ends = library, {}, 0
        self.log = open("servers.log", "ab")

    def turn(self):
        for port in self.chaos.ports:
            process = self.processes.get(port)
            if process and process.poll() is None:
                continue
            self.ends += process is not None
            self.processes[port] = subprocess.Popen(
                [WEEKWHEELD, "--listen", f"127.0.0.1:{port}", "--store", self.chaos.postgres.url()], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=self.log, env=environment(LD_PRELOAD=self.library, RING_MS="1000"))
        time.sleep(0.1)

    def owner(self):
        """The process that owns the store, by the port that it tells the others; or None."""
        with contextlib.suppress(SqlError):
            for name, in self.chaos.postgres.psql("SELECT a.application_name FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) "
                                                  "WHERE l.locktype = 'advisory' AND l.objid = 1 AND l.granted"):
                found = re.fullmatch(r"weekwheel 127\.0\.0\.1 (\d+) 0 0", name)
                return found and self.processes.get(int(found.group(1)))
        return None

    def end(self):
        super().end()
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        self.log.close()


# ---- What fails

class Chaos:
    def __init__(self, number, library):
        self.seed, self.random, self.book = number, random.Random(number), Book()
        self.ports = [free_port(), free_port()]
        self.counts = {}
        self.postgres = Postgres(wal_writer_delay="10s")
        self.servers = Servers(self, library)

    def kill_owner(self):
        owner = self.servers.owner()
        if owner:
            owner.kill()

    def kill_postgres(self):
        self.postgres.kill_all()
        self.postgres.start()

    def stop_owner(self):
        owner = self.servers.owner()
        if owner:
            owner.send_signal(signal.SIGSTOP)
            time.sleep(5)
            owner.send_signal(signal.SIGCONT)

    def end_session(self):
        try:
            self.postgres.psql("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND "
                               "classid = 1463900017 AND objid = 1")
        except SqlError:
            pass

    def fail(self, *failures):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0.5, 2.5))
            failure = self.random.choice(failures)
            self.counts[failure] = self.counts.get(failure, 0) + 1
            getattr(self, failure)()

    def rows_of_jobs(self):
        return self.postgres.psql("SELECT (SELECT count(*) FROM weekwheel.inbox), (SELECT count(*) FROM weekwheel.job)")[0]

    def jobs(self):
        """How many jobs a server has."""
        for port in self.ports:
            try:
                with Client(socket.create_connection(("127.0.0.1", port), SILENT)) as client:
                    stats = client.numbers("stats")
                    # A store that is left alone does a step of its work each second.
                    client.ask("delete " + client.put(tube="stir").split()[1])
                    return sum(int(stats["current-jobs-" + state]) for state in ("ready", "reserved", "delayed", "buried"))
            except (OSError, EOFError):
                pass
        return None


class PostgresChaos(Case):
    def chaos(self, *failures):
        need_server()
        library = compiled("support/postgres/short_ring.c", "-shared", "-fPIC", "-ldl")
        chaos = Chaos(seed(), library)
        self.addCleanup(chaos.postgres.remove)
        chaos.postgres.set_up()
        writers = [Writer(chaos, i) for i in range(WRITERS)]
        workers = [Worker(chaos, i) for i in range(WORKERS)]
        chaos.servers.start()
        try:
            for thread in (*writers, *workers):
                thread.start()
            chaos.fail(*failures)
            for writer in writers:
                writer.end()
            until(lambda: chaos.jobs() == 0 and chaos.rows_of_jobs() == ("0", "0"), "all jobs have ended", 0.2)
            for worker in workers:
                worker.end()
            chaos.book.note("end", all=True)
            print(f"{len(chaos.book.committed)} committed, {len(chaos.book.rolled_back)} rolled back, "
                  f"{sum(event['event'] == 'deliver' for event in chaos.book.events)} deliveries, {chaos.servers.ends} ends of "
                  f"servers, {chaos.counts}", flush=True)
            wrong = chaos.book.wrong()
            equal(wrong[:20], [], f"{len(wrong)} times wrong")
        finally:
            chaos.servers.end()

    def test_kills(self):
        self.chaos("kill_owner", "kill_owner", "kill_postgres")

    def test_stops_and_ended_sessions(self):
        self.chaos("stop_owner", "end_session", "end_session", "kill_owner")


if __name__ == "__main__":
    main()
