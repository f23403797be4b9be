#!/usr/bin/env python3
"""What one does on the page to tubes and jobs, by mouse and by keyboard, as the token allows."""
# tier: long, no-sanitizers (other tests send the server as much)
import re
import urllib.parse

from browser import Browser
from harness import Case, check, equal, main, matches, until
from page import EVIL, Paged
from web import Web

STATES = ("ready", "delayed", "reserved", "buried")


class Page(Paged, Case):
    def test_jobs_in_pages(self):
        with self.server() as server, self.client(server) as a, Browser("--window-size=1200,1500") as browser:
            for n in range(45):
                a.send(b"put-key 0 5000 60 1 k%02d\r\nx\r\n" % n if n % 2 else b"put 0 5000 60 1\r\nx\r\n")
                a.line()
            a.send(b"put-key 0 5000 60 1 %s\r\nx\r\n" % urllib.parse.quote(EVIL, safe="").encode())
            a.line()
            a.put(b"x", tube="other")
            self.open(browser, server)
            ids = "return [...$('jobs').rows].map((row) => Number(row.dataset.row))"

            def shows(expected):
                until(lambda: browser.run(ids) == expected, "jobs %s" % expected, 0.05)

            browser.until_text("#jobs-none", "No job is so")
            browser.run("$('filter').elements.state.value = 'delayed'")
            browser.click("#filter button")
            # Page by page, forth and back; the heading tells whoever hears the page which one it is.
            shows([*range(1, 21)])
            for button, page, expected in (("on", "2", range(21, 41)), ("on", "3", range(41, 47)), ("back", "2", range(21, 41))):
                browser.click("#jobs-" + button)
                shows([*expected])
                until(lambda: browser.run("return document.activeElement.id") == "jobs-title", "the heading has the focus", 0.05)
                equal(browser.text("#jobs-title"), "Jobs, page " + page)
                equal(browser.run("return $('jobs-on').hidden"), page == "3")
            # What is done there leaves that page.
            browser.run("const at = document.querySelector(`[data-focus='Kick 21']`); at.focus(); at.click()")
            browser.until_text("#message", "Job 21 is kicked")
            shows([*range(22, 42)])
            # What is said stands where one works.
            equal(browser.run("return [document.activeElement, $('message').previousSibling].map((one) => one.dataset.focus)"), 2 * ["job 22"])
            # By state, key and tube.
            for state, key, expected in (("ready", "", [21, 47]), ("", "k1", [12, 14, 16, 18, 20]), ("delayed", EVIL, [46]),
                                         ("buried", "k1", [])):
                browser.run("$('filter').elements.state.value = arguments[0]; $('filter').elements.key.value = arguments[1]", state, key)
                browser.click("#filter button")
                shows(expected)
            browser.run("$('filter').elements.state.value = 'ready'; $('filter').elements.key.value = ''")
            browser.click("[data-focus='tube other']")
            shows([47])
            equal(browser.text("#jobs-title"), "Jobs: other")
            equal(browser.run("return document.title + document.querySelectorAll('main img').length"), "weekwheel0")
            equal([error for error in browser.errors() if "status of 4" not in error], [])

    def test_a_tube(self):
        with self.server() as server, self.client(server) as a, Web(server, self.token) as web, \
                Browser("--window-size=1200,1500") as browser:
            for n in range(250):
                a.send(b"put-key 0 %d 60 1 k%d\r\nx\r\n" % (5000 * (n % 2), n))
                a.line()
            for number in (1, 3, 5):
                matches("RESERVED", a.ask("reserve-job %d" % number))
                equal(a.ask("bury-job %d 0 why" % number), "BURIED")
            matches("RESERVED", a.ask("reserve-job 7"))
            a.put(b"x", tube="other", delay=9000)
            self.open(browser, server)
            wheel = "return [...document.querySelectorAll('#wheels .sum')].at(-1).textContent"
            every = str(web.good("GET", "forecast?span=604800&count=1")["counts"][0])
            until(lambda: browser.run(wheel) == every, "all of them", 0.05)
            browser.click("[data-focus='tube other']")
            until(lambda: browser.run(wheel) == "1", "those of the tube", 0.05)
            browser.click("#tube-close")
            until(lambda: browser.run(wheel) == every, "all of them", 0.05)
            until(lambda: browser.run("return document.activeElement.dataset.focus") == "tube other", "its button has the focus", 0.05)
            browser.run("$('tube-find').elements.name.value = 'def'; showTubes()")
            equal(browser.run("return [...$('tubes').rows].map((row) => row.dataset.row)"), ["default"])
            browser.click("[data-focus='tube default']")
            browser.until_text("#tube-title", "^Tube default$")
            until(lambda: browser.run("return document.activeElement.id") == "tube-title", "it has the focus", 0.05)
            # Pauses.
            browser.click("#pause button")
            browser.until_text("#message", "It is paused")
            check(3500 < web.good("GET", "tubes/default")["pause_left"] <= 3600, "an hour")
            browser.click("#resume")
            browser.until_text("#message", "It goes on")
            equal(web.good("GET", "tubes/default")["pause_left"], 0)
            equal(browser.run("return $('resume').hidden"), True)
            # Limits: of the tube, of each group, of one; changed, and ended.
            for of, group, member, value in (("", "", "running", "5"), ("each", "", "running", "1"), ("group", "<b>", "starts", "60")):
                browser.run("const {of, group, ...form} = $('limit').elements; $('limit').reset(); of.value = arguments[0];"
                            "group.value = arguments[1]; $('limit').elements[arguments[2]].value = arguments[3]", of, group, member, value)
                browser.click("#limit > button")
                browser.until_text("#message", "The limit is set")
            browser.until_text("#limits", r"(?s)the tube\s+5 at once.*each group\s+1 at once.*group <b>\s+60 in 1 s")
            browser.click("[data-focus='Change group <b>']")
            browser.run("$('limit').elements.weight.value = 3")
            browser.click("#limit > button")
            browser.until_text("#limits", r"60 in 1 s; 3 turns for one|60 in 1 s, 3 turns for one")
            browser.click("[data-focus='Change the tube']")
            browser.run("$('limit').elements.running.value = 6")
            browser.click("#limit > button")
            browser.until_text("#limits", r"the tube\s+6 at once")
            for which in ("each group", "group <b>"):
                browser.click("[data-focus='End %s']" % which)
                browser.until_text("#message", "has ended")
            until(lambda: [(one["running"], one["tube"]) for one in web.good("GET", "limits")["limits"]] == [(6, "default")],
                  "the one that is left", 0.05)
            # All that are buried, and no delayed one.
            browser.click("#kick-all")
            browser.until_text("#message", r"^3 kicked\.$")
            equal([web.good("GET", "tubes/default")[state] for state in ("ready", "delayed", "buried")], [124, 125, 0])
            browser.click("#kick-all")
            browser.until_text("#message", r"^0 kicked\.$")
            # Nothing is deleted without its name; then all is but what runs, and what is in other tubes.
            browser.type("#purge input", "defaul")
            browser.click("#purge button")
            browser.until_text("#message", "not the name")
            equal(web.good("GET", "tubes/default")["delayed"], 125)
            browser.type("#purge input", "t")
            browser.click("#purge button")
            browser.until_text("#message", r"^249 deleted\.$")
            equal([web.good("GET", "tubes/default")[state] for state in STATES], [0, 0, 1, 0])
            equal(web.good("GET", "tubes/other")["delayed"], 1)
            # Of many tubes some are shown, and all are found by a part of the name.
            browser.run("setInterval = () => {}; ear.abort(); tubes = Array.from({length: 150}, (_, n) =>"
                        "({name: 't' + n, ready: 0, delayed: 1, reserved: 0, buried: 0})); $('tube-find').elements.name.value = ''; showTubes()")
            equal(browser.run("return [$('tubes').rows.length, $('tubes-more').textContent]"), [100, "50 more: type a part of the name."])
            browser.type("#tube-find input", "t14")
            equal(browser.run("return [$('tubes').rows.length, $('tubes-more').textContent]"), [11, ""])
            equal(browser.run("return [$('stop').hidden, $('purge').elements.name.value]"), [True, ""])
            equal(browser.run("return document.title + document.querySelectorAll('main img, main b').length"), "weekwheel0")
            equal([error for error in browser.errors() if "status of 4" not in error], [])

    def test_what_changes_under_a_purge_stays(self):
        with self.server() as server, self.client(server) as a, Browser("--window-size=1200,1500") as browser:
            for _ in range(3):
                a.put(b"x", delay=5000)
            self.open(browser, server)
            browser.click("[data-focus='tube default']")
            browser.until_text("#tube-title", "Tube default")
            # Once they are listed, one is moved.
            browser.run("window.real = ask; ask = async (method, path, ...more) => { const said = await real(method, path, ...more);"
                        "if (path.startsWith('jobs?') && path.includes('limit=100')) await real('PATCH', 'jobs/2', {delay: 9000});"
                        "return said; }")
            browser.type("#purge input", "default")
            browser.click("#purge button")
            browser.until_text("#message", r"^2 deleted, 1 changed meanwhile\.$")
            equal(a.numbers("stats-tube default")["current-jobs-delayed"], "1")
            # What is put while others are deleted stays.
            for _ in range(150):
                a.put(b"x", delay=5000)
            browser.run("window.put = 0; ask = async (method, path, ...more) => {"
                        "if (method === 'DELETE' && window.put++ < 9) await real('POST', 'jobs', {delay: 8000});"
                        "return real(method, path, ...more); }")
            browser.type("#purge input", "default")
            browser.click("#purge button")
            browser.until_text("#message", r"^151 deleted\.$")
            equal(a.numbers("stats-tube default")["current-jobs-delayed"], "9")

    def test_a_purge_that_was_stopped_does_not_go_on_with_another(self):
        with self.server() as server, self.client(server) as a, Browser("--window-size=1200,1500") as browser:
            for tube, count in (("default", 250), ("other", 3)):
                for _ in range(count):
                    a.put(b"x", tube=tube, delay=5000)
            self.open(browser, server)
            browser.click("[data-focus='tube default']")
            browser.until_text("#tube-title", "Tube default")
            # The first deletions of a purge wait until the test says so.
            browser.run("window.real = ask; const held = new Promise((go) => { window.go = go; }); window.asked = 0;"
                        "ask = async (method, ...more) => { if (method === 'DELETE') { asked++; await held; }"
                        "return real(method, ...more); }")
            browser.type("#purge input", "default")
            browser.click("#purge button")
            until(lambda: browser.run("return asked") == 100, "the first ones are asked for", 0.05)
            browser.click("#stop")
            browser.click("[data-focus='tube other']")
            browser.until_text("#tube-title", "Tube other")
            browser.type("#purge input", "other")
            browser.click("#purge button")
            browser.until_text("#message", "under way")
            browser.run("go()")
            browser.until_text("#message", r"^100 deleted; stopped\.$")
            equal([a.numbers("stats-tube " + tube)["current-jobs-delayed"] for tube in ("default", "other")], ["150", "3"])
            browser.type("#purge input", "other")
            browser.click("#purge button")
            browser.until_text("#message", r"^3 deleted\.$")
            equal(a.numbers("stats-tube default")["current-jobs-delayed"], "150")

    def test_it_offers_what_the_token_grants(self):
        with self.server(looker=["read:mail.*"], worker=["read,work:mail.*", "read:other"], putter=["put:mail.a"]) as server, \
                self.client(server) as a, Browser("--window-size=1200,1500") as browser:
            for tube in ("mail.a", "other", "secret"):
                number = a.put(b"x", tube=tube).split()[1]
                matches("RESERVED", a.ask("reserve-job " + number))
                equal(a.ask("bury-job %s 0 why" % number), "BURIED")
            self.open(browser, server)
            equal(browser.text("#who"), "admin: everything in all tubes")
            seen = "return arguments[0].filter((one) => document.querySelector(one)?.checkVisibility())"
            parts = ["#login label", "#forget", "#wheels", "#week", "#jobs", "#jobs .actions button", "#tubes", "#put", "#plan-part",
                     "#kick-all", "#purge", "#pause", "#limit"]

            def enter(name):
                browser.click("#forget")
                browser.type("#token", self.tokens[name])
                browser.click("#login button")
                browser.until_text("#who", "^%s: " % name)

            def choose(tube):
                browser.click("[data-focus='tube %s']" % tube)
                browser.until_text("#jobs-title", "Jobs: " + tube)
                browser.until_text("#jobs", "why")

            enter("looker")
            browser.until_text("#state", "1 buried")
            equal(browser.text("#who"), "looker: read in mail.*")
            equal(browser.run(seen, parts), ["#forget", "#tubes"])
            choose("mail.a")
            equal(browser.run(seen, parts), ["#forget", "#wheels", "#week", "#jobs", "#tubes"])
            matches("does not grant 'work' here.*does not grant 'admin' here", browser.text("#tube-lacks"))
            enter("worker")
            browser.until_text("#tubes", "other")
            choose("other")
            equal(browser.run(seen, parts), ["#forget", "#wheels", "#week", "#jobs", "#tubes"])
            choose("mail.a")
            equal(browser.run(seen, parts), ["#forget", "#wheels", "#week", "#jobs", "#jobs .actions button", "#tubes", "#kick-all", "#purge"])
            browser.click("#kick-all")
            browser.until_text("#message", "1 kicked")
            enter("putter")
            browser.until_text("#state", "does not grant 'read'")
            equal(browser.run(seen, parts), ["#forget", "#put", "#plan-part"])
            equal(browser.run("return [['read', 'mail.x'], ['put', 'mail.a'], ['put', 'mail.ab'], ['put', 'a.mail.a'],"
                              "['put', 'mailxa'], ['put', '*'], ['put'], ['work']].map((asked) => may(...asked))"),
                  [False, True, False, False, False, False, True, False])
            equal([error for error in browser.errors() if "status of 4" not in error], [])

    def test_each_control_has_a_name(self):
        with self.server() as server, self.client(server) as a, Browser("--window-size=1200,1500") as browser:
            self.fill(a)
            self.open(browser, server)
            browser.until_text("#jobs", "onerror")
            until(lambda: browser.run("return document.querySelectorAll('#week button').length") == 168, "the week", 0.05)
            # The first job to kick is a few stops of the Tab key away.
            stops = browser.run("return [...document.querySelectorAll('button, input, select, summary, textarea, [tabindex]')]"
                                ".filter((one) => one.tabIndex >= 0 && one.checkVisibility())"
                                ".findIndex((one) => one.textContent === 'Kick')")
            check(0 < stops <= 12, stops)
            browser.click("[data-focus='tube mail']")
            browser.until_text("#tube-title", "Tube mail")
            browser.until_text("#jobs", "onerror")
            browser.run("$('plan-part').open = true")
            equal(browser.run("return [...document.querySelectorAll('input, select, textarea')]"
                              ".filter((one) => !one.labels[0]?.innerText.trim()).map((one) => one.outerHTML)"), [])
            equal(browser.run("return [...document.querySelectorAll('button')]"
                              ".filter((one) => !(one.ariaLabel ?? one.textContent).trim()).map((one) => one.outerHTML)"), [])
            # What is heard: that more is buried, and what is wrong; numbers that change are not.
            equal(browser.run("return document.querySelector('#state').closest('[role=status], [aria-live]')"), None)
            a.put(b"x", tube="mail")
            matches("RESERVED", a.ask("reserve-job 243"))
            equal(a.ask("bury-job 243 0 why"), "BURIED")
            browser.until_text("#news", "Now 2 jobs are buried")

    def test_who_works_somewhere_stays_there(self):
        with self.server() as server, self.client(server) as a, Browser("--window-size=1200,1500") as browser:
            for number in (1, 2, 3):
                a.put(b"x")
                matches("RESERVED", a.ask("reserve-job %d" % number))
                equal(a.ask("bury-job %d 0 why" % number), "BURIED")
            self.open(browser, server)
            browser.until_text("#jobs", "3")
            browser.run("setInterval = () => {}; ear.abort(); window.at = document.querySelector(`[data-focus='Kick 2']`);"
                        "at.focus(); getSelection().selectAllChildren(at.closest('tr').cells[5])")
            # A row before it goes, and what is said of a row changes: the button is the same, and what was selected is.
            equal(a.ask("kick-job 1"), "KICKED")
            browser.run("return askJobs()")
            equal(browser.run("return [$('jobs').rows.length, document.activeElement === at, String(getSelection())]"), [2, True, "why"])
            # The one that it stands in goes: the next one has the focus, and after the last the heading.
            for number, then in ((2, "job 3"), (3, None)):
                equal(a.ask("kick-job %d" % number), "KICKED")
                browser.run("return askJobs()")
                equal(browser.run("return document.activeElement.dataset.focus"), then)
            equal(browser.run("return document.activeElement.id"), "jobs-title")
            # What is drawn anew does what it now says.
            equal(browser.run("const said = []; const make = (text) => element('button', {onclick: () => said.push(text)}, text);"
                              "replace($('minutes'), make('a')); const was = $('minutes').firstChild;"
                              "replace($('minutes'), make('b')); was.click(); return [was.isConnected, ...said]"), [True, "b"])

    def test_the_map_is_one_stop(self):
        with self.server() as server, self.client(server) as a, Browser("--window-size=1200,1500") as browser:
            a.put(b"x", delay=7000)
            self.open(browser, server)
            until(lambda: browser.run("return document.querySelectorAll('#week button').length") == 168, "the week", 0.05)
            stops = "return [...document.querySelectorAll('#week button')].filter((hour) => hour.tabIndex === 0).map((hour) => hour.dataset.hour)"
            first = browser.run("mapHour = 3; return askWeek()") or browser.run(stops)
            equal(first, ["3"])
            browser.run("document.querySelector('[data-hour=\"3\"]').focus()")
            # Of a telephone, a column is a day; of others, a row.
            for width, keys in ((1200, "\ue015\ue014\ue010\ue012"), (390, "\ue014\ue015\ue010\ue013")):
                browser.tell("goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride",
                             params={"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False})
                equal(browser.run("return innerWidth"), width)
                at = browser.run("return Number(document.activeElement.dataset.hour)")
                seen = []
                for key in keys:
                    browser.type(":focus", key)
                    seen.append(browser.run("return Number(document.activeElement.dataset.hour)"))
                equal(seen, [at + 24, at + 25, 47, 46])
                equal(browser.run(stops), ["46"])
                browser.type(":focus", "\ue011")
                equal(browser.run("return document.activeElement.dataset.hour"), "24")
                browser.run("document.querySelector('[data-hour=\"3\"]').focus()")
            # Drawn anew, it is the same button that has the focus, and Tab leaves the map.
            browser.run("window.was = document.activeElement; return askWeek()")
            equal(browser.run("return was === document.activeElement && was.isConnected"), True)
            browser.type(":focus", "\ue004")
            equal(browser.run("return $('week').contains(document.activeElement)"), False)


main()
