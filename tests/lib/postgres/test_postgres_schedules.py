#!/usr/bin/env python3
"""Schedules by SQL: what they append, what they refuse and to whom, and what the server makes of them."""
# tier: check, no-sanitizers (it tests functions in SQL)
import urllib.parse

from harness import Case, Server, check, equal, main, matches, until
from postgres import Postgres, SqlError
from web import Web, token_of

SECOND = 1_000_000_000
GOOD = ("* * * * *", "*/15 0-23/2 1,15 jan-Mar mon-fri", "0 0 0 L * ?", "0 3 l-3 * 5#2", "0 3 ? * friL", "59 59 23 31 12 7",
        "00 07 * * sat-sun", "@daily", "@Yearly", " @every 1h30m ", "@every 45s", "5/15 * * * *", "1-5/2,7 * * * *", "*\t* * * *")
BAD = ("", "* * * *", "* * * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 8",
       "* * * foo *", "* * * * monday", "*/0 * * * *", "5-x * * * *", "1,,2 * * * *", "? * * * *", "* * 15W * *", "* * * * 5#6",
       "@often", "@every", "@every 5", "@every 1m1h", "* * L-31 * *", "-1 * * * *", "* * * * * ;", "5- * * * *", "@daily x")
# The form is good, and no server takes them.
SENSELESS = ("0 0 30 2 *", "0 17-9 * * *", "*/60 * * * *", "@every 0s")


def setUpModule():
    global server
    server = Postgres()
    server.set_up()
    server.psql("CREATE ROLE app LOGIN; CREATE ROLE other LOGIN; SELECT weekwheel.allow('app', 'mail')")


def tearDownModule():
    server.remove()


class ScheduleCase(Case):
    def setUp(self):
        super().setUp()
        self.session = server.session()
        self.addCleanup(self.session.close)

    def refused(self, sql, state, pattern, session=None):
        """It leaves no row."""
        before = self.session.value("SELECT count(*) FROM weekwheel.inbox")
        with self.assertRaises(SqlError) as raised:
            (session or self.session).rows(sql)
        equal(raised.exception.state, state, raised.exception)
        matches(pattern, raised.exception.message)
        check(raised.exception.hint or state == "42501", "there is no hint")
        equal(self.session.value("SELECT count(*) FROM weekwheel.inbox"), before)


class Schedules(ScheduleCase):
    def test_a_request_is_a_job_beside_the_schedules(self):
        self.session.rows("""TRUNCATE weekwheel.inbox; SELECT weekwheel.put_schedule('mail', 'each ä', '0 3 * * *', 'go',
            zone => 'Europe/Berlin', priority => 7, run => '2 min', missed => 'all', overlap => 'skip', spread => '1 hour',
            start => '2027-01-01Z', "end" => '2028-01-01Z', attempts => 3, backoff => '1 s', "group" => 'g', keep => '1 day',
            paused => true, expire => '10 min', expired => 'bury')""")
        (verb, tube, key, body), = self.session.rows("SELECT verb, tube, (options).key, convert_from(body, 'UTF8') FROM weekwheel.inbox")
        equal((verb, tube, key), ("0", "-schedules", None))
        head, jobs_body = body.split("\n\n")
        equal(jobs_body, "go")
        equal(head.split("\n"), [
            "weekwheel-schedule 1", "request put", "tube mail", "name each ä", "cron 0 3 * * *", "zone Europe/Berlin",
            "missed all", "overlap skip", f"run {120 * SECOND}", f"backoff {SECOND}", f"backoff-max {3600 * SECOND}", "priority 7",
            f"keep {86400 * SECOND}", "attempts 3", f"expire {600 * SECOND}", "expired 1", f"spread {3600 * SECOND}", f"start {1798761600 * SECOND}",
            f"end {1830297600 * SECOND}", "paused 1", "group 67"])

    def test_bad_arguments_are_refused(self):
        for arguments, state, pattern in (
                ("NULL, 'n', '@daily', ''", "22004", "^tube is null"), ("'a b', 'n', '@daily', ''", "22023", "^tube is 'a b'"),
                ("'-schedules', 'n', '@daily', ''", "22023", "^tube is"),
                ("'mail', NULL, '@daily', ''", "22004", "^name is null"), ("'mail', '', '@daily', ''", "22023", "^name is ''"),
                ("'mail', E'a\\nrequest remove', '@daily', ''", "22023", "^name is"),
                ("'mail', 'n\u0085', '@daily', ''", "22023", "^name is"),
                ("'mail', repeat('ä', 76), '@daily', ''", "22023", "1 to 150 bytes"),
                ("repeat('t', 150), repeat('n', 50), '@daily', ''", "22023", "1 to 49 bytes"),
                ("'mail', 'n', NULL, ''", "22004", "^cron is null"), ("'mail', 'n', '@daily', NULL::text", "22004", "^body is null"),
                ("'mail', 'n', '@daily', '', zone => 'Nowhere'", "22023", "^zone is 'Nowhere'"),
                ("'mail', 'n', '@daily', '', zone => E'UTC\\nrequest remove'", "22023", "^zone is"),
                ("'mail', 'n', '@daily', '', missed => 'never'", "22023", "^missed is"),
                ("'mail', 'n', '@daily', '', overlap => 'never'", "22023", "^overlap is"),
                ("'mail', 'n', '@daily', '', run => '0.5 s'", "22003", "^run is"),
                ("'mail', 'n', '@daily', '', spread => '-1 s'", "22003", "^spread is"),
                ("'mail', 'n', '@daily', '', priority => -1", "22003", "^priority is"),
                ("'mail', 'n', '@daily', '', start => '1900-01-01'", "22008", "^start is"),
                ("'mail', 'n', '@daily', '', expire => '-1 s'", "22003", "^expire is"),
                ("'mail', 'n', '@daily', '', expired => 'bury'", "22023", "^expired is given")):
            self.refused(f"SELECT weekwheel.put_schedule({arguments})", state, pattern)
        self.refused("SELECT weekwheel.remove_schedule('mail', NULL)", "22004", "^name is null")

    def test_expressions_are_refused_as_the_server_refuses_them(self):
        token = token_of("reader", "read:*")
        with Server("--http", "127.0.0.1:0", "--auth-file", "tokens") as other, Web(other, token) as web:
            for cron in GOOD + BAD + SENSELESS:
                status = web.ask("GET", "cron?expression=" + urllib.parse.quote(cron, safe=""))[0]
                equal(status == 200, cron in GOOD, f"{cron}: {status}")
                if cron in BAD:
                    self.refused(f"SELECT weekwheel.put_schedule('mail', 'n', E'{cron}', '')", "22023", "^cron is")
                else:
                    self.session.rows(f"SELECT weekwheel.put_schedule('mail', 'n', E'{cron}', '')")

    def test_rights_are_those_to_the_tube(self):
        with server.session("app") as app, server.session("other") as other:
            app.rows("SELECT weekwheel.put_schedule('mail', 'n', '@daily', ''::bytea), weekwheel.remove_schedule('mail', 'n')")
            self.refused("SELECT weekwheel.put_schedule('sms', 'n', '@daily', '')", "42501", "no right to the tube 'sms'", app)
            self.refused("SELECT weekwheel.remove_schedule('sms', 'n')", "42501", "no right to the tube 'sms'", app)
            self.refused("SELECT weekwheel.put_schedule('mail', 'n', '@daily', '')", "42501", "permission denied", other)
            self.refused("SELECT weekwheel.request_schedule('put', 'sms', 'n', '', '')", "42501", "permission denied", app)


class Served(ScheduleCase):
    def test_the_life_of_a_schedule(self):
        self.session.rows("TRUNCATE weekwheel.inbox")
        with Server("--store", server.url()) as owner, owner.client() as client:
            self.session.rows("BEGIN; SELECT weekwheel.put_schedule('mail', 'gone', '@daily', ''); ROLLBACK")
            self.session.rows("""BEGIN; SELECT weekwheel.remove_schedule('mail', 'often');
                SELECT weekwheel.put_schedule('mail', 'often', '* * * * * *', '{"a": 1}'::jsonb, "group" => 'g', overlap => 'skip',
                    priority => 9);
                SELECT weekwheel.put_schedule('mail', 'often', '@yearly', '', if_absent => true);
                COMMIT""")
            until(lambda: client.jobs("list-schedules"), "the schedule is there")
            one, = client.jobs("list-schedules")
            equal([one[name] for name in ("tube", "name", "cron", "zone", "overlap", "priority", "group", "run")],
                  ["mail", "often", "* * * * * *", "UTC", "skip", 9, "g", 60])
            equal(client.ask("watch mail"), "WATCHING 2")
            matches(r'^RESERVED \d+ 8\|{"a": 1}$', client.ask("reserve-with-timeout 60"))
            self.session.rows("SELECT weekwheel.remove_schedule('mail', 'often')")
            until(lambda: not client.jobs("list-schedules"), "it is gone")

    def test_what_the_server_refuses_is_buried_with_the_reason(self):
        self.session.rows("TRUNCATE weekwheel.inbox; SELECT weekwheel.put_schedule('mail', 'n', '0 0 30 2 *', '')")
        with Server("--store", server.url(), "--http", "127.0.0.1:0") as owner, owner.client() as client:
            until(lambda: "weekwheeld_schedules_set_aside_total 1" in owner.metrics(), "it is set aside")
            equal(client.jobs("list-schedules"), [])
            owner.stop()
            matches("a schedule cannot be carried out, and is set aside", owner.said)


if __name__ == "__main__":
    main()
