#!/usr/bin/env python3
"""A server on PostgreSQL whose owner's process, session or network fails, and the pitfalls of queues in PostgreSQL."""
# tier: long, waits
import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
import unittest

from harness import (PATIENCE, WEEKWHEELD, Case, Client, Server, check, compiled, equal, free_port, main, matches, need_server,
                     until)
from postgres import Postgres, Replica, Session, SqlError

OWNER = ("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = 1463900017 AND objid = 1 AND objsubid = 2 AND "
         "granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
READER = "SELECT pid FROM pg_stat_activity WHERE application_name = 'weekwheel reads for ' || (%s)" % OWNER


class Standby:
    """A server that waits for the store."""

    def __init__(self, url):
        self.port = free_port()
        self.process = subprocess.Popen([WEEKWHEELD, "--listen", f"127.0.0.1:{self.port}", "--store", url],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.is_owner = False
        self.until_it_says("standing by")

    def until_it_says(self, words):
        late = threading.Timer(PATIENCE, self.process.kill)
        late.start()
        while (line := self.process.stderr.readline()) and words not in line:
            pass
        late.cancel()
        matches(words, line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def client(self):
        """Before it owns the store, it would pass a client on."""
        if not self.is_owner:
            self.until_it_says("this server owns the store now")
        self.is_owner = True
        return Client(socket.create_connection(("127.0.0.1", self.port)))


class Relay:
    """Stands between a server and PostgreSQL. When it is cut, nothing passes, and nobody is told."""

    def __init__(self, postgres, database):
        self.path, self.is_cut = os.path.join(postgres.folder, ".s.PGSQL.5432"), threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://postgres@127.0.0.1:{self.listener.getsockname()[1]}/{database}?sslmode=disable"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                near, far = self.listener.accept()[0], socket.socket(socket.AF_UNIX)
                far.connect(self.path)
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self.copy, args=pair, daemon=True).start()

    def copy(self, source, to):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.is_cut.is_set():
                    return
                to.sendall(data)
            to.shutdown(socket.SHUT_RDWR)


def setUpModule():
    global postgres
    need_server()
    postgres = Postgres()
    postgres.psql("CREATE DATABASE prepared")
    postgres.set_up(database="prepared")


def tearDownModule():
    postgres.remove()


def until_it_owns(server):
    """It listens before it has the store, and another server may come first. Clients wait until one has it."""
    with server.client() as client:
        client.numbers("stats")


class PostgresCase(Case):
    """Each test has a database of its own."""
    count = 0

    def setUp(self):
        super().setUp()
        PostgresCase.count += 1
        self.name = f"test{PostgresCase.count}"
        postgres.psql(f"CREATE DATABASE {self.name} TEMPLATE prepared")
        self.addCleanup(postgres.psql, f"DROP DATABASE {self.name} WITH (FORCE)")
        self.url = postgres.url(database=self.name)
        self.session = self.another()
        self.addCleanup(self.session.close)

    def another(self):
        return postgres.session(database=self.name)

    def server(self, *arguments, **env):
        server = Server("--store", self.url, *arguments, **env)
        self.addCleanup(server.__exit__)
        until_it_owns(server)
        return server

    def crash(self, server):
        """PostgreSQL is killed, the server ends by itself, and PostgreSQL starts again."""
        self.session.close()
        postgres.kill()
        equal(server.process.wait(), 1)
        postgres.start()
        self.session = self.another()
        self.addCleanup(self.session.close)

    def quick_server(self):
        """Its ring turns twice a second."""
        library = compiled("support/postgres/short_ring.c", "-shared", "-fPIC", "-ldl")
        return self.server(LD_PRELOAD=library, RING_MS="500")

    def standby(self):
        standby = Standby(self.url)
        self.addCleanup(standby.__exit__)
        return standby

    def turns(self):
        return int(self.session.value("SELECT last_value FROM weekwheel.current"))

    def until_owner_sleeps(self):
        until(lambda: self.session.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 2 AND database = "
                                         "(SELECT oid FROM pg_database WHERE datname = current_database())") != "0", "the owner sleeps")

    def rows_in(self, table):
        return int(self.session.value(f"SELECT count(*) FROM weekwheel.{table}"))

    def put(self, body, more="", session=None):
        return int((session or self.session).value(f"SELECT weekwheel.put('default', '{body}'{more})"))

    def taken(self, client, wait=10):
        """The body of the next job, which is deleted; None if none comes."""
        answer = client.ask(f"reserve-with-timeout {wait}")
        if answer == "TIMED_OUT":
            return None
        equal(client.ask("delete " + answer.split()[1]), "DELETED")
        return answer.split("|", 1)[1]


# ---- Takeover

class Takeover(PostgresCase):
    def end_one(self, client):
        """Another client ends the job of which the former owner knows."""
        equal(self.taken(client), "one")

    def test_the_standby_delivers_when_the_owner_is_killed(self):
        owner, standby = self.server(), self.standby()
        self.put("one")
        self.put("later", ", delay => '1 second'")
        owner.stop(signal.SIGKILL)
        with standby.client() as client:
            equal([self.taken(client), self.taken(client)], ["one", "later"])

    def test_a_stopped_owner_is_fenced_and_ends(self):
        owner, standby = self.server(), self.standby()
        with owner.client() as client:
            client.put(b"one")
            owner.process.send_signal(signal.SIGSTOP)
            with standby.client() as other:
                self.end_one(other)
                client.send("put 0 0 60 4\r\nlost\r\n")
                owner.process.send_signal(signal.SIGCONT)
                check(b"INSERTED" not in self.all_of(client), "the former owner puts")
                equal(self.taken(other, 1), None)
        equal(owner.process.wait(), 1)

    def all_of(self, client):
        """What comes until the connection ends."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                client.more()
        return client.kept

    # The former owner delivers from its memory until it has noticed.
    def test_a_stopped_owner_delivers_nothing_that_has_ended(self):
        owner, standby = self.server(), self.standby()
        with owner.client() as client:
            client.put(b"one")
            owner.process.send_signal(signal.SIGSTOP)
            with standby.client() as other:
                self.end_one(other)
            client.send("reserve-with-timeout 0\r\n")
            owner.process.send_signal(signal.SIGCONT)
            check(b"RESERVED" not in self.all_of(client), "a job is delivered that has ended")

    def test_an_owner_whose_session_was_ended_delivers_nothing_that_has_ended(self):
        owner, standby = self.server(), self.standby()
        with owner.client() as client:
            client.put(b"one")
            self.until_owner_sleeps()
            self.session.rows(f"SELECT pg_terminate_backend(({OWNER})::int)")
            with standby.client() as other:
                self.end_one(other)
            client.send("reserve-with-timeout 0\r\n")
            check(b"RESERVED" not in self.all_of(client), "a job is delivered that has ended")

    def test_an_owner_that_is_cut_off_delivers_nothing_that_has_ended(self):
        relay = Relay(postgres, self.name)
        self.addCleanup(relay.listener.close)
        with Server("--store", relay.url) as owner, owner.client() as client:
            self.addCleanup(owner.process.kill)
            until_it_owns(owner)
            standby = self.standby()
            client.put(b"one")
            relay.is_cut.set()
            with standby.client() as other:
                self.end_one(other)
            client.send("reserve-with-timeout 0\r\n")
            client.socket.settimeout(5)
            got = self.all_of(client)
            owner.process.kill()
            check(b"RESERVED" not in got, "a job is delivered that has ended")

    def test_a_stopped_owner_leaves_no_lock(self):
        owner, standby = self.server(), self.standby()
        self.until_owner_sleeps()
        reader = self.session.value(READER)
        owner.process.send_signal(signal.SIGSTOP)
        try:
            standby.client().close()
            equal(self.session.rows("SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND pid = $1", reader), [])
        finally:
            owner.process.send_signal(signal.SIGCONT)

    # It is ended though a session of it is at work.
    def test_an_owner_whose_write_takes_long_stays_the_owner(self):
        owner, _ = self.server(), self.standby()
        self.session.rows("BEGIN; LOCK TABLE weekwheel.turn IN ACCESS EXCLUSIVE MODE")
        with self.another() as other:
            self.put("one", session=other)
        time.sleep(5)  # 3 s of silence, and a second until the next look
        self.session.rows("COMMIT")
        with owner.client() as client:
            equal(self.taken(client), "one")

    def test_a_server_ends_with_postgresql_and_has_all_jobs_again(self):
        server = self.server()
        with server.client() as client:
            for i in range(5):
                self.put(f"sql {i}")
                client.put(b"own %d" % i)
        self.crash(server)
        with self.server().client() as client:
            equal(sorted(self.taken(client) for _ in range(10)), [f"{kind} {i}" for kind in ("own", "sql") for i in range(5)])
            equal(self.taken(client, 0), None)


# ---- Pitfalls of queues in PostgreSQL

class Pitfalls(PostgresCase):
    def test_what_commits_out_of_order_is_delivered(self):
        with self.server().client() as client, self.another() as slow:
            slow.rows("BEGIN")
            self.put("slow", session=slow)
            self.put("quick")
            equal(self.taken(client), "quick")
            for i in range(100):
                self.put(i)
            slow.rows("COMMIT")
            equal(sorted(self.taken(client) for _ in range(101)), sorted(["slow", *map(str, range(100))]))

    def test_new_jobs_after_a_crash_are_seen(self):
        # Without a sync numbers of transactions and of jobs are given again.
        for i in range(3):
            server = self.server()
            with self.another() as session:
                session.rows("SET synchronous_commit = off")
                for _ in range(30):
                    session.rows("SELECT weekwheel.put('lost', 'x', delay => '1 hour')")
            self.crash(server)
            with self.server() as server, server.client() as client, self.another() as session:
                bodies = [f"{i}-{j}" for j in range(50)]
                for body in bodies:
                    self.put(body, session=session)
                equal(sorted(self.taken(client) for _ in bodies), sorted(bodies))
                equal(self.taken(client, 0), None)

    def stir(self, client):
        """A store that is left alone does a step of its work each second."""
        equal(client.ask("delete " + client.put(tube="stir").split()[1]), "DELETED")

    def until_turned(self, client, times):
        goal = self.turns() + times
        until(lambda: self.stir(client) or self.turns() >= goal, "the ring turns", 0.05)

    def test_an_open_put_keeps_its_part(self):
        with self.quick_server().client() as client, self.another() as slow:
            for i in range(4):
                slow.rows("BEGIN ISOLATION LEVEL REPEATABLE READ")
                slow.rows("SELECT 1")
                # The snapshot is older than the part.
                if i % 2:
                    self.until_turned(client, 2)
                self.put(f"slow {i}", session=slow)
                for j in range(20):
                    self.put(f"{i}-{j}")
                    time.sleep(0.05)  # two parts in all
                slow.rows("COMMIT")
                equal(len({self.taken(client) for _ in range(21)}), 21)
            self.until_turned(client, 5)
            until(lambda: self.stir(client) or self.rows_in("inbox") == self.rows_in("job") == 0, "nothing is left", 0.1)

    def test_a_delay_counts_from_the_call(self):
        with self.server().client() as client, self.another() as slow:
            slow.rows("BEGIN")
            time.sleep(1.5)
            called = time.time()
            self.put("x", ", delay => '2 seconds'", session=slow)
            slow.rows("COMMIT")
            equal(self.taken(client), "x")
            check(time.time() >= called + 2, "it came early")

    def test_a_prepared_put_is_delivered_once_when_it_is_committed(self):
        with self.another() as other:
            other.rows("BEGIN")
            self.put("later", session=other)
            other.rows("PREPARE TRANSACTION 'one'")
        server = self.server()
        with server.client() as client:
            equal(self.taken(client, 1), None)
        self.crash(server)
        with self.server().client() as client, self.another() as other:
            equal(self.taken(client, 1), None)
            other.rows("COMMIT PREPARED 'one'")
            equal([self.taken(client), self.taken(client, 1)], ["later", None])

    # A put that wakes the owner may not be prepared, unless it leaves that to the owner.
    def test_a_put_is_prepared_while_the_owner_sleeps(self):
        self.server()
        self.until_owner_sleeps()
        self.session.rows("BEGIN")
        self.session.rows("SET LOCAL weekwheel.wakes = off")
        self.put("x")
        self.session.rows("PREPARE TRANSACTION 'one'")
        self.session.rows("ROLLBACK PREPARED 'one'")

    def test_rows_are_taken_in_the_order_of_transactions(self):
        self.session.rows("SELECT setval('weekwheel.current', 3)")
        self.put("old", ", key => 'k'")
        job = self.put("cancelled")
        self.session.rows("SELECT setval('weekwheel.current', 4)")
        self.put("new", ", key => 'k'")
        self.session.rows("SELECT weekwheel.cancel($1)", job)
        with self.server().client() as client:
            equal([self.taken(client), self.taken(client, 1)], ["new", None])

    # The owner's --max-job-size is less than what SQL takes.
    def test_a_long_body_is_delivered(self):
        with self.server().client() as client:
            self.put("x" * 70000)
            equal(self.taken(client, 2), "x" * 70000)

    # A first reading that is cut short counts rows twice.
    def test_a_first_reading_that_fails_does_not_stop_the_ring(self):
        self.session.rows("""
            CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN IF cardinality(NEW.taken) > 0 THEN PERFORM pg_sleep(0.3); END IF; RETURN NEW; END';
            CREATE TRIGGER slow BEFORE INSERT ON weekwheel.turn FOR EACH ROW EXECUTE FUNCTION slow();
            SELECT weekwheel.put_many('default', (SELECT array_agg(repeat('x', 20000)) FROM generate_series(1, 3000)),
                delay => '1 hour')""")
        server = self.quick_server()
        reader = self.session.value(READER)
        until(lambda: self.session.value("SELECT sum(cardinality(taken)) FROM weekwheel.turn"), "some rows are taken")
        self.session.rows("SELECT pg_cancel_backend($1)", reader)
        self.session.rows("DROP FUNCTION slow() CASCADE")
        with server.client() as client:
            client.until_stats("current-jobs-delayed", 3000)
        end = time.monotonic() + 15
        while self.rows_in("inbox_0") and time.monotonic() < end:
            time.sleep(0.2)
        equal(self.rows_in("inbox_0"), 0)

    def test_a_limit_of_idle_sessions_does_not_end_the_owner(self):
        self.session.rows(f"ALTER DATABASE {self.name} SET idle_session_timeout = '250ms'")
        server = self.server()
        time.sleep(1.5)
        equal(server.process.poll(), None)


class Restored(PostgresCase):
    # A row's transaction is one of the other cluster's, which is open here.
    def test_a_restored_job_is_delivered_once(self):
        self.session.rows("DO $$ BEGIN FOR i IN 1..4000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$")
        self.put("dumped")
        xid = int(self.session.value("SELECT xid FROM weekwheel.inbox"))
        with Postgres() as other:
            self.restore(other)
            with other.session() as session:
                while (now := int(session.value("SELECT pg_current_xact_id()::text"))) < xid - 1:
                    pass
                check(now == xid - 1, "the other cluster is behind this one")
                session.rows("BEGIN")
                equal(int(session.value("SELECT pg_current_xact_id()::text")), xid)
                # No server takes them before setup has taken them over.
                refused = subprocess.run([WEEKWHEELD, "--store", other.url(), "-l", "127.0.0.1:0"], text=True,
                                         stderr=subprocess.PIPE, timeout=60)
                equal(refused.returncode, 1)
                check("weekwheel postgres setup" in refused.stderr, refused.stderr)

    def restore(self, other):
        """Carry the tables over to another cluster."""
        path = os.path.join(other.folder, "dump.sql")
        other.program("pg_dump", "-h", postgres.folder, "-U", "postgres", "-n", "weekwheel", "-f", path, self.name)
        other.program("psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", other.folder, "-U", "postgres", "-f", path, "postgres")

    def test_a_dump_that_setup_takes_over_has_each_job_once(self):
        server = self.server()
        for i in range(20):
            self.put(i, ", delay => '1 second'" if i % 2 else "")
        with server.client() as client:
            client.until_stats("total-jobs", 20)
            equal(self.taken(client), "0")
        equal(server.stop(), 0)
        self.put("20")
        with Postgres() as other:
            self.restore(other)
            other.set_up()
            with Server("--store", other.url()) as server, server.client() as client:
                equal(sorted(int(self.taken(client)) for _ in range(20)), list(range(1, 21)))
                equal(self.taken(client, 1), None)


# ---- A primary that fails

class Failover(Case):
    def token(self, client):
        """That of a delivery."""
        client.put(b"token", tube="tokens")
        client.ask("watch tokens")
        client.ask("ignore default")
        job = client.ask("reserve").split()[1]
        token = int(client.jobs(f"list-delayed id={job}")[0]["token"])
        equal(client.ask("delete " + job), "DELETED")
        client.ask("watch default")
        client.ask("use default")
        return token

    # Under remote_apply each commit would wait for the standby, which here waits for the report for ever.
    def test_a_report_on_the_standby_holds_up_no_commit(self):
        library = compiled("support/postgres/short_ring.c", "-shared", "-fPIC", "-ldl")
        with Postgres() as primary, Replica(primary, max_standby_streaming_delay="-1") as replica:
            primary.set_up()
            until(lambda: replica.psql("SELECT to_regclass('weekwheel.turn')") != [(None,)], "the standby has the tables")
            primary.psql("ALTER DATABASE postgres SET synchronous_commit = remote_apply")
            with replica.session() as report, primary.session() as session, \
                    Server("--store", primary.url(), LD_PRELOAD=library, RING_MS="200") as server, server.client() as client:
                session.rows("SET synchronous_commit = on")
                report.rows("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM weekwheel.turn, weekwheel.inbox")
                goal = int(session.value("SELECT last_value FROM weekwheel.current")) + 6
                while int(session.value("SELECT last_value FROM weekwheel.current")) < goal:
                    session.rows("SELECT weekwheel.put('default', 'x')")
                    equal(client.ask("delete " + client.ask("reserve-with-timeout 10").split()[1]), "DELETED")
                until(lambda: report.value("SELECT pg_last_wal_replay_lsn() < pg_last_wal_receive_lsn()") == "t",
                      "the standby waits for the report")

    def test_what_was_acknowledged_survives_the_primary(self):
        with Postgres() as primary:
            primary.set_up()
            with Replica(primary) as replica:
                url = f"postgresql://postgres@/postgres?host={primary.folder},{replica.folder}&target_session_attrs=read-write"
                acknowledged = []
                with Server("--store", url) as server, server.client() as client, Session(url) as session, \
                        Standby(url) as standby:
                    before = self.token(client)

                    def put():
                        with contextlib.suppress(SqlError, EOFError, OSError):
                            for i in range(10 ** 6):
                                session.rows("SELECT weekwheel.put('default', $1)", f"sql {i}")
                                acknowledged.append(f"sql {i}")
                                if not client.put(b"own %d" % i).startswith("INSERTED"):
                                    return
                                acknowledged.append(f"own {i}")

                    thread = threading.Thread(target=put)
                    thread.start()
                    until(lambda: len(acknowledged) > 100 or not thread.is_alive(), "some jobs are put")
                    primary.kill()
                    thread.join()
                    equal([server.process.wait(), standby.process.wait()], [1, 1])
                replica.promote()
                replica.configure(synchronous_standby_names="")
                with Server("--store", url) as server, server.client() as client:
                    # As if the standby had missed the last starts of servers, tokens leave room for 4096 of them.
                    check(self.token(client) >= 4096 << 40 > before, "tokens grow with the timeline")
                    got = []
                    while (answer := client.ask("reserve-with-timeout 1")) != "TIMED_OUT":
                        equal(client.ask("delete " + answer.split()[1]), "DELETED")
                        got.append(answer.split("|", 1)[1])
                print(f"{len(acknowledged)} acknowledged", flush=True)
                equal(sorted(set(acknowledged) - set(got)), [])
                equal(len(got), len(set(got)))


# ---- A snapshot that is held

class HeldSnapshot(PostgresCase):
    def test_no_row_dies_and_the_ring_turns(self):
        server = self.quick_server()
        with self.another() as held, server.client() as client:
            held.rows("BEGIN ISOLATION LEVEL REPEATABLE READ")
            held.rows("SELECT count(*) FROM pg_class")
            goal = self.turns() + 8

            def put_and_take():
                self.session.rows("SELECT weekwheel.put_many('default', array_fill('x'::text, '{30}'))")
                equal([self.taken(client) for _ in range(30)], ["x"] * 30)
                return self.turns() >= goal

            until(put_and_take, "the ring turns", 0.02)
            self.session.rows("SELECT pg_stat_force_next_flush()")
            equal(self.session.rows("SELECT relname, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = 'weekwheel' AND "
                                    r"relname ~ '^(inbox|turn|job|gone)_' AND n_dead_tup > 0"), [])
            equal(held.value("SELECT 1"), "1")


if __name__ == "__main__":
    main()
