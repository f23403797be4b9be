#!/usr/bin/env python3
"""The views: they show what the server shows, wherever a job lies and whether it runs; and rows that are copied are puts."""
# tier: check, no-sanitizers (it tests functions in SQL)
import datetime
import json
import random
import subprocess

from harness import Case, Server, check, compiled, equal, main, matches, seed, until
from postgres import Postgres, SqlError
from web import Web

COUNTS = ("priority", "attempts", "tries", "reserves", "timeouts", "releases", "buries", "kicks")
SPANS = ("run", "skip", "backoff", "backoff_max")
TEXTS = ("tube", "state", "key", "group", "missed", "error")


def setUpModule():
    global server
    server = Postgres()
    server.set_up()
    server.psql("CREATE ROLE app LOGIN; CREATE ROLE other LOGIN; SELECT weekwheel.allow('app', 'mail')")


def tearDownModule():
    server.remove()


class ViewCase(Case):
    def setUp(self):
        super().setUp()
        server.psql("TRUNCATE weekwheel.inbox, weekwheel.turn, weekwheel.job, weekwheel.gone")
        self.session = server.session()
        self.addCleanup(self.session.close)

    def refused(self, sql, state, pattern, session=None):
        with self.assertRaises(SqlError) as raised:
            (session or self.session).rows(sql)
        equal(raised.exception.state, state, raised.exception)
        matches(pattern, raised.exception.message)

    def jobs(self, where="true"):
        """By id, as /v1 has them."""
        names = ["id", "body", "due", "headers", "expires", "every", *COUNTS, *SPANS, *TEXTS]
        columns = [f"extract(epoch FROM {name})::float8" if name in (*SPANS, "every") else
                   f"round(extract(epoch FROM {name}) * 1000)" if name in ("due", "expires") else
                   "convert_from(body, 'UTF8')" if name == "body" else f'"{name}"' for name in names]
        rows = self.session.rows(f"SELECT {', '.join(columns)} FROM weekwheel.jobs WHERE {where}")
        return {row[0]: dict(zip(names, row)) for row in rows}

    def until_taken(self):
        """Rows are taken in the order of ids: moves and cancels before this put."""
        self.session.rows("SELECT weekwheel.put('mail', 'last', delay => '1 day')")
        until(lambda: self.session.value("SELECT count(*) FROM weekwheel.jobs WHERE state = 'new'") == "0", "all are taken")


def ms_of(time):
    return round(datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000)


def pages(web, name, more):
    rows, after = [], ""
    while after is not None:
        page = web.good("GET", f"{name}?limit=100{after}{more}")
        rows += next(value for value in page.values() if isinstance(value, list))
        after = page["next"] and f"&after={page['next']}"
    return rows


def compare(mine, jobs):
    equal(sorted(mine), sorted(job["id"] for job in jobs))
    for job in jobs:
        row = mine[job["id"]]
        equal(row["body"], job["body"])
        for name in COUNTS:
            equal(int(row[name]), job[name], f"{name} of {job}")
        for name in SPANS:
            equal(float(row[name]), job[name], f"{name} of {job}")
        equal(float(row["every"] or 0), job["every"], f"every of {job}")
        for name in TEXTS:
            equal(row[name] or "", job.get(name) or "", f"{name} of {job}")
        # The two clocks were compared at the last write.
        if job["state"] == "buried":
            equal(row["due"], None)
        else:
            for name in ("due", "expires"):
                equal(row[name] is None, job.get(name) is None, f"{name} of {job}: {row}")
                check(row[name] is None or abs(int(float(row[name])) - ms_of(job[name])) < 1000, f"{name} of {job}: {row}")
        equal(json.loads(row["headers"] or "{}"), job.get("headers") or {}, f"headers of {job}")


class Views(ViewCase):
    def act(self, client):
        """Something happens to some job."""
        value = self.random.random()
        number = self.random.randrange(40)
        if value < 0.5:
            more = self.random.choice(("", ", delay => '1 hour'", ", at => '2030-01-01Z'", ", every => '1 day', delay => '2 days'",
                                       ", attempts => 3, backoff => '1.5 s', run => '90 s', missed => 'skip', skip => '3 s'",
                                       """, headers => '{"Tenant": "a: c", "b": ""}', delay => '1 hour'""", ", expire => '90.5 minutes'",
                                       """, expire => '2 days', expired => 'bury', every => '1 day', headers => '{"t": "u"}'"""))
            self.session.rows(f"SELECT weekwheel.put('{self.random.choice(('mail', 'sms'))}', 'body ä {number}', key => 'k{number}', "
                              f"\"group\" => {self.random.choice(('NULL', chr(39) + 'g' + chr(39)))}{more}, keep => '1 day')")
        elif value < 0.6:
            self.session.rows("SELECT weekwheel.put_many('mail', array_fill(''::text, '{3}'), delay => '1 day')")
        elif value < 0.7:
            self.session.rows(f"SELECT weekwheel.move('mail', 'k{number}', delay => '90 minutes')")
        elif value < 0.8:
            self.session.rows(f"SELECT weekwheel.cancel('mail', 'k{number}')")
        else:
            answer = client.ask("reserve-with-timeout 0").split()
            if answer[0] == "RESERVED":
                client.ask(self.random.choice(("delete %s", "release %s 5 100", "bury %s 7")) % answer[1])

    def test_they_show_what_the_server_shows(self):
        self.random = random.Random(seed())
        library = compiled("support/postgres/short_ring.c", "-shared", "-fPIC", "-ldl")
        with Server("--store", server.url(), "--http", "127.0.0.1:0", LD_PRELOAD=library,
                    RING_MS="100") as owner, owner.client() as client, Web(owner, None) as web:
            client.ask("watch mail")
            # Until parts of the ring were emptied, so that jobs lie in each kind of table.
            goal = int(self.session.value("SELECT last_value FROM weekwheel.current")) + 12
            acts = 0
            while acts < 200 or int(self.session.value("SELECT last_value FROM weekwheel.current")) < goal:
                self.act(client)
                acts += 1
            self.until_taken()
            jobs = pages(web, "jobs", "&body=true")
            check(self.session.value("SELECT count(*) FROM weekwheel.job") != "0", "no job has lain for long")
            runs = pages(web, "history", "")
        # Without a server, as the ring still turns with one.
        compare(self.jobs(), jobs)
        self.same_runs(runs)
        equal(self.session.rows("SELECT tube, delayed, ready, buried, new FROM weekwheel.tubes ORDER BY tube"),
              [(tube, *(str(sum(job["tube"] == tube and job["state"] == state for job in jobs))
                        for state in ("delayed", "ready", "buried", "new"))) for tube in sorted({job["tube"] for job in jobs})])
        equal(sorted(self.session.rows("SELECT id FROM weekwheel.buried")),
              sorted((job["id"],) for job in jobs if job["state"] == "buried"))

    def same_runs(self, runs):
        check(runs, "no run is kept")
        equal(self.session.rows("SELECT number, job, tube, key, attempt, outcome, coalesce(error, '') FROM weekwheel.runs ORDER BY number"),
              sorted(((run["run"], run["id"], run["tube"], run["key"], str(run["attempt"]), run["outcome"], run["error"])
                      for run in runs), key=lambda run: int(run[0])))

    def test_what_nobody_has_taken_is_new(self):
        self.session.rows("SELECT weekwheel.put_many('mail', '{a,b}'::text[])")
        self.session.rows("BEGIN; SELECT weekwheel.put('mail', 'mine', key => 'k', priority => 3, every => '1 day')")
        equal(self.session.rows("SELECT state, key, priority, every, convert_from(body, 'UTF8') FROM weekwheel.jobs ORDER BY id"),
              [("new", None, "1024", None, None)] * 2 + [("new", "k", "3", "24:00:00", "mine")])
        self.session.rows("ROLLBACK")
        equal(self.session.rows("SELECT tube, new FROM weekwheel.tubes"), [("mail", "2")])

    def test_a_role_sees_its_tubes(self):
        self.session.rows("SELECT weekwheel.put('mail', 'a'), weekwheel.put('sms', 'b')")
        with server.session("app") as app, server.session("other") as other:
            equal(app.rows("SELECT tube FROM weekwheel.jobs"), [("mail",)])
            equal(app.rows("SELECT tube FROM weekwheel.tubes"), [("mail",)])
            equal(app.rows("SELECT * FROM weekwheel.runs"), [])
            for view in ("jobs", "tubes", "buried", "runs"):
                self.refused(f"SELECT * FROM weekwheel.{view}", "42501", "permission denied", other)
            self.refused("SELECT * FROM weekwheel.inbox", "42501", "permission denied", app)
            self.refused("SELECT * FROM weekwheel.read_jobs()", "42501", "permission denied", other)


class Delivery(ViewCase):
    def test_headers_come_to_the_worker(self):
        expected = {"a": b"trace: a: b\ntenant: acme\n", "b": b"x: y\n", "c": b"x: y\n", "d": b"x: y\n", "e": b""}
        self.session.rows("""SELECT weekwheel.put('mail', 'a', headers => '{"Trace": "a: b", "tenant": "acme"}'),
            weekwheel.put_many('mail', '{b,c}'::text[], headers => '{"x": "y"}'),
            weekwheel.put_many('mail', '{d}'::text[], keys => '{k}', headers => '{"x": "y"}'), weekwheel.put('mail', 'e')""")
        equal(self.session.rows("SELECT headers FROM weekwheel.jobs ORDER BY id")[0], ('{"trace": "a: b", "tenant": "acme"}',))
        with Server("--store", server.url(), "--http", "127.0.0.1:0") as owner, owner.client() as client, Web(owner, None) as web:
            client.ask("watch mail")
            equal(client.ask("headers"), "HEADERS")
            self.until_taken()
            equal({job["body"]: job.get("headers") for job in pages(web, "jobs", "&body=true")}["a"], {"trace": "a: b", "tenant": "acme"})
            for _ in expected:
                client.send(b"reserve-with-timeout 10\r\n")
                answer = client.line().split()
                data = client.block(int(answer[2]))
                size = int(answer[3]) if len(answer) > 3 else 0
                equal(data[:size], expected[data[size:].decode()])

    def test_a_job_expires_when_nobody_takes_it(self):
        self.session.rows("""SELECT weekwheel.put('mail', 'a', expire => '20 ms', expired => 'bury'),
            weekwheel.put('mail', 'b', expire => '20 ms'), weekwheel.put('mail', 'c', expire => '1 day', delay => '1 hour')""")
        equal(self.session.rows("SELECT expires - due FROM weekwheel.jobs ORDER BY id"), [("00:00:00.02",)] * 2 + [("1 day",)])
        with Server("--store", server.url()) as owner, owner.client() as client:
            until(lambda: self.session.rows("SELECT convert_from(body, 'UTF8'), state FROM weekwheel.jobs ORDER BY id") ==
                  [("a", "buried"), ("c", "delayed")], "one is buried, and one dropped")
            client.ask("watch mail")
            equal(client.ask("reserve-with-timeout 0"), "TIMED_OUT")
        equal(self.session.rows("SELECT expires - due FROM weekwheel.jobs ORDER BY id"), [(None,), ("1 day",)])


class Puts(ViewCase):
    def copy(self, text, user="postgres", columns="tube, body, delay, key"):
        return subprocess.run([server.bin + "/psql", "-qX", "-c", f"COPY weekwheel.puts ({columns}) FROM STDIN"], input=text,
                              capture_output=True, text=True, check=False, cwd=server.folder,
                              env=server.environment() | {"PGUSER": user}, **server.user)

    def test_rows_that_are_copied_are_put(self):
        equal(self.copy("mail\ta\t1 hour\tk1\nmail\tb\\nc\t\\N\t\\N\n").stderr, "")
        equal(self.session.rows("SELECT tube, convert_from(body, 'UTF8'), key, due > now() + interval '59 min' FROM weekwheel.jobs ORDER BY id"),
              [("mail", "a", "k1", "t"), ("mail", "b\nc", None, "f")])
        equal(self.copy("mail\t\\\\x00ff\n", columns="tube, body_bytes").stderr, "")
        equal(self.session.rows(r"SELECT count(*) FROM weekwheel.jobs WHERE body = '\x00ff'"), [("1",)])

    def test_a_bad_row_stops_the_copy_and_says_why(self):
        for text, pattern in (("mail\ta\t\\N\t\\N\nm ail\ta\t\\N\t\\N\n", "tube is 'm ail'"), ("mail\t\\N\t\\N\t\\N\n", "body is null"),
                              ("mail\ta\t-1 s\t\\N\n", "delay is -00:00:01")):
            matches(pattern, self.copy(text).stderr)
        self.refused("INSERT INTO weekwheel.puts (tube, body, body_bytes) VALUES ('mail', '', '')", "22023", "exclude each other")
        equal(self.session.value("SELECT count(*) FROM weekwheel.inbox"), "0")

    def test_rights_hold(self):
        equal(self.copy("mail\ta\t\\N\t\\N\n", "app").stderr, "")
        matches("app has no right to the tube 'sms'", self.copy("sms\ta\t\\N\t\\N\n", "app").stderr)
        matches("permission denied", self.copy("mail\ta\t\\N\t\\N\n", "other").stderr)
        with server.session("app") as app:
            # Nobody's operator or function takes the place of one.
            app.rows("CREATE TEMP TABLE t (tube text, body text); INSERT INTO t VALUES ('mail', 'x'), ('mail', 'y')")
            check(len(app.rows("INSERT INTO weekwheel.puts (tube, body) SELECT * FROM t RETURNING id")) == 2, "two ids")
        self.session.rows("SELECT weekwheel.forbid('app')")
        matches("permission denied", self.copy("mail\ta\t\\N\t\\N\n", "app").stderr)
        self.session.rows("SELECT weekwheel.allow('app', 'mail')")

    def test_a_trigger_of_a_table_puts(self):
        self.session.rows("""CREATE TABLE orders (id int, mail text); GRANT ALL ON orders TO app;
            CREATE FUNCTION thank() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO weekwheel.puts (tube, body, key) SELECT CASE mail WHEN 'sms' THEN 'sms' ELSE 'mail' END, mail, id FROM added;
                RETURN NULL;
            END $$;
            CREATE TRIGGER thank AFTER INSERT ON orders REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION thank()""")
        with server.session("app") as app:
            app.rows("INSERT INTO orders SELECT n, 'mail ' || n FROM generate_series(1, 3) n")
            self.refused("INSERT INTO orders VALUES (4, 'sms')", "42501", "no right to the tube 'sms'", app)
            app.rows("BEGIN; INSERT INTO orders VALUES (5, 'none'); ROLLBACK")
        equal(self.session.rows("SELECT key, convert_from(body, 'UTF8') FROM weekwheel.jobs ORDER BY key"),
              [("1", "mail 1"), ("2", "mail 2"), ("3", "mail 3")])


if __name__ == "__main__":
    main()
