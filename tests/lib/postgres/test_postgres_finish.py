#!/usr/bin/env python3
"""Finishing by SQL: what it appends, what it refuses and to whom, in each level of isolation, and what setup makes of old tables.

No owner runs: the test reads the tables, and moves the floor as an owner does.
"""
# tier: check
from harness import WEEKWHEEL, Case, check, equal, main, matches, run
from postgres import Postgres, SqlError

LATE = "WW001"
FLOOR = (3 << 40) | 1


def setUpModule():
    global server
    server = Postgres()
    server.set_up()
    server.psql("CREATE ROLE app LOGIN; CREATE ROLE other LOGIN")


def tearDownModule():
    server.remove()


class FinishCase(Case):
    """Each test has a session of the superuser's, and tables without rows."""

    def setUp(self):
        super().setUp()
        self.session = server.session()
        self.addCleanup(self.session.close)
        self.session.rows(f"TRUNCATE weekwheel.inbox, weekwheel.ended, weekwheel.rights; SELECT setval('weekwheel.floor', {FLOOR}), "
                          "setval('weekwheel.opened', 1)")

    def refused(self, sql, state, *patterns, session=None):
        """The error by its parts: its message and hint match a pattern each."""
        with self.assertRaises(SqlError) as raised:
            (session or self.session).rows(sql)
        error = raised.exception
        equal(error.state, state, str(error))
        for pattern, text in zip(patterns, (error.message, error.hint)):
            matches(pattern, text)

    def counts(self):
        """The rows of the inbox, and of the ends."""
        return self.session.rows("SELECT (SELECT count(*) FROM weekwheel.inbox), (SELECT count(*) FROM weekwheel.ended)")[0]


class Finish(FinishCase):
    def test_it_claims_the_delivery_and_asks_the_owner(self):
        self.session.rows(f"SELECT weekwheel.finish(7, {FLOOR + (5 << 18)})")
        equal(self.session.rows("SELECT verb, (options).job, (options).token, id % 2, ring, tube, body FROM weekwheel.inbox"),
              [("3", "7", str(FLOOR + (5 << 18)), "1", "0", None, None)])
        equal(self.session.rows("SELECT part, job, token, by_owner FROM weekwheel.ended"),
              [("1", "7", str(FLOOR + (5 << 18)), "f")])

    def test_a_second_one_is_refused_with_a_hint(self):
        self.session.rows(f"SELECT weekwheel.finish(7, {FLOOR})")
        self.refused(f"SELECT weekwheel.finish(7, {FLOOR})", LATE, f"^the delivery of job 7 with token {FLOOR} has ended$",
                     "^Roll back: ")
        equal(self.counts(), ("1", "1"))
        # Another delivery, and another job, are others.
        self.session.rows(f"SELECT weekwheel.finish(7, {FLOOR + 1}), weekwheel.finish(9, {FLOOR})")
        equal(self.counts(), ("3", "3"))

    def test_one_that_was_rolled_back_is_none(self):
        for end in ("ROLLBACK", "ROLLBACK TO s; COMMIT"):
            self.session.rows(f"BEGIN; SAVEPOINT s; SELECT weekwheel.finish(7, {FLOOR})")
            self.session.rows(end)
            equal(self.counts(), ("0", "0"))
        self.session.rows(f"SELECT weekwheel.finish(7, {FLOOR})")
        equal(self.counts(), ("1", "1"))

    def test_below_the_floor_nothing_counts(self):
        self.refused(f"SELECT weekwheel.finish(7, {FLOOR - 1})", LATE, "has ended", "another server")
        equal(self.counts(), ("0", "0"))

    def test_bad_arguments(self):
        for arguments, state, pattern in (("NULL, 1", "22004", "^id is null"), ("1, NULL", "22004", "^token is null"),
                                          ("0, 1", "22003", "^id is 0"), ("1, -1", "22003", "token is -1")):
            self.refused(f"SELECT weekwheel.finish({arguments})", state, pattern)
        equal(self.counts(), ("0", "0"))


class FinishAndPut(FinishCase):
    def test_it_is_both(self):
        options = ("priority => 7, at => '2030-01-01', run => '5 s', attempts => 3, backoff => '1 s', backoff_max => '1 min', key => 'k', "
                   "mode => 'if-absent', \"group\" => 'g', keep => '1 day', every => '1 hour', missed => 'skip', skip => '1 s', spread => '1 day'")
        for number, body in enumerate(("'ä'::text", r"'\x00ff'::bytea", "'[1]'::jsonb")):
            self.session.rows("TRUNCATE weekwheel.inbox")
            before = self.session.value("SELECT last_value FROM weekwheel.ids")
            job = self.session.value(f"SELECT weekwheel.finish_and_put(7, {FLOOR + number}, 'next', {body}, {options})")
            equal(self.session.rows("SELECT verb, (options).job, (options).token, tube FROM weekwheel.inbox WHERE id <> " + job),
                  [("3", "7", str(FLOOR + number), None)])
            check(int(job) > 2 * int(before), "it returns the id of the job that is put")
            self.session.rows(f"SELECT weekwheel.put('next', {body}, {options})")
            columns = "verb, tube, due, options, body"
            one, other = self.session.rows(f"SELECT {columns} FROM weekwheel.inbox WHERE verb = 0")
            equal(one, other)
            check(not one[2].startswith("2030-01-01 00:00:00"), "it is spread")
        for argument in (r"key_bytes => '\x01', debounce => '1 s'", "key => 'k', \"unique\" => '1 s'", "delay => '1 hour'",
                         r"group_bytes => '\x01'"):
            self.session.rows("TRUNCATE weekwheel.inbox, weekwheel.ended")
            self.session.rows(f"SELECT weekwheel.finish_and_put(7, {FLOOR}, 'next', 'x', {argument}), "
                              f"weekwheel.put('next', 'x', {argument})")
            equal(self.session.value('SELECT count(DISTINCT (due > now() + interval \'30 min\', options)) '
                                     "FROM weekwheel.inbox WHERE verb = 0"), "1", argument)

    def test_both_or_neither(self):
        self.session.rows(f"SELECT weekwheel.finish(7, {FLOOR})")
        self.refused(f"SELECT weekwheel.finish_and_put(7, {FLOOR}, 'next', 'x')", LATE, "has ended")
        self.refused(f"SELECT weekwheel.finish_and_put(7, {FLOOR + 1}, 'next', 'x', priority => -1)", "22003", "^priority")
        equal(self.counts(), ("1", "1"))


class ReleaseAndBury(FinishCase):
    def test_they_claim_the_delivery_too(self):
        before = float(self.session.value("SELECT extract(epoch FROM clock_timestamp())"))
        for number, (call, row) in enumerate((
                ("release({}, delay => '1 hour', priority => 4294967295, error => 'ä')", ("4", "4294967295", "f", r"\xc3a4")),
                ("release({})", ("4", None, "t", None)), ("release({}, '0')", ("4", None, "f", None)),
                ("bury({})", ("5", None, "t", None)), ("bury({}, 7, 'why')", ("5", "7", "t", r"\x776879")))):
            self.session.rows("TRUNCATE weekwheel.inbox")
            self.session.rows("SELECT weekwheel." + call.format(f"7, {FLOOR + number}"))
            equal(self.session.rows("SELECT (options).job, (options).token, verb, (options).priority, due IS NULL, body FROM weekwheel.inbox"),
                  [("7", str(FLOOR + number), *row)])
            due = self.session.value("SELECT extract(epoch FROM due) FROM weekwheel.inbox")
            check(due is None or float(due) >= before + (3600 if "hour" in call else 0), due)
            for other in ("finish", "release", "bury"):
                self.refused(f"SELECT weekwheel.{other}(7, {FLOOR + number})", LATE, "has ended")

    def test_bad_arguments(self):
        for call, state, pattern in (("release(7, 1, delay => '-1 s')", "22003", "^delay"),
                                     ("release(7, 1, priority => -1)", "22003", "^priority is -1"),
                                     ("bury(7, 1, 4294967296)", "22003", "^priority"), ("bury(NULL, 1)", "22004", "^id is null"),
                                     ("release(7, NULL)", "22004", "^token is null"), ("bury(7, 1)", LATE, "has ended")):
            self.refused("SELECT weekwheel." + call, state, pattern)
        equal(self.counts(), ("0", "0"))


    def test_of_an_error_the_inbox_keeps_little(self):
        self.session.rows(f"SELECT weekwheel.bury(7, {FLOOR}, error => repeat('ä', 10000000)), "
                          f"weekwheel.release(8, {FLOOR}, error => repeat('x', 10000000))")
        equal(self.session.rows("SELECT max(octet_length(body)), min(octet_length(body)) FROM weekwheel.inbox"), [("510", "255")])


class Transactions(FinishCase):
    LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")

    def test_of_two_one_commits_in_each_level_of_isolation(self):
        for number, level in enumerate(self.LEVELS):
            token = FLOOR + number
            with server.session() as late:
                late.rows(f"BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM weekwheel.about")
                self.session.rows(f"BEGIN ISOLATION LEVEL {level}")
                self.session.rows(f"SELECT weekwheel.finish(7, {token})")
                self.session.rows("COMMIT")
                # A snapshot that does not see the first one's row is told to try again, and then learns why.
                self.refused(f"SELECT weekwheel.finish(7, {token})", LATE if number == 0 else "40001", session=late)
                late.rows("ROLLBACK")
                self.refused(f"SELECT weekwheel.finish(7, {token})", LATE, session=late)
        equal(self.counts(), ("3", "3"))

    def test_the_floor_is_looked_at_again_at_the_commit(self):
        for level in self.LEVELS:
            for before in ("SELECT 1", "SET CONSTRAINTS ALL DEFERRED"):
                with server.session() as late:
                    late.rows(f"BEGIN ISOLATION LEVEL {level}; {before}; SELECT weekwheel.finish(7, {FLOOR})")
                    self.session.rows(f"SELECT setval('weekwheel.floor', {FLOOR + 1})")
                    self.refused("COMMIT", LATE, "^the delivery of job 7", session=late)
                self.session.rows(f"SELECT setval('weekwheel.floor', {FLOOR})")
                equal(self.counts(), ("0", "0"))

    def test_also_where_triggers_are_off_as_in_a_replica(self):
        with server.session() as late:
            late.rows(f"SET session_replication_role = replica; BEGIN; SELECT weekwheel.finish(7, {FLOOR})")
            self.session.rows(f"SELECT setval('weekwheel.floor', {FLOOR + 1})")
            self.refused("COMMIT", LATE, session=late)
        equal(self.counts(), ("0", "0"))

    def test_who_has_looked_is_waited_for(self):
        take = "SELECT pg_try_advisory_xact_lock(1463900017, 4)"
        with server.session() as late:
            late.rows(f"BEGIN; SELECT weekwheel.finish(7, {FLOOR})")
            equal(self.session.value(take), "t", "a transaction that only has called it is not")
            late.rows("SET CONSTRAINTS ALL IMMEDIATE")
            equal(self.session.value(take), "f")
            self.refused(f"SELECT weekwheel.finish(8, {FLOOR - 1})", LATE, session=late)
        equal(self.session.value(take), "t")
        with server.session() as prepared:
            prepared.rows(f"SET weekwheel.wakes = off; BEGIN; SELECT weekwheel.finish(7, {FLOOR}); PREPARE TRANSACTION 'p'")
            equal(self.session.value(take), "f")
            prepared.rows("COMMIT PREPARED 'p'")
        equal(self.session.value(take), "t")
        equal(self.counts(), ("1", "1"))


class Revoke(FinishCase):
    """What the owner asks."""

    def test_who_comes_first_counts(self):
        equal([self.session.value(f"SELECT weekwheel.revoke(7, {FLOOR})") for _ in range(2)], ["t", "t"])
        self.refused(f"SELECT weekwheel.finish(7, {FLOOR})", LATE)
        self.session.rows(f"SELECT weekwheel.finish(8, {FLOOR})")
        equal(self.session.value(f"SELECT weekwheel.revoke(8, {FLOOR})"), "f")

    def test_it_waits_for_nobody(self):
        with server.session() as worker:
            worker.rows(f"BEGIN; SELECT weekwheel.finish(7, {FLOOR})")
            equal(self.session.value(f"SELECT weekwheel.revoke(7, {FLOOR})"), "f")
            worker.rows("ROLLBACK")
        equal(self.session.value(f"SELECT weekwheel.revoke(7, {FLOOR})"), "t")
        # It changes nothing for the session.
        equal(self.session.rows("SELECT current_setting('lock_timeout'), current_setting('synchronous_commit')"), [("0", "on")])


class Rights(FinishCase):
    def test_it_takes_the_right_to_all_tubes(self):
        self.session.rows("SELECT weekwheel.allow('other', 'mail')")
        for role in ("app", "other"):
            with server.session(role) as session:
                self.refused(f"SELECT weekwheel.finish(7, {FLOOR})", "42501", session=session)
                for call in (f"finish_and_put(7, {FLOOR}, 'mail', 'x')", f"release(7, {FLOOR})", f"bury(7, {FLOOR})"):
                    self.refused("SELECT weekwheel." + call, "42501", session=session)
        self.session.rows("SELECT weekwheel.allow('app')")
        with server.session("app") as session:
            session.rows(f"BEGIN; SELECT weekwheel.finish(7, {FLOOR}); COMMIT")
            session.rows(f"SELECT weekwheel.finish_and_put(7, {FLOOR + 2}, 'next', 'x')")
            for sql in (f"SELECT weekwheel.revoke(7, {FLOOR})", "TABLE weekwheel.ended", "SELECT setval('weekwheel.floor', 1)"):
                self.refused(sql, "42501", session=session)
        self.session.rows("SELECT weekwheel.forbid('app')")
        with server.session("app") as session:
            self.refused(f"SELECT weekwheel.finish(7, {FLOOR + 1})", "42501", session=session)
        equal(self.counts(), ("3", "2"))


class Recovery(Case):
    def test_after_a_crash_nothing_ends_before_an_owner_has_opened_the_jobs(self):
        server.psql(f"SELECT setval('weekwheel.floor', {FLOOR}), setval('weekwheel.opened', 1)")
        server.restart()
        server.psql(f"SELECT weekwheel.finish(77, {FLOOR})")
        server.kill()
        server.start()
        for call in ("finish", "release", "bury"):
            with self.assertRaises(SqlError) as raised:
                server.psql(f"SELECT weekwheel.{call}(77, {FLOOR + 1})")
            equal(raised.exception.state, LATE)
            matches("PostgreSQL was recovered", raised.exception.hint)
        server.psql("SELECT setval('weekwheel.opened', 1)")
        server.psql(f"SELECT weekwheel.finish(77, {FLOOR + 1})")


class Setup(Case):
    def test_it_mends_triggers_that_do_not_always_fire(self):
        for table in ("ended", "ended_2"):
            server.psql(f"ALTER TABLE weekwheel.{table} ENABLE TRIGGER check_floor")
        problems = run(1, WEEKWHEEL, "postgres", "check", server.url())
        check("check_floor of 5 tables" in problems.out + problems.err, problems)
        server.set_up()
        run(0, WEEKWHEEL, "postgres", "check", server.url())

    def test_nobody_may_call_a_function_by_default(self):
        server.psql("CREATE DATABASE granting")
        for objects in ("FUNCTIONS", "SCHEMAS"):
            server.psql(f"ALTER DEFAULT PRIVILEGES GRANT ALL ON {objects} TO other", database="granting")
        server.set_up(database="granting")
        calls = ("SELECT weekwheel.put('mail', 'x')", "SELECT weekwheel.all_tubes()", "SELECT weekwheel.allow('other')")
        for call in calls:
            with self.assertRaises(SqlError) as raised:
                server.psql(call, user="other", database="granting")
            equal(raised.exception.state, "42501", call)
        # Later ones leave what was granted since.
        server.psql("SELECT weekwheel.allow('other')", database="granting")
        server.psql("GRANT EXECUTE ON FUNCTION weekwheel.allow TO other", database="granting")
        server.set_up(database="granting")
        for call in calls:
            server.psql(call, user="other", database="granting")

    def test_tables_of_a_version_before_are_made_anew(self):
        server.psql("CREATE DATABASE old")
        server.set_up(database="old")
        server.psql("UPDATE weekwheel.about SET version = 1", database="old")
        refused = run(None, WEEKWHEEL, "postgres", "setup", server.url(database="old"))
        check(refused.status and "'weekwheel postgres remove' and 'weekwheel postgres setup' make them anew" in refused.err, refused)
        run(0, WEEKWHEEL, "postgres", "remove", server.url(database="old"))
        server.set_up(database="old")


main()
