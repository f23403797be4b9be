#!/usr/bin/env python3
"""The functions for SQL: what they append, what they refuse and to whom, and when they wake the owner.

No owner runs: the test reads the inbox, and plays the owner's locks.
"""
# tier: check, no-sanitizers (it tests functions in SQL)
import contextlib
import threading
import time

from harness import PATIENCE, Case, check, equal, main, matches
from postgres import Postgres, SqlError

WAKE = "1463900017, 2"
COLUMNS = ("tube", "key", "wall", "priority", "run", "period", "missed", "skip", "backoff", "backoff_max", "attempts",
           "key_mode", "key_span", "keep", '"group"', "expire", "expired", "headers", '"then"', "body")
SECOND = 1_000_000_000
# With a column for each option, and times in ns.
INBOX = """(SELECT ring, verb, id, xid, (extract(epoch FROM due) * 1000000)::bigint * 1000 AS due, tube, (options).*, body
    FROM weekwheel.inbox) inbox"""


def setUpModule():
    global server
    server = Postgres()
    server.set_up()
    server.psql("CREATE ROLE app LOGIN; CREATE ROLE other LOGIN; CREATE ROLE staff; CREATE ROLE clerk LOGIN IN ROLE staff;"
                "CREATE ROLE stiff LOGIN NOINHERIT IN ROLE staff; CREATE ROLE keeper LOGIN; "
                "GRANT CREATE ON DATABASE postgres TO keeper")


def tearDownModule():
    server.remove()


class FunctionCase(Case):
    """Each test has a session of the superuser's and an empty inbox."""
    is_empty = True

    def setUp(self):
        super().setUp()
        self.session = server.session()
        self.addCleanup(self.session.close)
        self.session.rows("TRUNCATE weekwheel.inbox, weekwheel.rights")

    def refused(self, sql, state, *patterns, session=None):
        """The error by its parts: its message and hint match a pattern each. It leaves no row."""
        with self.assertRaises(SqlError) as raised:
            (session or self.session).rows(sql)
        error = raised.exception
        equal(error.state, state, str(error))
        for pattern, text in zip(patterns, (error.message, error.hint)):
            matches(pattern, text)
        check(error.hint or state == "42501", f"{error} has no hint")
        if self.is_empty:
            equal(self.session.value("SELECT count(*) FROM weekwheel.inbox"), "0", sql)

    def row(self, *columns):
        """The one row of the inbox."""
        rows = self.session.rows(f"SELECT {', '.join(columns)} FROM {INBOX}")
        equal(len(rows), 1)
        return rows[0]


class Put(FunctionCase):
    def test_a_body_alone_leaves_all_else_to_the_owner(self):
        before = time.time_ns()
        job = self.session.value("SELECT weekwheel.put('mail', 'hello')")
        after = time.time_ns()
        equal(self.row("id", "verb", "ring", *COLUMNS),
              (job, "0", "0", "mail", *[None] * 18, r"\x68656c6c6f"))
        check(before - 1000 <= int(self.row("due")[0]) <= after, "it is due now")
        equal(self.row("xid::text::bigint = pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1"), ("t",))

    def test_each_kind_of_body(self):
        for body, stored in (("'ä'::text", "c3a4"), (r"'\x00ff'::bytea", "00ff"),
                             ("""'{"a":  1}'::jsonb""", '{"a": 1}'.encode().hex()), ("''", "")):
            self.session.rows("TRUNCATE weekwheel.inbox")
            self.session.rows(f"SELECT weekwheel.put('mail', {body})")
            equal(self.row("body"), ("\\x" + stored,))

    def test_ids_are_odd_and_grow(self):
        ids = [int(self.session.value("SELECT weekwheel.put('mail', '')")) for _ in range(5)]
        ids += [int(row[0]) for row in self.session.rows("SELECT weekwheel.put_many('mail', '{a,b,c}'::text[])")]
        check(all(job % 2 for job in ids) and ids == sorted(set(ids)), ids)

    def test_each_argument_by_its_name(self):
        for argument, column, stored in (
                ("priority => 4294967295", "priority", "4294967295"), ("run => '1 min'", "run", str(60 * SECOND)),
                ("every => '1 day'", "period", str(86400 * SECOND)), ("every => '0'", "period", None),
                ("missed => 'once'", "missed", "0"), ("missed => 'all'", "missed", "1"), ("missed => 'skip'", "missed", "2"),
                ("skip => '1 hour'", "skip", str(3600 * SECOND)), ("attempts => 0", "attempts", "0"),
                ("backoff => '0.000001 s'", "backoff", "1000"), ("backoff_max => '1 month'", "backoff_max",
                                                                 str(30 * 86400 * SECOND)),
                ("key => 'ä'", "key", r"\xc3a4"), (r"key_bytes => '\x00'", "key", r"\x00"), ("\"group\" => 'g'", '"group"',
                                                                                        r"\x67"),
                (r"group_bytes => '\xff'", '"group"', r"\xff"), ("keep => '7 days'", "keep", str(7 * 86400 * SECOND)),
                ("key => 'k', mode => 'keep-later'", "key_mode", "3"), ("mode => 'replace'", "key_mode", "0"),
                ("key => 'k', debounce => '1 s'", "key_mode || ' ' || key_span", f"4 {SECOND}"),
                ("key => 'k', \"unique\" => '1 ms'", "key_mode || ' ' || key_span", "5 1000000"),
                ("expire => '10 min'", "expire || ' ' || coalesce(expired, 9)", f"{600 * SECOND} 9"),
                ("expire => '1 s', expired => 'bury'", "expired", "1"), ("expire => '0'", "expire", "0"),
                ("""headers => '{"Trace-Id": "a: b", "tenant": ""}'""", "convert_from(headers, 'UTF8')", "tenant: \ntrace-id: a: b\n"),
                ("headers => '{}'", "headers", None), ("headers => 'null'", "headers", None),
                ("\"then\" => 'null'", '"then"', None), ("\"then\" => '{}'", '"then"', r"\x010864656661756c7400"),
                ("\"then\" => '{\"tube\": \"t\", \"body\": \"b\", \"delay\": 1}'", '"then"', r"\x01027400" r"040162" r"0708000000003b9aca00"),
                ("\"then\" => '{\"tube\": \"t\", \"at\": \"1970-01-01T00:00:01Z\", \"key\": \"k\", \"mode\": \"if-absent\"}'", '"then"',
                 r"\x01027400" r"02016b" r"0708000000003b9aca00" r"120103" r"15020001")):
            self.session.rows("TRUNCATE weekwheel.inbox")
            self.session.rows(f"SELECT weekwheel.put('mail', 'hello', {argument})")
            equal(self.row("tube", column, "body"), ("mail", stored, r"\x68656c6c6f"), argument)

    def test_times_are_those_of_the_clock_and_not_of_the_transaction(self):
        self.session.rows("BEGIN; SELECT pg_sleep(0.2)")
        began = int(float(self.session.value("SELECT extract(epoch FROM now())")) * SECOND)
        self.session.rows("SELECT weekwheel.put('mail', '', delay => '1 hour')")
        self.session.rows("COMMIT")
        check(int(self.row("due")[0]) >= began + 3600 * SECOND + SECOND // 10, "it counts from the call")
        self.session.rows("TRUNCATE weekwheel.inbox")
        self.session.rows("SELECT weekwheel.put('mail', '', at => '2030-01-01T00:00:00.000001Z')")
        equal(self.row("due", "wall"), ("1893456000000001000", "t"))

    def test_what_is_out_of_range_is_refused_with_the_field_the_range_and_a_hint(self):
        for argument, state, pattern in (
                ("priority => -1", "22003", "^priority is -1, and must be 0 to 4294967295"),
                ("priority => 4294967296", "22003", "^priority"), ("attempts => -1", "22003", "^attempts .* 0 to"),
                ("run => '0.999999 s'", "22003", "^run .* 1 second to"), ("run => '200 years'", "22003", "^run "),
                ("every => '1 us'", "22003", "^every .* 1 millisecond to"), ("every => '-1 s'", "22003", "^every "),
                ("skip => '-1 s'", "22003", "^skip .* 0 to"), ("backoff => '-1 s'", "22003", "^backoff "),
                ("backoff_max => '-1 s'", "22003", "^backoff_max "), ("keep => '-1 s'", "22003", "^keep "),
                ("spread => '-1 s'", "22003", "^spread .* 0 to"), ("spread => '200 years'", "22003", "^spread "),
                ("at => '2116-02-20', spread => '100 years'", "22008", "^spread is .*after 2116-02-20"),
                ("delay => '-1 s'", "22003", "^delay "), ("delay => '146 years'", "22008", "^delay "),
                ("at => '1969-12-31'", "22008", "^at .* 1970"), ("at => 'infinity'", "22008", "^at .* 1970"),
                ("at => '-infinity'", "22008", "^at .* 1970"), ("at => now(), delay => '1 s'", "22023", "^delay and at"),
                ("missed => 'never'", "22023", "^missed is 'never', and must be 'once', 'all' or 'skip'"),
                ("key => 'k', mode => 'odd'", "22023", "^mode is 'odd', and must be"),
                ("mode => 'if-absent'", "22023", "^mode .* no key"), ("debounce => '1 s'", "22023", "^debounce .* no key"),
                ("\"unique\" => '1 s'", "22023", "^unique .* no key"),
                ("key => 'k', debounce => '1 us'", "22003", "^debounce .* 1 millisecond"),
                ("key => 'k', \"unique\" => '1 us'", "22003", "^unique .* 1 millisecond"),
                ("key => 'k', debounce => '1 s', every => '1 s'", "22023", "^debounce and every"),
                ("key => 'k', debounce => '1 s', \"unique\" => '1 s'", "22023", "^mode, debounce and unique"),
                ("key => ''", "22023", "^key has 0 bytes, and must have 1 to 200"),
                ("key => repeat('ä', 101)", "22023", "^key has 202 bytes"), ("key_bytes => ''", "22023", "^key has 0"),
                (r"key => 'k', key_bytes => '\x00'", "22023", "^key and key_bytes"),
                ("\"group\" => repeat('g', 201)", "22023", "^group has 201"), ("\"group\" => ''", "22023", "^group has 0"),
                ("expire => '-1 s'", "22003", "^expire is .* 0 to"), ("expire => '150 years'", "22003", "^expire "),
                ("expire => '1 s', expired => 'keep'", "22023", "^expired is 'keep', and must be 'drop' or 'bury'"),
                ("expired => 'bury'", "22023", "^expired is given, and expire is not"),
                ("headers => '[1]'", "22023", "^headers is of type array, and must be an object"),
                ("""headers => '{"a b": "c"}'""", "22023", "^headers has the name 'a b'"),
                ("""headers => '{"": "c"}'""", "22023", "^headers has the name ''"),
                (r"""headers => '{"a\n": "c"}'""", "22023", "^headers has the name "),
                ("""headers => '{"a": 1}'""", "22023", "^headers has 1 as the value of a"),
                ("""headers => '{"a": " x"}'""", "22023", "^headers has "), ("""headers => '{"a": "x "}'""", "22023", "^headers has "),
                ("""headers => '{"a": "ä"}'""", "22023", "^headers has "), (r"""headers => '{"a": "x\ny"}'""", "22023", "^headers has "),
                ("""headers => '{"a": "x", "A": "y"}'""", "22023", "^headers has a name twice"),
                ("headers => (SELECT jsonb_object_agg(i, '') FROM generate_series(1, 17) i)", "22023", "^headers has 17 names"),
                ("headers => jsonb_build_object('a', repeat('x', 4093))", "22023", "^headers has 1 names and 4097 bytes"),
                ("\"then\" => '[]'", "22023", "^then is no object"), ("\"then\" => '1'", "22023", "^then is no object"),
                ("\"then\" => '{\"tub\": 1}'", "22023", "^then has the member 'tub'"),
                ("\"then\" => '{\"tube\": \"-x\"}'", "22023", "^tube is '-x'"),
                ("\"then\" => '{\"then\": {\"run\": 0}}'", "22003", "^run is "),
                ("\"then\" => '{\"delay\": -1}'", "22003", "^delay is "),
                ("\"then\" => '{\"delay\": 1, \"at\": \"2099-01-01Z\"}'", "22023", "^delay and at"),
                ("\"then\" => '{\"mode\": \"if-absent\"}'", "22023", "^mode is given, and there is no key"),
                ("\"then\" => '{}', every => '1 h'", "22023", "^every and then"),
                ("\"then\" => '{\"every\": 1, \"then\": {}}'", "22023", "^every and then"),
                ("\"then\" => '{\"tube\": \"mail\", \"key\": \"k\"}', key => 'k', \"unique\" => '1 s'", "22023", "^then has the key of"),
                ("\"then\" => (repeat('{\"then\": ', 16) || '{}' || repeat('}', 16))::jsonb", "22023", "^then is no object, or one with more than 16")):
            self.refused(f"SELECT weekwheel.put('mail', '', {argument})", state, pattern)
            if "key" not in argument:
                self.refused(f"SELECT weekwheel.put_many('mail', '{{a}}'::text[], {argument})", state, pattern)

    def test_a_tube_and_a_body_are_needed(self):
        for put in ("put({}, 'x'::text)", "put_many({}, '{{x}}'::text[])"):
            for tube, state in (("NULL", "22004"), ("''", "22023"), ("'-a'", "22023"), ("'a b'", "22023"), ("'ä'", "22023"),
                                ("E'a\\n'", "22023"), ("repeat('a', 201)", "22023")):
                self.refused("SELECT weekwheel." + put.format(tube), state, "^tube is ", "tube|dash")
        self.session.rows("SELECT weekwheel.put('a+/;.$_()-' || repeat('z', 190), '')")
        self.session.rows("TRUNCATE weekwheel.inbox")
        self.refused("SELECT weekwheel.put('mail', NULL::text)", "22004", "^body is null",
                     r"^An empty body is ''; coalesce\(\.\.\., ''\) gives one\.$")
        self.refused("SELECT weekwheel.put('mail', NULL::jsonb, delay => '1 s')", "22004", "^body is null")
        self.refused("SELECT weekwheel.put_many('mail', '{a,NULL}'::text[])", "22004", "^body is null")
        self.refused("SELECT weekwheel.put_many('mail', NULL::text[])", "22004", "^body is null")

    def test_put_many_gives_ids_in_the_order_of_the_bodies(self):
        ids = [row[0] for row in self.session.rows(
            "SELECT weekwheel.put_many('mail', '{a,b,c}'::text[], keys => '{k,NULL,l}', run => '5 s', delay => '1 s')")]
        equal(self.session.rows(f"SELECT id, key, run, verb, body FROM {INBOX} ORDER BY id"),
              [(ids[0], r"\x6b", str(5 * SECOND), "0", r"\x61"), (ids[1], None, str(5 * SECOND), "0", r"\x62"),
               (ids[2], r"\x6c", str(5 * SECOND), "0", r"\x63")])
        self.session.rows("TRUNCATE weekwheel.inbox")
        equal(self.session.rows("SELECT weekwheel.put_many('mail', '{}'::text[])"), [])
        self.refused("SELECT weekwheel.put_many('mail', '{a,b}'::text[], keys => '{k}')", "22023", "^keys has 1 members")
        self.refused("SELECT weekwheel.put_many('mail', '{a,b}'::text[], keys => '{k,\"\"}')", "22023", "^key has 0 bytes")
        self.refused("SELECT weekwheel.put_many('mail', '{a,b}'::text[], keys => '{k,NULL}', mode => 'if-absent')", "22023",
                     "^mode .* no key")
        for kind in ("bytea", "jsonb"):
            equal(len(self.session.rows(f"SELECT weekwheel.put_many('mail', ARRAY['1', '2']::{kind}[])")), 2)

    def test_put_many_without_keys_makes_few_rows(self):
        for kind, bodies in (("text", "'{a,ä,\"\"}'"), ("bytea", r"ARRAY['\x61', '\xc3a4', '']"), ("jsonb", "'{1,2,3}'")):
            self.session.rows("TRUNCATE weekwheel.inbox")
            ids = [row[0] for row in self.session.rows(
                f"SELECT weekwheel.put_many('mail', {bodies}::{kind}[], delay => '1 s', priority => 3)")]
            equal(self.row("id", "ids", "verb", "priority", "key", "tube", "due > 0"),
                  (ids[0], f"{{{','.join(ids)}}}", "0", "3", None, "mail", "t"))
            if kind != "jsonb":
                equal(self.row("body = array_send(ARRAY['\\x61', '\\xc3a4', '']::bytea[])"), ("t",), kind)
        self.session.rows("TRUNCATE weekwheel.inbox; SELECT weekwheel.put_many('mail', array_fill('x'::text, ARRAY[1001]))")
        equal(self.session.rows(f"SELECT cardinality(ids), id = ids[1] FROM {INBOX} ORDER BY id"),
              [("500", "t"), ("500", "t"), ("1", "t")])
        self.session.rows("TRUNCATE weekwheel.inbox;"
                          "SELECT weekwheel.put_many('mail', array_fill(repeat('x', 6000000), ARRAY[3]))")
        equal(self.session.rows(f"SELECT ids, octet_length(body) FROM {INBOX}"), [(None, "6000000")] * 3)

    def test_cancel_and_move_are_requests(self):
        for call, row in (
                ("cancel(7)", ("1", "7", None, None)), ("cancel('mail', 'k')", ("1", None, "mail", r"\x6b")),
                (r"cancel('mail', '\x00'::bytea)", ("1", None, "mail", r"\x00")),
                ("move(7, delay => '1 hour')", ("2", "7", None, None)), ("move(7, at => '2030-01-01')", ("2", "7", None, None)),
                ("move('mail', 'k', '1 hour')", ("2", None, "mail", r"\x6b")),
                ("move('mail', 'k', at => '2030-01-01')", ("2", None, "mail", r"\x6b")),
                (r"move('mail', '\x00'::bytea, delay => '0')", ("2", None, "mail", r"\x00"))):
            self.session.rows("TRUNCATE weekwheel.inbox")
            self.session.rows("SELECT weekwheel." + call)
            equal(self.row("verb", "job", "tube", "key", "due IS NULL", "id % 2", "body"),
                  (*row, "t" if call.startswith("cancel") else "f", "1", None), call)

    def test_bad_requests_are_refused(self):
        for call, state, pattern in (
                ("cancel(0)", "22003", "^id is 0"), ("cancel(NULL::bigint)", "22004", "^id is null"),
                ("cancel('mail', NULL::text)", "22004", "^key is null"), ("cancel('a b', 'k')", "22023", "^tube is"),
                ("cancel(NULL, 'k'::text)", "22004", "^tube is null"), ("cancel('mail', '')", "22023", "^key has 0"),
                ("move(7)", "22004", "^neither delay nor at"), ("move('mail', 'k')", "22004", "^neither delay nor at"),
                ("move(7, delay => '-1 s')", "22003", "^delay"), ("move(-7, delay => '1 s')", "22003", "^id is -7"),
                ("move(7, delay => '1 s', at => now())", "22023", "^delay and at")):
            self.refused("SELECT weekwheel." + call, state, pattern)


class Transactions(FunctionCase):
    def test_a_rollback_leaves_nothing(self):
        self.session.rows("BEGIN; SELECT weekwheel.put('mail', ''); SAVEPOINT s; SELECT weekwheel.put('mail', 'x');"
                          "ROLLBACK TO s; ROLLBACK")
        equal(self.session.value("SELECT count(*) FROM weekwheel.inbox"), "0")

    def test_a_row_in_a_subtransaction_has_the_number_of_the_whole(self):
        self.session.rows("BEGIN; SELECT weekwheel.put('mail', '1'); SAVEPOINT s; SELECT weekwheel.put('mail', '2'); COMMIT")
        equal(self.session.value("SELECT count(DISTINCT xid) FROM weekwheel.inbox"), "1")

    def test_every_level_of_isolation(self):
        for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
            with server.session() as other:
                for session, body in ((self.session, "a"), (other, "b")):
                    session.rows(f"BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM weekwheel.about")
                    session.rows(f"SELECT weekwheel.put('mail', '{body}', key => 'k')")
                self.session.rows("COMMIT")
                other.rows("COMMIT")
        equal(self.session.value("SELECT count(*) FROM weekwheel.inbox"), "6")

    def test_a_put_goes_to_the_current_part_in_an_old_snapshot_too(self):
        with server.session() as old:
            old.rows("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM weekwheel.inbox")
            for turn in (0, 1, 2, 3, 4):
                equal(self.session.value("SELECT nextval('weekwheel.current')"), str(turn))
                for call in (f"put('t{turn}', '')", f"put('t{turn}', '', delay => '1 s')",
                             f"put_many('t{turn}', '{{a}}'::text[])", f"cancel('t{turn}', 'k')"):
                    old.rows("SELECT weekwheel." + call)
                equal(old.rows(f"SELECT count(*), min(ring), max(ring) FROM weekwheel.inbox_{turn % 4} WHERE tube = 't{turn}'"),
                      [("4", str(turn % 4), str(turn % 4))])
            old.rows("ROLLBACK")
        self.session.rows("SELECT setval('weekwheel.current', 0, false)")

    def test_in_a_trigger(self):
        self.session.rows("""
            CREATE TABLE orders (id bigint PRIMARY KEY, mail text);
            CREATE FUNCTION put_mail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                PERFORM weekwheel.put('mail', NEW.mail, key => 'order-' || NEW.id); RETURN NULL; END $$;
            CREATE TRIGGER put_mail AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION put_mail();
            INSERT INTO orders SELECT i, 'to ' || i FROM generate_series(1, 3) i""")
        self.addCleanup(self.session.rows, "DROP TABLE orders; DROP FUNCTION put_mail")
        equal(self.session.rows(f"SELECT convert_from(key, 'UTF8'), convert_from(body, 'UTF8') FROM {INBOX} ORDER BY id"),
              [(f"order-{i}", f"to {i}") for i in (1, 2, 3)])

    def test_a_prepared_transaction(self):
        self.session.rows("BEGIN; SELECT weekwheel.put('mail', ''); PREPARE TRANSACTION 'p'")
        equal(self.session.value("SELECT count(*) FROM weekwheel.inbox"), "0")
        self.session.rows("COMMIT PREPARED 'p'")
        equal(self.session.value("SELECT count(*) FROM weekwheel.inbox"), "1")

    def test_nothing_dies(self):
        written = ("SELECT sum(n_tup_upd), sum(n_tup_del), sum(n_tup_ins) FROM pg_stat_xact_all_tables "
                   "WHERE schemaname = 'weekwheel'")
        self.session.rows("BEGIN; SELECT weekwheel.put('mail', i::text, delay => '1 s') FROM generate_series(1, 500) i")
        equal(self.session.rows(written), [("0", "0", "500")])
        self.session.rows("ROLLBACK")

    def test_all_but_put_have_a_path_of_their_own(self):
        equal(self.session.rows("SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'weekwheel'::regnamespace AND prosecdef "
                                "AND NOT 'search_path=pg_catalog, pg_temp' = ANY (coalesce(proconfig, '{}'))"), [("put",)])


# Functions and operators of each name that those of weekwheel have in them, of the same arguments as PostgreSQL's, and types.
TRAPS = """
    CREATE SCHEMA evil;
    CREATE FUNCTION pg_temp.trap(name text, arguments text, result text) RETURNS void LANGUAGE plpgsql AS $make$
    BEGIN
        EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS
            $$BEGIN RAISE EXCEPTION ''captured by %s'' USING HINT = ''none''; END$$', name, arguments, result, name);
    EXCEPTION WHEN invalid_function_definition OR undefined_object OR duplicate_function OR feature_not_supported THEN NULL;
    END $make$;
    DO $$
    DECLARE
        called text[] := ARRAY(SELECT DISTINCT word[1] FROM pg_proc, regexp_matches(prosrc, '[a-z_]+', 'g') AS word
            WHERE pronamespace = 'weekwheel'::regnamespace);
        one record;
    BEGIN
        PERFORM pg_temp.trap(proname, array_to_string(ARRAY(SELECT format_type(kind, NULL) FROM unnest(proargtypes) AS kind), ','),
            format_type(prorettype, NULL)) FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY (called)
            AND prokind = 'f' AND provariadic = 0;
        FOR one IN SELECT pg_operator.*, 'trap' || oid AS trap FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace
                AND oprname = ANY ('{=,<>,<,>,<=,>=,+,-,*,/,%,||,~,!~}') LOOP
            PERFORM pg_temp.trap(one.trap, concat_ws(',', format_type(nullif(one.oprleft, 0), NULL),
                format_type(one.oprright, NULL)), format_type(one.oprresult, NULL));
            IF to_regproc('evil.' || one.trap) IS NOT NULL THEN
                EXECUTE format('CREATE OPERATOR evil.%s (%s rightarg = %s, function = evil.%s)', one.oprname,
                    'leftarg = ' || format_type(nullif(one.oprleft, 0), NULL) || ',', format_type(one.oprright, NULL), one.trap);
            END IF;
        END LOOP;
    END $$;
    CREATE FUNCTION evil.num_nonnulls(timestamptz, bigint, interval, interval, text, interval, bigint, interval, interval, text,
        bytea, text, interval, interval, text, bytea, interval, interval, text, jsonb, interval, jsonb) RETURNS int LANGUAGE sql AS 'SELECT 1/0';
    CREATE FUNCTION evil.notify() RETURNS void LANGUAGE sql AS 'SELECT 1/0';
    CREATE FUNCTION evil.has_right(text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
    GRANT USAGE ON SCHEMA evil TO PUBLIC"""
TYPES = """
    CREATE DOMAIN {0}.name AS name CHECK (false); CREATE DOMAIN {0}.bytea AS bytea CHECK (false);
    CREATE DOMAIN {0}.text AS text CHECK (false); CREATE DOMAIN {0}.interval AS interval CHECK (false);
    CREATE DOMAIN {0}.regprocedure AS regprocedure CHECK (false); CREATE DOMAIN {0}.options AS int"""


class Paths(FunctionCase):
    is_empty = False
    CALLS = ("put('mail', 'x'::pg_catalog.text)", r"put('mail', '\x00'::pg_catalog.bytea)", "put('mail', '1'::pg_catalog.jsonb)",
             "put('mail', 'x'::pg_catalog.text, delay => '1 s'::pg_catalog.interval)",
             "put('mail', 'x'::pg_catalog.text, key => 'k'::pg_catalog.text, attempts => 3)",
             "put('mail', 'x'::pg_catalog.text, spread => '1 s'::pg_catalog.interval)",
             "put_many('mail', '{a,b}'::pg_catalog.text[])", "put_many('mail', '{a,b}'::pg_catalog.text[], keys => '{k,l}')",
             "cancel(7)", "cancel('mail', 'k'::pg_catalog.text)", "move(7, delay => '1 s')")

    def setUp(self):
        super().setUp()
        self.session.rows(TRAPS + ";" + TYPES.format("evil"))
        self.addCleanup(server.psql, "SELECT weekwheel.forbid('app'); DROP SCHEMA evil CASCADE")

    def test_nothing_in_the_path_of_the_caller_is_called(self):
        for right, state in (("'app', 'mail'", "42501"), ("'app'", None)):
            self.session.rows(f"SELECT weekwheel.allow({right})")
            calls = [call for call in self.CALLS if state is None or "(7" not in call]
            for first in (), calls:
                with server.session("app") as session, server.session() as owner:
                    owner.rows(f"SELECT pg_advisory_lock({WAKE})")
                    for call in first:  # plans are made, and then made again
                        session.rows(f"SELECT weekwheel.{call}")
                    session.rows("CREATE TEMP TABLE inbox_0 (x int); CREATE TEMP TABLE inbox (x int);"
                                 "CREATE TEMP TABLE rights (x int); CREATE TEMP SEQUENCE current; CREATE TEMP SEQUENCE ids;" + TYPES.format("pg_temp") +
                                 "; SET search_path = evil, pg_temp, pg_catalog")
                    self.refused("SELECT 'a'::pg_catalog.text = 'b'::pg_catalog.text", "P0001", "captured", session=session)
                    for call in calls:
                        session.rows(f"SELECT weekwheel.{call}")
                    if state:
                        self.refused("SELECT weekwheel.put('other', 'x'::pg_catalog.text)", state, "no right", session=session)


class Waking(FunctionCase):
    def puts(self):
        for call in ("put('mail', '')", "put('mail', '', key => 'k')", "put_many('mail', '{a,b}'::text[])", "cancel(7)",
                     "move(7, delay => '1 s')"):
            yield "SELECT weekwheel." + call

    def test_a_sleeping_owner_is_notified(self):
        with server.session() as owner:
            owner.rows(f"LISTEN weekwheel; SELECT pg_advisory_lock({WAKE})")
            for put in self.puts():
                self.session.rows(put)
                equal(owner.notified(), 1, put)

    def test_one_that_is_awake_is_not_and_cannot_fall_asleep_before_the_commit(self):
        with server.session() as owner:
            owner.rows("LISTEN weekwheel")
            for put in self.puts():
                self.session.rows("BEGIN")
                self.session.rows(put)
                equal(owner.value(f"SELECT pg_try_advisory_lock({WAKE})"), "f", put)
                self.session.rows("COMMIT")
                equal(owner.value(f"SELECT pg_try_advisory_lock({WAKE})"), "t", put)
                owner.rows(f"SELECT pg_advisory_unlock({WAKE})")
            equal(owner.notified(), 0)

    def test_puts_do_not_wait_for_each_other(self):
        with contextlib.ExitStack() as stack:
            sessions = [stack.enter_context(server.session()) for _ in range(4)]
            for session in sessions:
                session.rows("BEGIN; SELECT weekwheel.put('mail', '', key => 'k', \"unique\" => '1 s')")
            for session in reversed(sessions):
                session.rows("COMMIT")

    def test_many_at_once(self):
        def put():
            with server.session() as session:
                for _ in range(50):
                    ids.append(session.value("SELECT weekwheel.put('mail', '')"))

        ids, threads = [], [threading.Thread(target=put) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        equal(len(set(ids)), 400)
        equal(self.session.value("SELECT count(*) FROM weekwheel.inbox"), "400")


class Rights(FunctionCase):
    CALLS = ("put('{}', '')", "put('{}', '', delay => '1 s')", "put_many('{}', '{{a}}'::text[])", "cancel('{}', 'k')",
             "move('{}', 'k', '1 s')")

    def setUp(self):
        super().setUp()
        for role in ("app", "other", "staff"):
            self.session.rows(f"SELECT weekwheel.forbid('{role}')")

    def may(self, user, tube, may=True, before=""):
        with server.session(user) as session:
            session.rows(before)
            for call in self.CALLS:
                self.session.rows("TRUNCATE weekwheel.inbox")
                if may:
                    session.rows("SELECT weekwheel." + call.format(tube))
                else:
                    self.refused("SELECT weekwheel." + call.format(tube), "42501", session=session)

    def test_nothing_is_for_everybody(self):
        self.may("app", "mail", False)
        with server.session("app") as session:
            for sql in ("TABLE weekwheel.inbox", "INSERT INTO weekwheel.inbox (ring, id, verb) VALUES (0, 1, 0)",
                        "SELECT nextval('weekwheel.ids')", "SELECT weekwheel.allow('app')"):
                self.refused(sql, "42501", session=session)
        equal(self.session.rows("SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'weekwheel'::regnamespace AND "
                                "has_function_privilege('app', oid, 'EXECUTE')"), [])

    def test_a_right_to_one_tube(self):
        self.session.rows("SELECT weekwheel.allow('app', 'mail'), weekwheel.allow('app', 'mail')")
        self.may("app", "mail")
        self.may("app", "other", False)
        self.may("other", "mail", False)
        with server.session("app") as session:
            self.refused("SELECT weekwheel.put('bills', '')", "42501", "^role app has no right to the tube 'bills'",
                         r"SELECT weekwheel.allow\('app', 'bills'\)", session=session)
            self.refused("SELECT weekwheel.cancel(7)", "42501", "^role app has no right to all tubes", "by tube and key",
                         session=session)
            for name in ("allow('app')", "forbid('app')", f"spec({','.join(['NULL'] * 18)})", "notify()", "has_right('mail')",
                         "request(1, 7, NULL, NULL, NULL)", "wake()", "grant_to('app')"):
                self.refused("SELECT weekwheel." + name, "42501", "permission denied", session=session)

    def test_a_right_to_all_tubes_and_its_end(self):
        self.session.rows("SELECT weekwheel.allow('app'), weekwheel.allow('app', 'mail')")
        self.may("app", "mail")
        self.may("app", "other")
        with server.session("app") as session:
            session.rows("SELECT weekwheel.cancel(7)")
        self.session.rows("SELECT weekwheel.forbid('app', 'mail')")
        self.may("app", "mail")
        self.session.rows("SELECT weekwheel.forbid('app')")
        self.may("app", "mail", False)

    def test_rights_are_inherited_as_by_grant(self):
        self.session.rows("SELECT weekwheel.allow('staff', 'mail')")
        self.may("clerk", "mail")
        self.may("clerk", "other", False)
        self.may("stiff", "mail", False)
        self.may("stiff", "mail", True, "SET ROLE staff")

    def test_the_role_that_acts_counts(self):
        self.session.rows("SELECT weekwheel.allow('staff', 'mail')")
        self.may("postgres", "mail", False, "SET ROLE app")
        self.may("postgres", "mail", True, "SET ROLE clerk")
        self.may("postgres", "mail", False, "SET SESSION AUTHORIZATION app")
        self.may("app", "mail", False, "SET weekwheel.role = 'postgres'")
        with server.session("app") as session:
            self.refused("SET ROLE staff", "42501", session=session)

    def test_the_superuser_and_the_owner_may_always(self):
        self.may("postgres", "mail")

    def test_bad_rights_are_refused(self):
        self.refused("SELECT weekwheel.allow('nobody')", "42704", "^role is 'nobody'")
        self.refused("SELECT weekwheel.allow('app', 'a b')", "22023", "^tube is")
        self.refused("SELECT weekwheel.allow('app', NULL)", "22004", "^tube is null")


class Dropped(Case):
    def test_a_role_that_has_rights_and_is_dropped(self):
        server.psql("CREATE ROLE brief LOGIN; SELECT weekwheel.allow('brief', 'mail')")
        server.psql("DROP OWNED BY brief; DROP ROLE brief")
        server.set_up()
        equal(server.psql("SELECT weekwheel.put('mail', 'x') > 0"), [("t",)])


main()
