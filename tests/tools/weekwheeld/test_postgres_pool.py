#!/usr/bin/env python3
"""Clients put by SQL through pgbouncer in transaction mode, and the server is connected directly. A server behind the pool is
refused: its lock would be of a session that the pool hands to others."""
# tier: check, waits
import subprocess
import threading

from harness import PATIENCE, WEEKWHEELD, Case, Server, check, equal, main, matches, need_server, until
from postgres import Postgres, Session, SqlError
from postgres_pool import Pool

WAKE = "1463900017, 2"
CLIENTS, ROUNDS, SESSIONS = 24, 8, 3


def setUpModule():
    global postgres
    need_server()
    postgres = Postgres()
    postgres.set_up()
    postgres.psql("CREATE ROLE app; SELECT weekwheel.allow('app', 'default')")


def tearDownModule():
    postgres.remove()


class PoolCase(Case):
    """Each test has an empty inbox and a pool of its own."""

    def setUp(self):
        super().setUp()
        postgres.psql("TRUNCATE weekwheel.inbox, weekwheel.turn")

    def pool(self, sessions):
        pool = Pool(postgres, sessions)
        self.addCleanup(pool.__exit__)
        return pool

    def session(self, url=None):
        session = Session(url or postgres.url())
        self.addCleanup(session.close)
        return session


class Clients(PoolCase):
    def test_many_put_cancel_and_move_in_transactions(self):
        pool, wanted, wrong = self.pool(SESSIONS), [], []

        def put(number):
            try:
                with Session(pool.url) as session:
                    for turn in range(ROUNDS):
                        wanted.extend(self.transaction(session, f"{number}-{turn}", turn))
            except BaseException as error:
                wrong.append(error)

        with Server("--store", postgres.url()) as server, server.client() as client:
            threads = [threading.Thread(target=put, args=(number,)) for number in range(CLIENTS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            equal(wrong, [])
            got = []
            while (answer := client.ask("reserve-with-timeout 2")) != "TIMED_OUT":
                got.append(answer.split("|", 1)[1])
                equal(client.ask("delete " + answer.split()[1]), "DELETED")
            equal(sorted(got), sorted(wanted))

    def transaction(self, session, name, turn):
        """Two in four of its jobs come. Returns the bodies of those that do."""
        session.rows("BEGIN")
        session.rows("SET LOCAL ROLE app")
        session.rows("SELECT weekwheel.put('default', $1::text)", name)
        session.rows("SELECT weekwheel.put('default', $1::text, key => $1, delay => '1 hour')", name + "-cancelled")
        session.rows("SELECT weekwheel.put('default', $1::text, key => $1, delay => '1 hour')", name + "-moved")
        session.rows("SELECT weekwheel.put_many('default', ARRAY[$1, $1 || 'b'])", name + "-many")
        session.rows("SELECT weekwheel.cancel('default', $1::text)", name + "-cancelled")
        session.rows("SELECT weekwheel.move('default', $1::text, delay => '0')", name + "-moved")
        session.rows("ROLLBACK" if turn % 4 == 3 else "COMMIT")
        return [] if turn % 4 == 3 else [name + more for more in ("", "-moved", "-many", "-manyb")]

    # The role and the right are those of the transaction, and the session goes on to others.
    def test_rights_are_those_of_the_transaction(self):
        pool = self.pool(1)
        app, other = self.session(pool.url), self.session(pool.url)
        app.rows("BEGIN; SET LOCAL ROLE app")
        with self.assertRaises(SqlError) as raised:
            app.rows("SELECT weekwheel.put('bills', '')")
        equal(raised.exception.state, "42501")
        app.rows("ROLLBACK")
        other.rows("SELECT weekwheel.put('bills', '')")
        app.rows("BEGIN; SET LOCAL ROLE app; SELECT weekwheel.put('default', ''); COMMIT")
        equal(other.value("SELECT current_setting('role')"), "none")
        equal(other.value("SELECT count(*) FROM weekwheel.inbox"), "2")


class Waking(PoolCase):
    # The test plays the owner, who listens directly.
    def setUp(self):
        super().setUp()
        self.pooled = self.pool(1)
        self.owner = self.session()
        self.owner.rows("LISTEN weekwheel")

    def sleeps(self):
        asleep = self.owner.value(f"SELECT pg_try_advisory_lock({WAKE})") == "t"
        if asleep:
            self.owner.rows(f"SELECT pg_advisory_unlock({WAKE})")
        return asleep

    def test_a_put_wakes_the_owner(self):
        self.owner.rows(f"SELECT pg_advisory_lock({WAKE})")
        client = self.session(self.pooled.url)
        for put in ("put('default', '')", "put_many('default', '{a}'::text[])", "cancel('default', 'k')",
                    "move('default', 'k', delay => '0')"):
            client.rows("SELECT weekwheel." + put)
            equal(self.owner.notified(), 1, put)

    # A lock of the session would stay, as the session does.
    def test_the_owner_may_sleep_when_the_transaction_has_ended(self):
        for end in ("COMMIT", "ROLLBACK", "leaves"):
            client = self.session(self.pooled.url)
            client.rows("BEGIN; SELECT weekwheel.put('default', '')")
            check(not self.sleeps(), "the owner falls asleep before the transaction has ended")
            if end == "leaves":
                client.close()
                until(self.sleeps, "the session has ended")
            else:
                client.rows(end)
                check(self.sleeps(), f"a lock stays: {end}")
            self.session(self.pooled.url).rows("SELECT 1")
        equal(self.owner.notified(), 0)


class Refused(PoolCase):
    def test_a_server_behind_the_pool_says_what_to_do_and_leaves_the_sessions_as_they_were(self):
        settings = ("SELECT string_agg(name || ' ' || setting, ', ' ORDER BY name) FROM pg_settings WHERE name IN "
                    "('search_path', 'synchronous_commit', 'enable_seqscan', 'statement_timeout')")
        pool = self.pool(1)
        before = self.session(pool.url).value(settings)
        for _ in range(2):
            done = subprocess.run([WEEKWHEELD, "--listen", "127.0.0.1:0", "--store", pool.url], stderr=subprocess.PIPE,
                                  stdin=subprocess.DEVNULL, text=True, check=False, timeout=PATIENCE)
            equal(done.returncode, 2, done.stderr)
            matches("a pool of connections: name PostgreSQL itself", done.stderr)
        equal(self.session(pool.url).value(settings), before)
        equal(postgres.psql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), [("0",)])


if __name__ == "__main__":
    main()
