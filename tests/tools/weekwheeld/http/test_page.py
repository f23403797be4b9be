#!/usr/bin/env python3
"""The page, in Chromium. WW_SCREENSHOTS=FOLDER keeps pictures of it."""
# tier: long, no-sanitizers (other tests send the server as much)
import base64
import contextlib
import re
import time
import urllib.parse
import urllib.request

from browser import Browser
from harness import PATIENCE, Case, Server, check, equal, main, matches, until
from page import EVIL, Paged
from web import Events, Web

SEEN = """const at = document.querySelector(arguments[0]).getBoundingClientRect();
return at.height > 0 && at.top >= -1 && at.bottom <= innerHeight + 1"""


class Page(Paged, Case):
    def test_what_it_shows_and_does(self):
        with self.server() as server, self.client(server) as a, Browser("--window-size=1200,1500") as browser:
            number = self.fill(a)
            self.open(browser, server)
            matches("1 buried", browser.text("#state"))
            browser.until_text("#tubes", "mail")
            browser.until_text("#jobs", "onerror")
            equal(browser.run("return document.querySelectorAll('#wheels svg').length"), 4)
            until(lambda: browser.run("return document.querySelectorAll('#week button').length") == 168, "the week", 0.05)
            browser.picture("page")
            # The first view, with all that it loads.
            size = browser.run("return [...performance.getEntriesByType('navigation'), "
                               "...performance.getEntriesByType('resource')].reduce((a, e) => a + e.transferSize, 0)")
            print("first view: %d bytes" % size)
            check(0 < size < 100000, size)
            # A job's story, in view, and its text as text.
            browser.click("#jobs button")
            browser.until_text("#job pre", "onerror")
            until(lambda: browser.run("return document.activeElement.id") == "job", "the story has the focus", 0.05)
            equal(browser.run(SEEN, "#job"), True)
            equal(browser.run("return document.title + document.querySelectorAll('main img').length"), "weekwheel0")
            # An hour, by keyboard.
            browser.run("document.querySelector('[data-hour=\"0\"]').focus()")
            browser.type("[data-hour='0']", "\ue014")
            equal(browser.run("return document.activeElement.dataset.hour"), "1")
            browser.type("[data-hour='1']", "\ue007")
            browser.until_text("#minutes h3", "jobs in the hour")
            # Somebody else is faster: their version stays.
            for line, answer in (("kick-job " + number, "KICKED"), ("reserve-job " + number, "RESERVED"),
                                 ("bury %s 0" % number, "BURIED")):
                matches(answer, a.ask(line))
            browser.run("refresh = async () => {}; setInterval = () => {}")
            browser.click("#job .actions button")
            browser.until_text("#message", "another version")
            browser.until_text("#jobs", "mail")
            # With the version of now it is kicked.
            browser.type("#find [name=id]", number)
            browser.click("#find button")
            browser.until_text("#job", "Version")
            until(lambda: browser.run("return document.querySelector('#job dl').innerText.includes('Version\\n4')"),
                  "the version of now", 0.05)
            browser.click("#job .actions button")
            until(lambda: a.numbers("stats-job " + number)["state"] == "ready", "it is kicked", 0.05)
            # A new one.
            browser.type("#put textarea", "from the page")
            browser.type("#put [name=delay]", "1h")
            browser.click("#put > button")
            browser.until_text("#put-said", r"Job \d+: new")
            made = re.search(r"\d+", browser.text("#put-said")).group()
            matches("from the page", a.ask("peek " + made))
            browser.type("#put [name=every]", "nonsense")
            browser.click("#put > button")
            browser.until_text("#message", "every: this must be")
            # Beside the button that was pressed, in view, and instead of what was said before.
            equal(browser.run(SEEN, "#message"), True)
            equal(browser.run("return [!!$('message').closest('#put'), $('put-said').textContent]"), [True, ""])
            browser.run("$('put').elements.every.value = ''")
            browser.click("#put > button")
            browser.until_text("#put-said", r"Job \d+: new")
            equal(browser.run("return $('message').hidden"), True)
            # A row that is drawn anew keeps it.
            a.send("put 0 0 60 1\r\nx\r\n")
            number = a.line().split()[1]
            for line, answer in (("reserve-job " + number, "RESERVED"), ("bury %s 0" % number, "BURIED")):
                matches(answer, a.ask(line))
            browser.run("return askNumbers().then(askJobs)")
            equal(a.ask("kick-job " + number), "KICKED")
            matches("RESERVED", a.ask("reserve-job " + number))
            equal(a.ask("bury %s 0" % number), "BURIED")
            browser.click("[data-focus='Kick %s']" % number)
            browser.until_text("#message", "another version")
            browser.run("return askJobs()")
            equal(browser.run("return $('message').previousSibling.dataset.focus"), "Kick " + number)
            equal(browser.run(SEEN, "#message"), True)
            equal([error for error in browser.errors() if "status of 4" not in error], [])

    def test_an_hour_that_is_too_full_is_marked(self):
        with self.server() as server, self.client(server) as a, Browser("--window-size=1200,1500") as browser:
            a.put()
            equal(a.ask("delete " + a.ask("reserve").split()[1]), "DELETED")
            # One in a minute is the pace, so 60 an hour.
            for _ in range(150):
                a.put(delay=7200)
            self.open(browser, server)
            marked = "return [...document.querySelectorAll('#week .over')].map(hour => hour.title).join()"
            until(lambda: browser.run(marked).endswith(": 150, 2.5 times what the workers can do"), "the hour is marked", 0.05)

    def test_a_week_has_full_hours_and_days(self):
        tomorrow = time.mktime(time.strptime(time.strftime("%F", time.localtime(time.time() + 86400)), "%Y-%m-%d"))
        with self.server() as server, self.client(server) as a, Browser("--window-size=1200,1500") as browser:
            a.send("put-at 0 %d 60 1 -\r\nx\r\n" % tomorrow)
            matches("INSERTED", a.line())
            self.open(browser, server)
            until(lambda: browser.run("return document.querySelectorAll('#week button').length") == 168, "the week", 0.05)
            hours = browser.run("return [...document.querySelectorAll('#week button')].map((hour) => hour.title.replace(/.*: /, ''))")
            equal([at for at, count in enumerate(hours) if count != "0"], [24])
            browser.run("document.querySelector('[data-hour=\"24\"]').click()")
            browser.until_text("#minutes h3", "1 jobs in the hour")
            matches("^jobs a minute: 1 0 0 ", browser.run("return document.querySelector('#minutes [role=img]').ariaLabel"))

    def test_schedules(self):
        with self.server() as server, self.client(server) as a, Browser("--window-size=1200,2300") as browser:
            self.fill(a)
            self.open(browser, server)
            browser.until_text("#schedules", "weekly")
            # While it is typed, an expression is explained.
            browser.click("#plan-part summary")
            browser.type("#plan [name=name]", "night <b>")
            browser.type("#plan [name=cron]", "0 25 * * *")
            browser.until_text("#plan-means", "^'25' is not a valid hour.*, at character 3$")
            browser.run("document.querySelector('#plan [name=cron]').value = document.querySelector('#plan [name=zone]').value = ''")
            browser.type("#plan [name=zone]", "Europe/Berlin")
            browser.type("#plan [name=cron]", "0 3 * * *")
            browser.until_text("#plan-means", r"at 03:00 every day, time of Europe/Berlin. Next: .* 03:00:00 \+0[12]:00")
            browser.type("#plan textarea", EVIL)
            browser.picture("page-schedules")
            browser.click("#plan > button")
            browser.until_text("#plan-said", "is new")
            browser.until_text("#schedules", "night <b>")
            # Its next time is that of its zone's clock, as its first one in full is.
            with Web(server, self.token) as web:
                for tube, which, pattern in (("mail", "weekly", r" 09:30:00 -0[45]:00, in "),
                                             ("default", "night <b>", r" 03:00:00 \+0[12]:00, in ")):
                    matches(pattern, browser.text("#schedules"))
                    first = web.good("GET", "tubes/%s/schedules/%s" % (tube, urllib.parse.quote(which)))["times"][0]
                    check(first.replace("T", " ")[:19] in browser.text("#schedules"), (first, browser.text("#schedules")))
            # Its times, and what becomes of it.
            browser.click("[data-focus='show default night <b>']")
            browser.until_text("#schedule", r"(?s)Next times.*03:00:00 \+0[12]:00.*onerror")
            equal(browser.run("return document.title + document.querySelectorAll('main img, main b').length"), "weekwheel0")
            browser.click("[data-focus='change']")
            browser.run("document.querySelector('#plan [name=cron]').value = ''")
            browser.type("#plan [name=cron]", "@every 90m")
            browser.click("#plan > button")
            browser.until_text("#plan-said", "is replaced")
            browser.until_text("#schedules", "@every 90m")
            equal(a.jobs("list-schedules tube=default name=night%20%3Cb%3E body=yes")[0]["body"],
                  base64.b64encode(EVIL.encode()).decode())
            # What it does not show stays as it was.
            plan = {"cron": "0 4 * * *", "zone": "Europe/Berlin", "body": "x", "group": "g1", "keep": 604800, "missed": "skip",
                    "skip": 600, "attempts": 3, "backoff": 5, "overlap": "wait", "spread": 60, "run": 90, "priority": 3}
            with Web(server, self.token) as web:
                web.good("PUT", "tubes/default/schedules/full", plan)
                browser.until_text("#schedules", "full")
                browser.click("[data-focus='show default full']")
                browser.until_text("#schedule", "(?s)older than 10 min.*g1.*7 d")
                equal(browser.run("return document.activeElement.id"), "schedule")
                equal(browser.run(SEEN, "#schedule"), True)
                browser.click("[data-focus='change']")
                equal(browser.run("return $('plan').elements.missed.value"), "skip")
                browser.run("$('plan').elements.cron.value = '0 5 * * *'")
                browser.click("#plan > button")
                browser.until_text("#plan-said", "full is replaced")
                after = web.good("GET", "tubes/default/schedules/full")
                equal({name: after[name] for name in plan}, {**plan, "cron": "0 5 * * *"})
            browser.click("[data-focus='Run default night <b>']")
            browser.until_text("#message", r"Job \d+ is put")
            equal(browser.run("return [$('message').className, $('message').previousSibling.textContent]"), ["good", "Run"])
            until(lambda: a.numbers("stats-tube default")["current-jobs-ready"] == "1", "its job", 0.05)
            browser.click("[data-focus='Pause default night <b>']")
            browser.until_text("#schedules", "paused")
            browser.click("[data-focus='Resume default night <b>']")
            until(lambda: "paused" not in browser.text("#schedules"), "it goes on", 0.05)
            browser.run("setTimeout(() => document.querySelector(`[data-focus='Remove default night <b>']`).click())")
            until(lambda: browser.has_question(), "a question", 0.05)
            browser.agree()
            until(lambda: "night" not in browser.text("#schedules"), "it is gone", 0.05)
            equal([error for error in browser.errors() if "status of 4" not in error], [])

    def test_live(self):
        with self.server() as server, self.client(server) as a, contextlib.ExitStack() as stack:
            browser = stack.enter_context(Browser("--window-size=1200,2300"))
            self.open(browser, server)
            browser.until_text("#live", "^live$")
            # Nothing is asked for from time to time now.
            browser.run("for (const part of PARTS) { part.live = 1e6; part.soon = 0 } setInterval(look, 50)")
            equal(a.ask("use mail"), "USING mail")
            matches("INSERTED", a.ask(b"put-key 0 1000 60 %d - keep=86400\r\n%s\r\n" % (len(EVIL), EVIL.encode())))
            browser.until_text("#events", "put")
            browser.until_text("#state", "1 delayed")
            browser.until_text("#tubes", "mail")
            # A job that is shown goes on, and whoever is at its button stays there.
            browser.click("#events button")
            browser.until_text("#job", "delayed")
            browser.run("document.querySelector('#job .actions button').focus()")
            equal(a.ask("kick-job 1"), "KICKED")
            browser.until_text("#job", "ready")
            until(lambda: browser.run("return document.activeElement.dataset.focus") == "Move 1", "what is left has the focus", 0.05)
            matches("RESERVED", a.ask("reserve-job 1"))
            equal(a.ask("report 1 %d\r\n%s" % (len(EVIL), EVIL)), "REPORTED")
            equal(a.ask("bury 1 0"), "BURIED")
            browser.until_text("#jobs", "mail")
            browser.until_text("#job", "(?s)Delivered\\s+1 time\\n.*Runs.*buried, attempt 1.*onerror")
            browser.picture("page-live")
            a.send("put-schedule 100 0 60 1 n cron=%40daily\r\nx\r\n")
            browser.until_text("#schedules", "@daily")
            equal(a.line()[:9], "SCHEDULED")
            browser.until_text("#events", r"schedule\s+mail\s+n\s+new")
            # What is reported as an object is shown as its members.
            equal(browser.run("return reportOf('{\"status\":7,\"output\":\"<b>\",\"none\":\"\"}')[0].innerHTML"),
                  "<dt>status</dt><dd>7</dd><dt>output</dt><dd>&lt;b&gt;</dd>")
            matches("RESERVED", a.ask("reserve-job 1"))
            equal(a.ask("delete 1"), "DELETED")
            browser.until_text("#job", "(?s)has ended.*finished, attempt [12].*buried, attempt 1")
            equal(browser.run("return document.title + document.querySelectorAll('#job img').length"), "weekwheel0")
            equal([error for error in browser.errors() if "status of 4" not in error], [])

    def test_a_large_store(self):
        with self.server() as server, self.client(server) as a, Browser("--window-size=1200,1500") as browser:
            a.ask("use many")
            for _ in range(8000):
                a.send("put 0 7200 60 1\r\nx\r\n")
            for _ in range(8000):
                a.line()
            a.send("put-schedule 100 0 60 1 late cron=%40daily\r\nx\r\n")
            matches("SCHEDULED", a.line())
            number = a.put(b"x", tube="one").split()[1]
            matches("RESERVED", a.ask("reserve-job " + number))
            equal(a.ask("bury-job %s 0 why" % number), "BURIED")
            self.open(browser, server)
            browser.until_text("#jobs", "one")
            browser.until_text("#schedules", "late")
            equal(browser.run("return ['jobs', 'schedules'].map((name) => $(name + '-none').hidden)"), [True, True])
            # A server that is slower says where it is: nothing is claimed, and the page goes on from there.
            browser.run("const real = ask; ask = async (method, path, ...more) => "
                        "path.startsWith('jobs?') ? {jobs: [], next: path.includes('after=9') ? window.next : '9'} : "
                        "real(method, path, ...more);"
                        "window.next = '9'; setInterval = () => {}; jobsList.rows = []; askJobs()")
            until(lambda: browser.run("return !$('jobs-looking').hidden"), "it looks", 0.05)
            equal(browser.run("return $('jobs-none').hidden"), True)
            browser.run("window.next = null; askJobs()")
            until(lambda: browser.run("return $('jobs-looking').hidden && !$('jobs-none').hidden"), "it knows", 0.05)

    def test_a_wrong_token_is_sent_once(self):
        with self.server() as server, Browser("--window-size=1200,1500") as browser:
            browser.tell("url", url=re.search(r"serving (http://[0-9.:]+/)", server.said).group(1))
            browser.until_text("#state", "needs a token")
            browser.run("window.calls = 0; const real = fetch; fetch = (...all) => { calls++; return real(...all); }")
            equal(browser.run("return refresh().then(() => { listenAgain(); return calls; })"), 0)
            browser.type("#token", "x" * 40)
            browser.click("#login button")
            browser.until_text("#state", "does not know this token")
            equal(browser.run("return refresh().then(() => { listenAgain(); return [calls, sessionStorage.getItem('token')]; })"),
                  [1, ""])
            # The right one is used at once.
            browser.type("#token", self.token)
            browser.click("#login button")
            browser.until_text("#state", "ready, ")
            browser.until_text("#live", "live")

    def test_another_token_sees_nothing_of_the_former(self):
        with self.server(looker=["read:own"]) as server, Browser("--window-size=1200,1500") as browser:
            looker = self.tokens["looker"]
            with self.client(server) as a:
                self.fill(a)
            self.open(browser, server)
            browser.until_text("#jobs", "onerror")
            browser.until_text("#schedules", "weekly")
            browser.click("#jobs button")
            browser.until_text("#job", "onerror")
            browser.click("#forget")
            browser.type("#token", looker)
            browser.click("#login button")
            browser.until_text("#who", "^looker: read in own$")
            browser.until_text("#state", "^0 ready")
            parts = "return ['tubes', 'jobs', 'schedules', 'job', 'week', 'events'].map((id) => $(id).textContent.trim()).join('')"
            equal(browser.run(parts), "")
            equal(browser.run("return $('jobs-none').hidden"), True)
            # And it can be forgotten.
            browser.click("#forget")
            browser.until_text("#state", "needs a token")
            equal(browser.run("return [token, sessionStorage.getItem('token')]"), ["", ""])

    def test_times_have_one_form(self):
        with self.server() as server, self.client(server) as a, Browser("--window-size=1200,1500") as browser:
            browser.tell("goog/cdp/execute", cmd="Emulation.setTimezoneOverride", params={"timezoneId": "Asia/Kolkata"})
            browser.tell("goog/cdp/execute", cmd="Emulation.setLocaleOverride", params={"locale": "en-US"})
            self.open(browser, server)
            browser.until_text("#live", "^live$")
            number = a.put(b"x", delay=7000).split()[1]
            browser.until_text("#events", "put")
            browser.click("#events button")
            browser.until_text("#job", "Due")
            form = r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d \+05:30"
            until(lambda: browser.run("return document.querySelectorAll('#week button').length") == 168, "the week", 0.05)
            for text in (browser.text("#events td"), re.search(r"Put\s+(.*)", browser.text("#job")).group(1),
                         browser.run("return document.querySelector('#week button').title.replace(/: .*/, '')")):
                matches("^%s$" % form, text)
            browser.run("return askMinutes(0)")
            matches("in the hour from %s$" % form, browser.text("#minutes h3"))
            equal(browser.run("return timeText('2026-07-01T00:00:00Z', 'America/New_York')"), "2026-06-30 20:00:00 -04:00")
            equal(browser.run("return timeText('2026-07-01T00:00:00Z', 'No/Where')"), "2026-07-01 05:30:00 +05:30")
            equal(a.ask("delete " + number), "DELETED")

    def test_without_events_it_asks(self):
        with self.server() as server, self.client(server) as a, contextlib.ExitStack() as stack:
            for _ in range(16):
                stack.enter_context(Events(server, self.token))
            browser = stack.enter_context(Browser("--window-size=1200,1500"))
            self.open(browser, server)
            browser.until_text("#live", "polling")
            a.put(b"x", delay=1000)
            browser.until_text("#state", "1 delayed")

    def test_without_tokens_it_only_shows(self):
        with Server("--http", "127.0.0.1:0") as server, server.client() as a, Browser("--window-size=1200,1500") as browser:
            a.put(b"x")
            a.send("put-schedule 100 0 60 1 daily cron=%40daily\r\nx\r\n")
            equal(a.line()[:9], "SCHEDULED")
            browser.tell("url", url=re.search(r"serving (http://[0-9.:]+/)", server.said).group(1))
            browser.until_text("#state", "1 ready")
            browser.until_text("#schedules", "daily")
            shown = "return [...document.querySelectorAll('%s')].filter((one) => one.checkVisibility()).length"
            equal([browser.run(shown % part) for part in ("#login", "#put", "#plan-part", "#jobs .actions button, #schedules .actions button", "#read-only")],
                  [0, 0, 0, 0, 1])

    def test_dark_and_small(self):
        with self.server() as server, self.client(server) as a, \
                Browser("--window-size=500,900", "--force-dark-mode", "--blink-settings=preferredColorScheme=0") as browser:
            self.fill(a)
            self.open(browser, server)
            browser.until_text("#jobs", "onerror")
            browser.picture("page-small")
            # Nothing is wider than the window but what scrolls by itself.
            check(browser.run("return document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways")
            equal(browser.run("return getComputedStyle(document.body).backgroundColor"), "rgb(20, 24, 29)")
            # Nor is anything of it beyond the edge of a telephone.
            browser.tell("goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride",
                         params={"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})
            browser.picture("page-telephone")
            check(browser.run("return innerWidth === 390 && document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways")
            browser.click("#jobs button")
            browser.until_text("#job", "onerror")
            browser.click("#schedules button")
            browser.until_text("#schedule", "Next times")
            browser.run("$('plan-part').open = true; return askMinutes(0)")
            equal(browser.run("return [...document.querySelectorAll('body *')].filter((one) => one.checkVisibility() && "
                              "one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML.slice(0, 80))"), [])
            # What is in a row says what it is, and an hour of the map is as large as a finger needs.
            matches("Tube mail", browser.run("return [...$('jobs').rows[0].cells].map((cell) => getComputedStyle(cell, '::before')"
                                             ".content.replace(/\"/g, '') + cell.textContent).join()"))
            browser.run("return askWeek()")
            equal(browser.run("return getComputedStyle(document.querySelector('#week td'), '::before').content"), "none")
            hour = browser.run("return document.querySelector('#week button').getBoundingClientRect().toJSON()")
            check(hour["width"] >= 24 and hour["height"] >= 24, hour)
            for number, part in enumerate(("tubes", "week", "jobs", "put")):
                browser.run("$(arguments[0]).closest('section').scrollIntoView()", part)
                browser.picture("page-telephone-%d" % number)

    def test_nothing_else_may_run_in_it(self):
        with self.server() as server:
            url = re.search(r"serving (http://[0-9.:]+)/", server.said).group(1)
            for path, kind in (("/", "text/html"), *(("/%s.js" % name, "text/javascript") for name in ("common", "tubes", "jobs", "schedules", "page", "live")),
                               ("/page.css", "text/css")):
                with urllib.request.urlopen(url + path, timeout=PATIENCE) as answer:
                    matches("default-src 'none'; script-src 'self'", answer.headers["Content-Security-Policy"])
                    equal(answer.headers["X-Content-Type-Options"], "nosniff")
                    check(answer.headers["Content-Type"].startswith(kind), path)


main()
