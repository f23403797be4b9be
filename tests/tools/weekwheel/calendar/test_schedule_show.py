#!/usr/bin/env python3
"""weekwheel schedule list and show: as JSON they are the objects of /v1. What they show as text is in test_schedule_server."""
# tier: check
from harness import Case, Server, equal, main, matches, objects
from web import Web

BEGIN = 2847571200  # 2060-03-27T00:00:00Z, a day before Berlin's clocks go forward


class Show(Case):
    def test_json_is_that_of_v1(self):
        with Server("--clock", "virtual", "--http", "127.0.0.1:0") as server, Web(server, None) as web, server.client() as a:
            a.ask("advance %d" % (BEGIN - int(a.ask("advance 0").split()[1])))
            ww = server.program
            for name, words in (("my report", ("--tz", "Europe/Berlin", "--group", "a b", "--spread", "30m", "--missed", "skip", "--skip", "10m")),
                                ("other", ("--paused", "--start", "2060-04-01", "--overlap", "wait", "--keep", "7d"))):
                equal(set(objects(ww.run(0, "schedule", "add", name, "0 3 * * *", "x\n", "--json", *words).out)[0]), {"result", "next"})
            equal(objects(ww.run(0, "schedule", "list", "--json").out), web.good("GET", "schedules")["schedules"])
            shown = objects(ww.run(0, "schedule", "show", "my report", "--json").out)
            equal(shown, [web.good("GET", "tubes/default/schedules/my%20report")])
            matches(r"^2060-03-28T03:[0-2]\d:\d\d\+02:00$", shown[0]["times"][1])
            equal(shown[0]["body"], "x\n")

    def test_a_name_that_none_can_have(self):
        with Server() as server:
            equal(server.program.run(2, "schedule", "add", "a\tb", "@daily", "x").err, "weekwheel: a?b: the name of a schedule has no control characters\n")


if __name__ == "__main__":
    main()
