#!/usr/bin/env python3
"""/v1: schedules, and what expressions of cron mean."""
# tier: check
import datetime
import time
from urllib.parse import quote

from harness import Case, check, equal, main, matches, until
from web import ByRedis, Stores, Web

BACKUP = "tubes/mail/schedules/" + quote("backup/of äll", safe="")


class Schedules:
    """What every store has."""

    def test_the_life_of_a_schedule(self):
        with self.server() as server, Web(server, self.token) as web, server.client() as a:
            status, made = web.ask("PUT", BACKUP, {"cron": "0 3 * * *", "zone": "Europe/Berlin", "body": "go",
                                                   "overlap": "skip", "spread": "1h", "end": "2099-01-01T00:00:00Z",
                                                   "group": "ada b"})
            equal((status, made["result"], len(made["times"])), (201, "new", 10))
            etag = web.etag
            equal(etag, '"%d"' % made["version"])
            one = web.good("GET", BACKUP)
            equal(web.etag, etag)
            equal([one[name] for name in ("tube", "name", "cron", "zone", "overlap", "missed", "spread", "start", "end",
                                          "made", "last", "body", "length", "times", "paused", "group")],
                  ["mail", "backup/of äll", "0 3 * * *", "Europe/Berlin", "skip", "once", 3600, None,
                   "2099-01-01T00:00:00.000Z", 0, None, "go", 2, made["times"], False, "ada b"])
            equal(a.jobs("list-schedules")[0]["group"], "ada%20b")
            matches(r"T03:\d\d:\d\d\+0[12]:00$", one["times"][0])
            line, = a.jobs("list-schedules")
            equal((line["tube"], line["cron"], line["overlap"], line["spread"]), ("mail", "0 3 * * *", "skip", 3600))
            # Only who knows the version changes it.
            web.refused(412, None, "PUT", BACKUP, {"cron": "@daily"}, If_Match='"%d"' % (made["version"] + 1))
            web.refused(412, None, "DELETE", BACKUP, If_Match='"%d"' % (made["version"] + 1))
            web.refused(412, None, "PUT", "tubes/mail/schedules/new", {"cron": "@daily"}, If_Match='"1"')
            kept = web.good("PUT", BACKUP, {"cron": "@daily"}, If_None_Match="*")
            equal((kept["result"], kept["version"]), ("kept", made["version"]))
            status, again = web.ask("PUT", BACKUP, {"cron": "@every 90m"}, If_Match=etag)
            equal((status, again["result"]), (200, "replaced"))
            check(again["version"] > made["version"], again)
            # A pause, a run beside all times, and the end.
            equal(web.ask("POST", BACKUP + "/pause"), (204, None))
            one = web.good("GET", BACKUP)
            equal((one["paused"], one["next"], one["times"], one["zone"]), (True, None, [], "UTC"))
            number = web.good("POST", BACKUP + "/run")["id"]
            equal(web.good("GET", "jobs/" + number)["tube"], "mail")
            equal(web.ask("POST", BACKUP + "/resume"), (204, None))
            equal(web.good("GET", BACKUP)["paused"], False)
            equal(web.ask("DELETE", BACKUP, If_Match=web.etag), (204, None))
            for method, end in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/run")):
                matches("no such schedule", web.refused(404, None, method, BACKUP + end))
            equal(web.good("GET", "schedules"), {"schedules": [], "next": None})

    def test_pages(self):
        with self.server() as server, Web(server, self.token) as web:
            names = ["%s/schedules/n%d" % (tube, n) for tube in ("mail", "other") for n in range(5)]
            for name in names:
                web.good("PUT", "tubes/" + name, {"cron": "@daily"})
            for tube, wanted in (("", names), ("&tube=mail", names[:5]), ("&tube=none", [])):
                found, after = [], ""
                while after is not None:
                    page = web.good("GET", "schedules?limit=2" + tube + after)
                    found += ["%s/schedules/%s" % (one["tube"], one["name"]) for one in page["schedules"]]
                    after = page["next"] and "&after=" + page["next"]
                equal(sorted(found), wanted)

    def test_what_is_wrong_is_named(self):
        with self.server() as server, Web(server, self.token) as web:
            for field, schedule in (("cron", {}), ("cron", {"cron": "0 25 * * *"}), ("cron", {"cron": ""}),
                                    ("zone", {"cron": "@daily", "zone": "Europe/Atlantis"}),
                                    ("start", {"cron": "@daily", "start": "2027-01-01 00:00"}),
                                    ("overlap", {"cron": "@daily", "overlap": "never"}),
                                    ("paused", {"cron": "@daily", "paused": 1}), ("delay", {"cron": "@daily", "delay": 1}),
                                    ("key", {"cron": "@daily", "key": "k"})):
                web.refused(422, field, "PUT", BACKUP, schedule)
            matches("byte 3: '25' is not a valid hour", web.refused(422, "cron", "PUT", BACKUP, {"cron": "0 25 * * *"}))
            web.refused(422, "name", "PUT", "tubes/mail/schedules/" + "n" * 151, {"cron": "@daily"})
            longest = "tubes/mail/schedules/" + "n" * 150
            equal(web.good("PUT", longest, {"cron": "@daily"})["result"], "new")
            equal(web.good("GET", longest)["name"], "n" * 150)
            # A name that no schedule can have, as long as a key.
            matches("no such schedule", web.refused(404, None, "GET", "tubes/mail/schedules/" + "n" * 200))
            for control in "%0A", "%C2%85":
                matches("no control characters", web.refused(422, "name", "PUT", f"tubes/mail/schedules/a{control}b", {"cron": "@daily"}))
            web.refused(404, "key", "PUT", "tubes/mail/schedules/" + "n" * 201, {"cron": "@daily"})
            web.refused(404, "tube", "GET", "tubes/-schedules/schedules/n")
            web.refused(400, "expression", "GET", "cron")
            web.refused(422, "expression", "GET", "cron?expression=" + quote("60 * * * *"))
            web.refused(422, "zone", "GET", "cron?expression=@daily&zone=Nowhere")
            web.refused(400, "zone", "GET", "cron?expression=@daily&zone=" + "x" * 300)
            said = web.good("GET", "cron?expression=%s&zone=Europe/Berlin" % quote("0 3 * * *"))
            equal((said["words"], said["elapsed"], len(said["times"])),
                  ("at 03:00 every day, time of Europe/Berlin", False, 10))
            # Spans begin now.
            before = time.time()
            said = web.good("GET", "cron?expression=" + quote("@every 8760h"))
            first = datetime.datetime.fromisoformat(said["times"][0].replace("Z", "+00:00")).timestamp()
            equal((said["elapsed"], first > before - 1 + 8760 * 3600), (True, True), said)

    def test_who_may(self):
        with self.server() as server, Web(server, self.token) as admin, Web(server, None) as nobody, \
                Web(server, self.mailer) as mailer:
            nobody.refused(401, None, "GET", "schedules")
            admin.good("PUT", "tubes/results/schedules/n", {"cron": "@daily", "body": "secret"})
            admin.good("PUT", "tubes/mail/schedules/n", {"cron": "@daily"})
            # It may put into results, and look at nothing.
            kept = mailer.good("PUT", "tubes/results/schedules/n", {"cron": "@hourly"}, If_None_Match="*")
            equal(sorted(kept), ["next", "result", "times", "version"])
            mailer.refused(403, None, "GET", "schedules")
            mailer.refused(403, None, "GET", "tubes/results/schedules/n")
            mailer.refused(403, "tube", "PUT", "tubes/mail/schedules/n", {"cron": "@hourly"})
            for method, end in (("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/run")):
                mailer.refused(403, "tube", method, "tubes/mail/schedules/n" + end)
            mailer.good("POST", "tubes/results/schedules/n/run")
            equal(len(mailer.good("GET", "cron?expression=@daily")["times"]), 10)
            reader = Web(server, self.reader)
            equal([one["tube"] for one in reader.good("GET", "schedules")["schedules"]], ["mail"])
            reader.refused(403, "tube", "GET", "schedules?tube=results")


class Embedded(Schedules, Stores, Case):
    def test_its_jobs_come(self):
        with self.server("--clock", "virtual") as server, Web(server, self.token) as web, server.client() as a:
            web.good("PUT", "tubes/mail/schedules/n", {"cron": "@every 1h", "body": "tick"})
            version = web.etag
            a.ask("advance 3600")
            until(lambda: web.good("GET", "tubes/mail/schedules/n")["made"] == 1, "the job of the first time")
            lease, = web.good("POST", "leases", {"tubes": ["mail"]})["leases"]
            equal(lease["body"], "tick")
            # Moving on is a change.
            check(web.etag != version, version)
            web.refused(412, None, "PUT", "tubes/mail/schedules/n", {"cron": "@daily"}, If_Match=version)


class OnDisk(Embedded):
    arguments = ("--data", "jobs")


class InRedis(Schedules, ByRedis, Case):
    pass


main()
