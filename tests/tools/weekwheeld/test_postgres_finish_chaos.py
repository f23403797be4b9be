#!/usr/bin/env python3
"""Workers that work and finish in one transaction, on two servers of which one part after the other fails.

A job's work is a row in a table that forbids no second one. The time to run is a second, and many transactions are slower,
before or after they call finish. Some are rolled back, some lose their connection; some jobs are released, by SQL or by the protocol,
or deleted. At the end each job that was committed has had its effect once, but for those that were deleted: none twice, none lost.

WW_SECONDS is how long it lasts (12), and WW_SEED the seed.
"""
# tier: long, waits
import json
import socket
import threading
import time

from harness import Case, Client, check, compiled, equal, main, need_server, seed, until
from postgres import SqlError
from test_postgres_chaos import SILENT, Actor, Chaos

WRITERS, WORKERS = 2, 8
LATE = "WW001"
LOST = ("", "08", "57")  # classes of the states of a connection that is gone


class Ledger:
    """What all have heard."""

    def __init__(self):
        self.lock = threading.Lock()
        self.committed, self.unknown, self.rolled_back, self.deleted = set(), set(), set(), set()
        self.counts = {}

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1


class SqlActor(Actor):
    session = None
    over_soon = False

    def has_session(self):
        try:
            self.session = self.session or self.chaos.postgres.session()
        except SqlError:
            time.sleep(0.05)
        return self.session is not None

    def lose_session(self, error):
        check(error.state[:2] in LOST, error)
        self.session.close()
        self.session = None


class Writer(SqlActor):
    count = 0

    def turn(self):
        time.sleep(self.random.random() * 0.1)
        if not self.has_session():
            return
        self.count += 1
        body = f"{self.number}-{self.count}"
        will_commit = self.random.random() > 0.1
        more = self.random.choice(("", "", ", attempts => 1000, backoff => '0.1 s'", ", delay => '0.5 s'"))
        try:
            self.session.rows(f"BEGIN; SELECT weekwheel.put('work', '{body}', run => '1 s'{more})")
        except SqlError as error:
            self.lose_session(error)
            return
        try:
            self.session.rows("COMMIT" if will_commit else "ROLLBACK")
        except SqlError as error:
            self.chaos.ledger.unknown.add(body)
            self.lose_session(error)
            return
        (self.chaos.ledger.committed if will_commit else self.chaos.ledger.rolled_back).add(body)


class Worker(SqlActor):
    client = None

    def turn(self):
        if not self.has_session() or not self.has_client():
            return
        try:
            answer = self.client.ask("reserve-with-timeout 1")
            if answer.startswith("RESERVED"):
                self.work(int(answer.split()[1]), answer.split("|", 1)[1])
            else:
                time.sleep(0.02)  # as DEADLINE_SOON comes at once
        except (OSError, EOFError):
            self.lose_client()

    def work(self, job, body):
        dice = 1 if self.over_soon else self.random.random()
        if dice < 0.04:
            self.lose_client()
        elif dice < 0.08:
            check(self.client.ask(f"release {job} 0 0") in ("RELEASED", "NOT_FOUND", "INTERNAL_ERROR"), job)
        elif dice < 0.12:
            self.chaos.ledger.deleted.add(body)  # also if its answer is lost
            check(self.client.ask(f"delete {job}") in ("DELETED", "NOT_FOUND", "INTERNAL_ERROR"), job)
        else:
            token = self.client.token(job)
            if token:
                self.transact(job, token, body)

    def transact(self, job, token, body):
        slow = 0 if self.over_soon else self.random.choice((0, 0, 0, 0.1, 0.9, 1.1, 2.2))
        early = self.random.random() < 0.5
        releases = not self.over_soon and self.random.random() < 0.15
        end = f"release({job}, {token}, '0.1 s')" if releases else f"finish({job}, {token})"
        try:
            self.session.rows("BEGIN" if self.random.random() < 0.8 else "BEGIN ISOLATION LEVEL REPEATABLE READ")
            self.session.rows(f"INSERT INTO {'tries' if releases else 'effects'} VALUES ('{body}', {token})")
            if early:
                self.session.rows("SELECT weekwheel." + end)
            time.sleep(slow)
            if not early:
                self.session.rows("SELECT weekwheel." + end)
            will_commit = self.over_soon or self.random.random() > 0.15
            self.session.rows("COMMIT" if will_commit else "ROLLBACK")
            self.chaos.ledger.count("rolled back" if not will_commit else "released" if releases else "finished")
        except SqlError as error:
            if error.state not in (LATE, "40001"):
                self.lose_session(error)
                return
            self.chaos.ledger.count("too late")
            try:
                self.session.rows("ROLLBACK")
            except SqlError as lost:
                self.lose_session(lost)

    def has_client(self):
        if self.client:
            return True
        try:
            connection = socket.create_connection(("127.0.0.1", self.random.choice(self.chaos.ports)), SILENT)
            self.client = TokenClient(connection)
            connection.settimeout(SILENT)
            self.client.ask("watch work")
        except (OSError, EOFError):
            time.sleep(0.02)
            return False
        return True

    def lose_client(self):
        self.client.close()
        self.client = None


class TokenClient(Client):
    def token(self, job):
        """That of the delivery, or None. If the touch succeeds, this connection still has the job, and the token is its own."""
        answer = self.ask(f"list-delayed id={job}")
        token = json.loads(answer.split("|", 1)[1] or "{}").get("token") if answer.startswith("OK") else None
        return token if token and self.ask(f"touch {job}") == "TOUCHED" else None


class FinishChaos(Chaos):
    def __init__(self, number, library):
        super().__init__(number, library)
        self.ledger = Ledger()


class PostgresFinishChaos(Case):
    def chaos(self, *failures):
        need_server()
        chaos = FinishChaos(seed(), compiled("support/postgres/short_ring.c", "-shared", "-fPIC", "-ldl"))
        self.addCleanup(chaos.postgres.remove)
        chaos.postgres.set_up()
        chaos.postgres.psql("CREATE TABLE effects (body text, token bigint); CREATE TABLE tries (LIKE effects)")
        writers = [Writer(chaos, i) for i in range(WRITERS)]
        workers = [Worker(chaos, i) for i in range(WORKERS)]
        chaos.servers.start()
        try:
            for thread in (*writers, *workers):
                thread.start()
            chaos.fail(*failures)
            for writer in writers:
                writer.end()
            for worker in workers:
                worker.over_soon = True
            until(lambda: chaos.jobs() == 0 and chaos.rows_of_jobs() == ("0", "0"), "all jobs have ended", 0.2)
            for worker in workers:
                worker.end()
            self.judge(chaos)
        finally:
            chaos.servers.end()

    def judge(self, chaos):
        ledger = chaos.ledger
        effects = dict(chaos.postgres.psql("SELECT body, count(*) FROM effects GROUP BY body"))
        print(f"{len(ledger.committed)} committed, {len(effects)} with an effect, {len(ledger.deleted)} deleted, "
              f"{ledger.counts}, {chaos.servers.ends} ends of servers, {chaos.counts}", flush=True)
        equal([body for body, count in effects.items() if count != "1"], [], "an effect twice")
        equal(chaos.postgres.psql("SELECT body FROM tries GROUP BY body, token HAVING count(*) > 1"), [], "a delivery released twice")
        equal(ledger.committed - set(effects) - ledger.deleted, set(), "lost")
        equal(ledger.rolled_back & set(effects), set(), "rolled back, and done")
        for what in ("finished", "released", "rolled back", "too late"):
            check(ledger.counts.get(what), f"nothing was {what}: {ledger.counts}")

    def test_kills(self):
        self.chaos("kill_owner", "kill_owner", "kill_postgres")

    def test_stops_and_ended_sessions(self):
        self.chaos("stop_owner", "end_session", "end_session", "kill_owner")


main()
