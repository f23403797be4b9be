#!/usr/bin/env python3
"""weekwheel postgres: the tables and functions are made once, checked, and removed; each refusal says what to do."""
# tier: check
import json
import os

from harness import WEEKWHEELD, Case, alone, check, equal, main, matches, run
from postgres import Postgres, SqlError

OWNER = "1463900017, 1"


def setUpModule():
    global server
    server = Postgres()
    server.psql("CREATE ROLE keeper LOGIN; CREATE ROLE app LOGIN")


def tearDownModule():
    server.remove()


class CommandCase(Case):
    """Each test has a database of its own, of the role keeper."""

    def setUp(self):
        super().setUp()
        server.psql("DROP DATABASE IF EXISTS shop WITH (FORCE)")
        server.psql("CREATE DATABASE shop OWNER keeper")
        self.url = server.url("keeper", "shop")

    def run_it(self, status, action, *arguments, url=None, **env):
        return alone.run(status, "postgres", action, *arguments, *([url or self.url] if url != "" else []), **env)

    def sql(self, sql, user="keeper"):
        return server.psql(sql, user, "shop")

    def refused(self, pattern, action, *arguments, **more):
        matches(pattern, self.run_it(1, action, *arguments, **more).err)

    def problems(self, *patterns, **more):
        """Check finds these, and says so in its status."""
        ended = self.run_it(1 if patterns else 0, "check", "--json", **more)
        facts = json.loads(ended.out)
        equal(facts["problems"], len(patterns), ended)
        for pattern in patterns:
            matches(pattern, ended.err)
        return facts


class Setup(CommandCase):
    def test_a_role_that_is_no_superuser_sets_up_and_puts(self):
        matches("weekwheel.put", self.run_it(0, "setup").err)
        equal(self.sql("SELECT weekwheel.put('mail', 'hello')"), [("3",)])
        equal(self.sql("SELECT rolname FROM pg_roles WHERE oid = (SELECT nspowner FROM pg_namespace WHERE nspname = "
                       "'weekwheel')"), [("keeper",)])
        self.problems()

    def test_again_it_keeps_jobs_and_rights_and_makes_the_functions_anew(self):
        self.run_it(0, "setup")
        self.sql("SELECT weekwheel.allow('app', 'mail'); SELECT weekwheel.put('mail', 'hello'); "
                 "DROP FUNCTION weekwheel.put(text, text, interval, timestamptz, bigint, interval, interval, text, interval, "
                 "bigint, interval, interval, text, bytea, text, interval, interval, text, bytea, interval, interval, text, jsonb, interval, jsonb); "
                 "CREATE OR REPLACE FUNCTION weekwheel.demand(wanted text) RETURNS void LANGUAGE sql AS ''")
        self.problems("functions are missing")
        self.run_it(0, "setup")
        equal(self.problems()["inbox"], [1, 0, 0, 0])
        equal(self.sql("SELECT weekwheel.put('mail', '') > 0", "app"), [("t",)])
        with self.assertRaises(SqlError):
            self.sql("SELECT weekwheel.put('bills', '')", "app")

    def test_tables_and_functions_of_an_earlier_version_are_brought_up_to_date(self):
        self.run_it(0, "setup")
        self.sql("""SELECT weekwheel.put('mail', 'hello', key => 'k'), weekwheel.allow('app', 'mail');
            DO $$
            DECLARE
                former text := replace(pg_get_functiondef('weekwheel.read_jobs()'::regprocedure),
                    ', headers jsonb, expires timestamp with time zone', '');
            BEGIN
                SET LOCAL check_function_bodies = off;
                DROP VIEW weekwheel.jobs, weekwheel.buried, weekwheel.tubes;
                DROP FUNCTION weekwheel.read_jobs();
                EXECUTE former;
                CREATE VIEW weekwheel.jobs AS SELECT * FROM weekwheel.read_jobs();
            END $$;
            CREATE VIEW mine AS SELECT key FROM weekwheel.jobs;
            CREATE FUNCTION weekwheel.put(tube text, body text, delay interval DEFAULT NULL) RETURNS bigint LANGUAGE sql AS 'SELECT 1';
            ALTER TYPE weekwheel.options DROP ATTRIBUTE expire, DROP ATTRIBUTE expired, DROP ATTRIBUTE headers,
                DROP ATTRIBUTE "then" """)
        matches('"weekwheel postgres setup" brings them up to date', run(1, WEEKWHEELD, "--store", self.url, "--listen", "127.0.0.1:0").err)
        with server.session("keeper", "shop") as owner:
            owner.rows(f"SELECT pg_advisory_lock({OWNER})")
            self.refused("a weekwheeld has the jobs.*end it first, to bring the tables up to date", "setup")
        self.run_it(0, "setup")
        self.problems()
        equal(self.sql("SELECT key FROM mine"), [("k",)])
        equal(self.sql("""SELECT weekwheel.put('mail', 'x', headers => '{"a": "b"}') > 0""", "app"), [("t",)])
        equal(self.sql("SELECT headers FROM weekwheel.jobs ORDER BY id"), [(None,), ('{"a": "b"}',)])

    def test_what_cannot_be_done_says_why_and_what_to_do(self):
        self.refused("permission denied.*GRANT CREATE ON DATABASE", "setup", url=server.url("app", "shop"))
        self.refused('database "none" does not exist.*createdb', "setup", url=server.url("keeper", "none"))
        self.refused("role .nobody. does not exist.*the password and pg_hba", "setup", url=server.url("nobody", "shop"))
        self.refused("whether PostgreSQL runs", "setup", url="postgresql://keeper@/shop?host=" + self.folder)
        self.refused("expected, such as postgresql:///shop", "setup", url="redis://localhost")
        self.refused("the database has no jobs", "check")
        self.refused("the database has no jobs", "remove")
        self.run_it(0, "setup")
        self.refused("permission denied.*the owner", "check", url=server.url("app", "shop"))
        self.sql("ALTER DATABASE shop SET default_transaction_read_only = on")
        self.refused("read-only transaction.*the primary", "setup")

    def test_a_later_version_is_left_alone(self):
        self.run_it(0, "setup")
        self.sql("UPDATE weekwheel.about SET version = 3")
        for action in ("setup", "check"):
            self.refused("of version 3, and this weekwheel knows version 2: use the later", action)

    def test_what_a_dump_brought_from_another_cluster_is_taken_over(self):
        self.run_it(0, "setup")
        self.sql("SELECT weekwheel.put('mail', 'hello'); UPDATE weekwheel.inbox SET xid = '1099511627776'; "
                 "SELECT setval('weekwheel.opened', 1); UPDATE weekwheel.about SET cluster = 7")
        self.problems("another cluster by a dump")
        with server.session("keeper", "shop") as owner:
            owner.rows(f"SELECT pg_advisory_lock({OWNER})")
            self.refused("end it first, to take over", "setup")
        self.run_it(0, "setup")
        self.problems()
        equal(self.sql("SELECT pg_sequence_last_value('weekwheel.opened')"), [(None,)])
        equal(self.sql("SELECT xid < pg_current_xact_id() FROM weekwheel.inbox"), [("t",)])

    def test_a_dump_has_jobs_and_rights(self):
        self.run_it(0, "setup")
        self.sql("SELECT weekwheel.put('mail', 'hello'), weekwheel.allow('app', 'mail'), nextval('weekwheel.current')")
        dump = server.program("pg_dump", "shop")
        server.psql("DROP DATABASE shop")
        server.psql("CREATE DATABASE shop OWNER keeper")
        path = os.path.join(server.folder, "dump.sql")
        with open(path, "w", encoding="utf-8") as file:
            file.write(dump)
        server.program("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", path, "shop")
        equal(self.problems()["inbox"], [1, 0, 0, 0])
        equal(self.sql("SELECT weekwheel.put('mail', '') > 3", "app"), [("t",)])


class Check(CommandCase):
    def setUp(self):
        super().setUp()
        self.run_it(0, "setup")

    def test_the_facts(self):
        self.sql("SELECT weekwheel.put_many('mail', '{a,b}'::text[]); SELECT nextval('weekwheel.current'); "
                 "SELECT nextval('weekwheel.current'); SELECT weekwheel.put('mail', 'c')")
        facts = self.problems()
        equal([facts[name] for name in ("version", "owned", "part", "inbox", "turns", "writers", "synchronous_commit")],
              [2, False, 1, [2, 1, 0, 0], [0] * 4, 0, "on"])
        equal(facts["cluster"], self.sql("SELECT system_identifier FROM pg_control_system()")[0][0])
        check(facts["bytes"] > 8192, facts)
        text = self.run_it(0, "check").out
        matches(r"^1 +1 +0  current$", text)
        with server.session("keeper", "shop") as owner:
            owner.rows(f"SELECT pg_advisory_lock({OWNER})")
            equal(self.problems()["owned"], True)

    def test_autovacuum_and_missing_tables(self):
        self.sql("ALTER TABLE weekwheel.inbox_2 RESET (autovacuum_enabled); DROP TABLE weekwheel.job_17")
        self.problems("autovacuum is on for 1 tables", "1 tables are missing")

    def test_rows_that_the_server_refused(self):
        self.sql("INSERT INTO weekwheel.refused (why, ring, id, xid, verb) VALUES ('a reason', 0, 7, '1', 0), ('another', 0, 9, '1', 8)")
        self.problems("2 rows of the inbox made no sense.*weekwheel.refused has them, and why")
        self.sql("DELETE FROM weekwheel.refused")
        self.problems()

    def test_a_setting_that_stalls_puts(self):
        self.sql("ALTER DATABASE shop SET synchronous_commit = remote_apply")
        self.problems("remote_apply: a report on a standby")

    def test_transactions_that_hold_a_part(self):
        with server.session("keeper", "shop") as writer:
            writer.rows("BEGIN; SELECT weekwheel.put('mail', '')")
            equal(self.problems()["writers"], 1)
            writer.rows("PREPARE TRANSACTION 'p'")
            equal(self.problems("prepared transaction .* COMMIT PREPARED")["writers"], 1)
            writer.rows("ROLLBACK PREPARED 'p'")
            equal(self.problems()["writers"], 0)


class Remove(CommandCase):
    def setUp(self):
        super().setUp()
        self.run_it(0, "setup")

    def is_there(self):
        return self.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'weekwheel'") == [("1",)]

    def test_without_jobs(self):
        self.run_it(0, "remove")
        check(not self.is_there(), "all is gone")
        self.run_it(0, "setup")
        self.problems()

    def test_with_jobs_only_if_told(self):
        self.sql("SELECT weekwheel.put('mail', '')")
        self.refused("1 rows, and there may be jobs.*\n.*--with-jobs", "remove")
        check(self.is_there(), "nothing is removed")
        self.run_it(0, "remove", "--with-jobs")
        check(not self.is_there(), "all is gone")

    def test_not_while_it_is_open(self):
        with server.session("keeper", "shop") as owner:
            owner.rows(f"SELECT pg_advisory_lock({OWNER})")
            self.refused("end it first, to remove", "remove", "--with-jobs")

    def test_what_others_built_on_it_stays(self):
        self.sql("CREATE VIEW public.puts AS SELECT id, tube FROM weekwheel.inbox")
        self.refused("remove that first.*puts", "remove", "--with-jobs")
        check(self.is_there(), "nothing is removed")


class CommandLine(CommandCase):
    def test_the_url_of_the_environment(self):
        self.run_it(0, "setup", url="", WEEKWHEEL_POSTGRES=self.url)
        equal(json.loads(self.run_it(0, "check", "--json", url="", WEEKWHEEL_POSTGRES=self.url).out)["problems"], 0)

    def test_a_password_is_warned_of(self):
        for url in (f"postgresql://keeper:secret@/shop?host={server.folder}",
                    f"host={server.folder} user=keeper dbname=shop password=secret"):
            said = self.run_it(0, "setup", url=url).err
            matches("read the password", said)
            check("secret" not in said, said)
            check("password" not in self.run_it(0, "setup", url="", WEEKWHEEL_POSTGRES=url).err, "it is hidden")

    def test_bad_words(self):
        for words, pattern in ((["make", self.url], "expected setup, check or remove"), (["setup"], "expected a URL"),
                               (["setup", self.url, "more"], "one URL"), (["setup", "--json", self.url], "--json is of check"),
                               (["check", "--with-jobs", self.url], "--with-jobs is of remove"), ([], "expected setup")):
            matches(pattern, alone.run(2, "postgres", *words, WEEKWHEEL_POSTGRES=None).err)


main()
