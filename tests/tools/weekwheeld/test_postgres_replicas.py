#!/usr/bin/env python3
"""--postgres-replicas: a server starts only if each put waits for a standby; then kills of the primary lose nothing.

In each round a primary has a synchronous standby. Clients put by SQL and by the protocol, one by one and many at once, and
workers finish jobs in transactions of their own. The primary is killed (kill -9), the standby promoted, and gets a new
standby. At the end each acknowledged put is a job or was finished, each acknowledged finish has its effect once, and
no id was given twice.

WW_ROUNDS is how many rounds there are (2), and WW_PUTS how many acknowledged puts a round has (600). "make failovers" makes
long rounds.
"""
# tier: long, waits
import base64
import contextlib
import json
import os
import threading

from harness import WEEKWHEELD, Case, Server, check, equal, main, matches, need_server, run, until
from postgres import Postgres, Replica, Session, SqlError

ROUNDS, PUTS = int(os.environ.get("WW_ROUNDS") or 2), int(os.environ.get("WW_PUTS") or 600)
WRITERS, WORKERS, MANY = 3, 2, 50


# ---- What is checked at the start

class Settings(Case):
    @classmethod
    def setUpClass(cls):
        need_server()
        cls.postgres = Postgres()
        cls.addClassCleanup(cls.postgres.remove)
        cls.postgres.set_up()

    def refused(self, replicas, url=None):
        """What a server says that does not start, and is not started again."""
        return run(2, WEEKWHEELD, "--listen", "127.0.0.1:0", "--store", url or self.postgres.url(), "--postgres-replicas",
                   str(replicas)).err

    def wait_for(self, names):
        self.postgres.configure(synchronous_standby_names=names)
        until(lambda: self.postgres.psql("SHOW synchronous_standby_names") == [(names,)], "the setting counts", 0.02)

    def test_fewer_replicas_than_wanted(self):
        for names, count in (("", 0), ("a", 1), ("a, b, c", 1), ("*", 1), ("2, 3", 1), ("2(a,b,c)", 2), ("FIRST 2 (a, b)", 2),
                             ("any 3 (a, b, c)", 3), ('"any 4 (x"', 1), ('"first"', 1), ("  ANY  2(*)", 2)):
            self.wait_for(names)
            said = self.refused(count + 1)
            check(f"PostgreSQL waits for {count} replicas, and {count + 1} are wanted" in said, (names, said))
            matches(r"set synchronous_standby_names = 'ANY %d \(" % (count + 1), said)
        self.wait_for("")

    def test_puts_that_do_not_wait(self):
        self.wait_for("*")
        for value in ("off", "local", "remote_write", "remote_apply"):
            with self.postgres.session() as session:
                session.rows(f"SET synchronous_commit = off; ALTER DATABASE postgres SET synchronous_commit = {value}")
            said = self.refused(1)
            matches(f"synchronous_commit is {value} in this database.*set it to on", said)
            equal("a report on a standby" in said, value == "remote_apply")
            with self.postgres.session() as session:
                session.rows("SET synchronous_commit = off; ALTER DATABASE postgres RESET synchronous_commit")
        matches("synchronous_commit is local", self.refused(1, self.postgres.url() + "&options=-csynchronous_commit%3Dlocal"))
        self.wait_for("")

    def test_an_option_that_contradicts(self):
        matches("--postgres-replicas.*give --sync always",
                run(2, WEEKWHEELD, "--store", "postgresql:///x", "--postgres-replicas", "1", "--sync", "system").err)
        matches("--postgres-replicas is for jobs in PostgreSQL", run(2, WEEKWHEELD, "--memory", "--postgres-replicas", "1").err)


    def test_a_primary_without_its_standby_says_why_puts_wait(self):
        self.postgres.psql("CREATE ROLE keeper LOGIN")
        self.postgres.psql("CREATE DATABASE kept OWNER keeper")
        self.postgres.set_up("keeper", "kept")
        self.wait_for("ANY 1 (a)")
        try:
            # Only a superuser sees more of a standby than that it is there.
            with Server("--store", self.postgres.url("keeper", "kept"), "--postgres-replicas", "1") as server:
                until(lambda: self.postgres.psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") != [("0",)],
                      "a write waits", 0.02)
                self.wait_for("")
                with server.client() as client:
                    matches("INSERTED", client.put())
                server.stop()
            matches("each put waits: synchronous_standby_names asks for 1 standbys, and 0 are connected", server.said)
        finally:
            self.wait_for("")


# ---- Kills

class Book:
    """What clients have heard."""

    def __init__(self):
        self.lock = threading.Lock()
        self.acknowledged, self.doubtful, self.finished = [], set(), []

    def counts(self):
        with self.lock:
            return len(self.acknowledged), len(self.finished)

    def put(self, bodies, call):
        """Without an answer they may be there or not."""
        with self.lock:
            self.doubtful.update(bodies)
        ids = call()
        with self.lock:
            self.doubtful.difference_update(bodies)
            self.acknowledged += zip(ids, bodies)


class Client(threading.Thread):
    """Repeats its turn until the primary or the server is gone."""

    def __init__(self, book, url, server, name):
        super().__init__(daemon=True)
        self.book, self.url, self.server, self.named, self.count, self.wrong = book, url, server, name, 0, None

    def run(self):
        try:
            with contextlib.suppress(EOFError, OSError), Session(self.url) as session, self.server.client() as client:
                while True:
                    self.turn(session, client)
        except SqlError as error:
            if error.state[:2] not in ("", "08", "57"):
                self.wrong = error
        except BaseException as error:
            self.wrong = error


class Writer(Client):
    def bodies(self, many):
        self.count += many
        return [f"{self.named}-{self.count - i}" for i in range(many)]

    def turn(self, session, client):
        one, many, own = self.bodies(1), self.bodies(MANY), self.bodies(1)
        self.book.put(one, lambda: [int(session.value(f"SELECT weekwheel.put('default', '{one[0]}')"))])
        self.book.put(many, lambda: [int(row[0]) for row in session.rows(
            f"SELECT weekwheel.put_many('default', '{{{','.join(many)}}}'::text[])")])
        self.book.put(own, lambda: [self.inserted(client.put(own[0].encode()))])

    def inserted(self, answer):
        if not answer.startswith("INSERTED"):
            raise EOFError
        return int(answer.split()[1])


class Worker(Client):
    """Its effect is a row."""

    def turn(self, session, client):
        answer = client.ask("reserve-with-timeout 1")
        if not answer.startswith("RESERVED"):
            return
        job, body = int(answer.split()[1]), answer.split("|", 1)[1]
        answer = client.ask(f"list-delayed id={job}")
        if not answer.startswith("OK"):
            raise EOFError
        token = json.loads(answer.split("|", 1)[1])["token"]
        session.rows(f"BEGIN; INSERT INTO effects VALUES ({job}, '{body}'); SELECT weekwheel.finish({job}, {token}); COMMIT")
        with self.book.lock:
            self.book.finished.append(job)


class Kills(Case):
    def one_round(self, primary, replica, book, number):
        url = f"postgresql://postgres@/postgres?host={primary.folder},{replica.folder}&target_session_attrs=read-write"
        with Server("--store", url, "--postgres-replicas", "1") as server:
            with server.client() as client:
                client.numbers("stats")  # it owns the store
            clients = [kind(book, url, server, f"{number}.{i}") for kind, count in ((Writer, WRITERS), (Worker, WORKERS))
                       for i in range(count)]
            puts, finishes = book.counts()
            for client in clients:
                client.start()
            until(lambda: book.counts()[0] >= puts + PUTS and book.counts()[1] > finishes or not any(
                client.is_alive() for client in clients), "jobs are put and finished")
            primary.kill_all()
            for client in clients:
                client.join()
            equal([client.wrong for client in clients if client.wrong], [])
            check(book.counts()[0] >= puts + PUTS, "the clients ended early")
            equal(server.process.wait(), 1)
        primary.remove()
        replica.promote()
        until(lambda: replica.psql("SELECT pg_is_in_recovery()") == [("f",)], "the standby is the primary")
        return replica

    def test_what_was_acknowledged_outlives_each_primary(self):
        need_server()
        book, primary = Book(), Postgres()
        self.addCleanup(lambda: primary.remove())
        primary.set_up()
        primary.psql("CREATE TABLE effects (id bigint, body text)")
        for number in range(ROUNDS):
            replica = Replica(primary)
            self.addCleanup(replica.remove)
            primary = self.one_round(primary, replica, book, number)
            # The new primary waits for nobody yet.
            matches("waits for 0 replicas", run(2, WEEKWHEELD, "--listen", "127.0.0.1:0", "--store", primary.url(),
                                                "--postgres-replicas", "1").err)
        self.judge(primary, book)

    def judge(self, primary, book):
        with Server("--store", primary.url()) as server, server.client() as client:
            there = [(job["id"], base64.b64decode(job["body"]).decode()) for job in client.all_jobs()]
        effects = [(int(job), body) for job, body in primary.psql("SELECT id, body FROM effects")]
        lost = set(book.acknowledged) - set(there) - set(effects)
        ids = [job for job, _ in there + effects]
        print(f"{ROUNDS} kills: {len(book.acknowledged)} acknowledged, {len(lost)} lost, "
              f"{len(ids) - len(set(ids))} ids twice, {len(book.finished)} finished, {len(effects)} effects, "
              f"{len(there)} left, {len(book.doubtful)} without an answer", flush=True)
        equal(sorted(lost)[:10], [])
        equal(len(ids), len(set(ids)), "an id is twice")
        equal(len({job for job, _ in book.acknowledged}), len(book.acknowledged), "an id was acknowledged twice")
        equal(sorted(set(book.finished) - {job for job, _ in effects})[:10], [], "a finish was acknowledged and is lost")
        known = {body for _, body in book.acknowledged} | book.doubtful
        strange = [body for _, body in there + effects if body not in known]
        equal(strange[:10], [])


if __name__ == "__main__":
    main()
