#!/usr/bin/env python3
"""Follow-ups by SQL: an owner takes them as weekwheeld's own, and a finish by SQL puts them once its transaction commits."""
# tier: check
import json

from harness import Case, Server, equal, main, matches, until
from postgres import Postgres, SqlError

# All that one may have, as weekwheeld shows it.
ALL = {"tube": "mail", "key_base64": "/wBr", "group": "g", "headers": {"a": "b"},
       "then": {"tube": "log", "key": "k", "at": "2099-01-01T00:00:00.500000000Z", "mode": "keep-later",
                "then": {"tube": "default", "every": 60, "missed": "skip", "skip": 5, "body_base64": "AP8="}},
       "priority": 7, "delay": 1.5, "run": 5, "attempts": 3, "backoff": 2, "backoff_max": 60, "keep": 86400, "expire": 600,
       "expired": "bury", "unique": 9, "body": "ä" * 100}


def setUpModule():
    global server
    server = Postgres()
    server.set_up()
    server.psql("CREATE ROLE app LOGIN")


def tearDownModule():
    server.remove()


def quoted(job):
    return "'" + json.dumps(job) + "'"


class Follows(Case):
    def setUp(self):
        super().setUp()
        self.session = server.session()
        self.addCleanup(self.session.close)

    def listed(self, client, tube):
        return client.jobs("list-delayed tube=" + tube)

    def test_an_owner_takes_it_as_its_own(self):
        with Server("--store", server.url()) as owner, owner.client() as client:
            self.session.rows(f'SELECT weekwheel.put(\'all\', \'x\', "then" => {quoted(ALL)})')
            until(lambda: len(self.listed(client, "all")) == 1, "the owner has taken it")
            shown = dict(ALL, then=dict(ALL["then"], then=dict(ALL["then"]["then"])))
            shown["then"]["then"].pop("tube")
            equal(self.listed(client, "all")[0]["then"], shown)

    def test_a_finish_by_sql_puts_it(self):
        with Server("--store", server.url()) as owner, owner.client() as client:
            for put in ('put(\'work\', \'x\', "then" => %s)', 'put_many(\'work\', ARRAY[\'x\'], "then" => %s)'):
                self.session.rows("SELECT weekwheel." + put % quoted({"tube": "next", "body": "y"}))
                until(lambda: self.listed(client, "work"), "the owner has taken it")
                client.ask("watch work")
                matches("^RESERVED .*x$", client.ask("reserve"))
                job = self.listed(client, "work")[0]
                self.session.rows("BEGIN; SELECT weekwheel.finish(%d, %s); ROLLBACK" % (job["id"], job["token"]))
                equal(self.listed(client, "next"), [])
                self.session.rows("SELECT weekwheel.finish(%d, %s)" % (job["id"], job["token"]))
                until(lambda: self.listed(client, "next"), "it is put")
                equal((len(self.listed(client, "next")), self.listed(client, "work")), (1, []))
                client.ask("delete %d" % self.listed(client, "next")[0]["id"])

    def test_finish_and_put_and_copied_rows_have_it(self):
        with Server("--store", server.url()) as owner, owner.client() as client:
            self.session.rows("SELECT weekwheel.put('one', 'x')")
            until(lambda: self.listed(client, "one"), "the owner has taken it")
            client.ask("watch one")
            matches("^RESERVED", client.ask("reserve"))
            job = self.listed(client, "one")[0]
            self.session.rows("SELECT weekwheel.finish_and_put(%d, %s, 'two', 'x', \"then\" => '{\"tube\": \"three\"}')" % (
                job["id"], job["token"]))
            until(lambda: self.listed(client, "two"), "the owner has taken it")
            equal(self.listed(client, "two")[0]["then"], {"tube": "three"})
            self.session.rows("INSERT INTO weekwheel.puts (tube, body, \"then\") VALUES ('four', 'x', '{\"tube\": \"five\"}')")
            until(lambda: self.listed(client, "four"), "the owner has taken it")
            equal(self.listed(client, "four")[0]["then"], {"tube": "five"})
            equal(self.session.rows("SELECT convert_from(body, 'UTF8') FROM weekwheel.jobs WHERE tube = 'four'"), [("x",)])

    def test_a_role_needs_the_right_in_its_tube(self):
        self.session.rows("SELECT weekwheel.allow('app', 'mail')")
        app = server.session("app")
        self.addCleanup(app.close)
        app.rows("SELECT weekwheel.put('mail', 'x', \"then\" => '{\"tube\": \"mail\"}')")
        for then in ('{"tube": "bills"}', '{"tube": "mail", "then": {"tube": "bills"}}', "{}"):
            with self.assertRaises(SqlError) as raised:
                app.rows(f"SELECT weekwheel.put('mail', 'x', \"then\" => '{then}')")
            equal(raised.exception.state, "42501")


if __name__ == "__main__":
    main()
