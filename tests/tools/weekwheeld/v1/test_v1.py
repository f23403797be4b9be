#!/usr/bin/env python3
"""/v1: jobs over HTTP, as JSON. What one interface does, the other sees."""
# tier: check, threads
import contextlib
import datetime
import errno
import json
import re
import socket
import threading
import time

from faults import FOREVER, SIZE, WRITE, Plan
from harness import PATIENCE, Case, Server, check, equal, main, matches, until
from web import JSON, ByRedis, Stores, Web


def has_left(connection):
    """Whether the server has closed it."""
    connection.setblocking(False)
    try:
        return connection.recv(1000) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def goes_on(web, path, kind, after=None):
    """Return the first page of a list that has found something, or the last. One that found nothing before the end has looked for a
    second: otherwise a client would ask hundreds of times."""
    while True:
        began = time.monotonic()
        page = web.good("GET", path if after is None else f"{path}{'&' if '?' in path else '?'}after={after}")
        if page[kind] or page["next"] is None:
            return page
        check(time.monotonic() - began > 0.9, f"{path}: an empty page came at once")
        after = page["next"]


class Interface:
    """What every store has."""

    def test_the_life_of_a_job(self):
        with self.server() as server, Web(server, self.token) as web, server.client() as a:
            status, made = web.ask("POST", "jobs", {"tube": "mail", "body": "hello", "delay": "1h", "run": 30})
            equal((status, made["version"], made["result"], web.etag), (201, 1, "new", '"1"'))
            number = made["id"]
            job = web.good("GET", "jobs/" + number)
            # Computed at two moments, by a clock that may be another machine's.
            due = lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
            check(abs(due(made["due"]) - due(job["due"])) < 5, (made, job))
            later = web.good("PUT", "tubes/mail/keys/due", {"body": "x", "at": "2099-01-01T00:00:00Z"})
            equal(later["due"], "2099-01-01T00:00:00.000Z")
            equal(web.good("PUT", "tubes/mail/keys/due", {"body": "x", "mode": "if-absent"})["due"], later["due"])
            web.refused(412, None, "POST", "jobs/%s/kick" % later["id"], If_Match='"2"')
            web.good("POST", "jobs/%s/kick" % later["id"], If_Match='"1"')
            web.good("DELETE", "jobs/" + later["id"])
            matches("it is delay$", web.refused(422, "in", "POST", "jobs", {"body": "x", "in": 1}))
            matches("it is starts, and per", web.refused(422, "rate", "PUT", "tubes/mail/limit", {"rate": 1}))
            equal([job[name] for name in ("id", "tube", "state", "body", "length", "run", "clock")],
                  [number, "mail", "delayed", "hello", 5, 30, "elapsed"])
            check(3500 < job["left"] <= 3600, job)
            equal(web.good("PATCH", "jobs/" + number, {"delay": 0}, If_Match='"1"'), {"version": 2})
            lease, = web.good("POST", "leases", {"tubes": ["none", "mail"]})["leases"]
            equal((lease["id"], lease["body"], lease["attempt"]), (number, "hello", 1))
            token = {"token": lease["token"]}
            equal(web.ask("POST", "jobs/%s/touch" % number, token), (204, None))
            # The other interface sees the lease, and cannot take the job.
            equal(a.ask("delete " + number), "NOT_FOUND")
            equal(web.good("POST", "jobs/%s/release" % number, {**token, "delay": 0, "error": "no time"}),
                  {"buried": False})
            equal(web.good("GET", "jobs/" + number)["error"], "no time")
            web.refused(412, None, "POST", "jobs/%s/finish" % number, token)
            lease, = web.good("POST", "leases", {"tubes": ["mail"], "most": 5})["leases"]
            token = {"token": lease["token"]}
            equal(lease["attempt"], 2)
            web.good("POST", "jobs/%s/bury" % number, {**token, "error": "never"})
            equal(web.good("GET", "jobs/" + number)["state"], "buried")
            web.refused(409, None, "PATCH", "jobs/" + number, {"delay": 1})
            other = web.good("POST", "jobs", {"tube": "other"})["id"]
            matches("the job is ready: only buried", web.refused(409, None, "POST", "jobs/%s/kick" % other))
            web.good("DELETE", "jobs/" + other)
            web.refused(404, None, "POST", "jobs/%s/kick" % other)
            equal(web.good("POST", "tubes/mail/kick", {"most": 7}), {"kicked": 1})
            lease, = web.good("POST", "leases", {"tubes": ["mail"]})["leases"]
            web.good("POST", "jobs/%s/return" % number, {"token": lease["token"]})
            lease, = web.good("POST", "leases", {"tubes": ["mail"]})["leases"]
            web.good("POST", "jobs/%s/finish" % number, {"token": lease["token"]})
            web.refused(404, None, "GET", "jobs/" + number)
            equal(a.ask("peek " + number), "NOT_FOUND")

    def test_a_body_that_is_pushed_is_a_request(self):
        with self.server("--push", "hooks") as server, Web(server, self.token) as web:
            matches("jobs of the tube hooks are pushed",
                    web.refused(422, "body", "POST", "jobs", {"tube": "hooks", "body": "hello", "delay": 60}))
            web.good("POST", "jobs", {"tube": "hooks", "body": "GET http://example.org/\n\n", "delay": 60})

    def test_a_job_by_its_key(self):
        with self.server() as server, Web(server, self.token) as web, server.client() as a:
            path = "tubes/mail/keys/user%2F7%20%C3%A4"
            status, made = web.ask("PUT", path, {"body": "one", "delay": 60})
            equal((status, made["result"]), (201, "new"))
            status, again = web.ask("PUT", path, {"body": "two", "delay": 60})
            equal((status, again), (200, {"id": made["id"], "version": 2, "result": "replaced", "due": again["due"]}))
            job = web.good("GET", path)
            equal((job["key"], job["body"], web.etag), ("user/7 ä", "two", '"2"'))
            web.refused(412, None, "PUT", path, {"body": "three"}, If_Match='"1"')
            web.refused(412, None, "PATCH", path, {"delay": 5}, If_Match='"1"')
            web.refused(422, "key", "PUT", path, {"key": "x"})
            web.good("PATCH", path, {"at": "2100-01-01T00:00:00+01:00"})
            matches("2099-12-31T2[23]:", web.good("GET", path)["due"])
            equal(web.ask("DELETE", path), (204, None))
            web.refused(404, None, "GET", path)
            web.good("POST", "jobs", {"tube": "mail", "key_base64": "AAEC", "body_base64": "/wA="})
            a.ask("use mail")
            equal(web.good("GET", "tubes/mail/keys/%00%01%02")["body_base64"], "/wA=")
            equal(web.good("GET", "jobs?prefix=%00&tube=mail")["jobs"][0]["key_base64"], "AAEC")

    def test_a_spread_put_has_its_place(self):
        due = lambda made: datetime.datetime.fromisoformat(made["due"].replace("Z", "+00:00"))
        start = datetime.datetime(2099, 1, 1, tzinfo=datetime.timezone.utc)
        job = {"body": "x", "at": "2099-01-01T00:00:00Z", "spread": "10m"}
        with self.server() as server, Web(server, self.token) as web, server.client() as a:
            a.ask("use mail")
            places = set()
            for i in range(20):
                made = web.good("PUT", f"tubes/mail/keys/{i}", job)
                again = web.good("PUT", f"tubes/mail/keys/{i}", {**job, "body": "y"})
                equal((again["result"], again["due"]), ("replaced", made["due"]))
                equal(web.good("GET", f"tubes/mail/keys/{i}")["due"], made["due"])
                # The protocol knows the same place.
                a.ask(f"put-at 1 {start.timestamp():.0f} 60 1 {i} spread=600\r\nx")
                equal(web.good("GET", f"tubes/mail/keys/{i}")["due"], made["due"])
                places.add((due(made) - start).total_seconds())
            check(len(places) == 20 and 0 <= min(places) < 200 and 400 < max(places) < 600, sorted(places))
            none = web.good("PUT", "tubes/mail/keys/0", {**job, "spread": 0})
            equal(due(none), start)
            web.refused(422, "spread", "PUT", "tubes/mail/keys/0", {**job, "spread": -1})

    def test_modes_of_keys(self):
        with self.server() as server, Web(server, self.token) as web:
            path, job = "tubes/default/keys/k", {"body": "x", "delay": 60}
            equal(web.ask("PUT", path, job, If_None_Match="*")[0], 201)
            for result, more in (("kept", {"mode": "if-absent"}), ("kept", {"mode": "keep-earlier", "delay": 61}),
                                 ("replaced", {"mode": "keep-later", "delay": 61}),
                                 ("replaced", {"debounce": "1h"}), ("kept", {"unique": 60})):
                equal(web.good("PUT", path, {**job, **more})["result"], result, more)
            equal(web.ask("PUT", path, job, If_None_Match="*")[1]["result"], "kept")
            web.refused(422, "unique", "PUT", path, {**job, "unique": 60, "mode": "replace"})
            web.refused(422, "key", "POST", "jobs", {"mode": "if-absent"})
            # A request that is sent again puts nothing, even after the job has ended.
            status, made = web.ask("POST", "jobs", {"tube": "pay"}, Idempotency_Key="order 7")
            equal((status, made["result"]), (201, "new"))
            again = web.good("POST", "jobs", {"tube": "pay"}, Idempotency_Key="order 7")
            equal((again["id"], again["result"]), (made["id"], "kept"))
            lease, = web.good("POST", "leases", {"tubes": ["pay"]})["leases"]
            web.good("POST", "jobs/%s/finish" % lease["id"], {"token": lease["token"]})
            equal(web.good("POST", "jobs", {"tube": "pay"}, Idempotency_Key="order 7")["result"], "ended")
            web.refused(422, "Idempotency-Key", "POST", "jobs", {"key": "k"}, Idempotency_Key="order 8")

    def test_many(self):
        with self.server() as server, Web(server, self.token) as web:
            made = web.good("POST", "jobs", [{"body": str(n), "tube": "t%d" % (n % 2), "delay": n} for n in range(300)])
            equal(len({job["id"] for job in made}), 300)
            found, after = [], ""
            while after is not None:
                page = web.good("GET", "jobs?tube=t1&limit=40" + after)
                check(len(page["jobs"]) <= 40, page)
                found += page["jobs"]
                after = page["next"] and "&after=" + page["next"]
            equal({job["id"] for job in found}, {job["id"] for job in made[1::2]})
            tubes = {tube["name"]: tube for tube in web.good("GET", "tubes")["tubes"]}
            equal(tubes["t1"]["delayed"] + tubes["t1"]["ready"], 150)
            equal(web.good("GET", "tubes/t1")["puts"], tubes["t1"]["puts"])
            equal(sum(web.good("GET", "forecast?span=60&count=10")["counts"]), 300)
            later = web.good("POST", "jobs", {"delay": 1000})["id"]
            equal(sum(web.good("GET", "forecast?span=500&count=1")["counts"]), 300)
            web.good("DELETE", "jobs/" + later)
            stats = web.good("GET", "stats")
            equal((stats["delayed"] >= 298, stats["fault"]), (True, None), stats)
            equal(len(web.good("GET", "jobs?state=delayed&state=buried&limit=1000")["jobs"]) >= 298, True)
            # One that is wrong keeps the others from being put; one that the store refuses does not.
            web.refused(422, "delay", "POST", "jobs", [{"body": "x"}, {"delay": "soon"}])
            for wrong in ({"delay": "soon"}, {"mode": "if-absent"}, {"none": 1}):
                equal(web.ask("POST", "jobs", [{"body": "x"}, {"body": "x"}, wrong])[1].get("index"), 2, wrong)
                equal(web.ask("POST", "jobs", wrong)[1].get("index"), None, wrong)
            web.refused(422, None, "POST", "jobs", [])

    def test_a_list_goes_on_until_it_finds_something(self):
        with self.server() as server, Web(server, self.token) as web, Web(server, self.token) as other:
            for _ in range(8):
                web.good("POST", "jobs", [{"tube": "many", "delay": "2h"}] * 1000)
            made = web.good("POST", "jobs", {"tube": "one", "body": "x"})["id"]
            lease, = web.good("POST", "leases", {"tubes": ["one"]})["leases"]
            web.good("POST", "jobs/%s/bury" % made, {"token": lease["token"], "error": "no"})
            web.good("PUT", "tubes/t/schedules/n", {"cron": "@daily"})
            for path, kind, wanted in (("jobs?state=buried", "jobs", "one"), ("jobs?tube=one", "jobs", "one"),
                                       ("jobs?state=buried&tube=one&limit=1", "jobs", "one"),
                                       ("schedules", "schedules", "t"), ("schedules?tube=t", "schedules", "t")):
                equal([found["tube"] for found in goes_on(web, path, kind)[kind]], [wanted], path)
            for path, kind in (("jobs?state=reserved", "jobs"), ("schedules?tube=none", "schedules")):
                equal(goes_on(web, path, kind), {kind: [], "next": None}, path)
            # Several at once take turns, and whoever leaves is forgotten.
            web.begin("GET", "jobs?state=buried")
            other.begin("GET", "jobs?tube=none")
            other.http.close()
            page = web.end()[1]
            if not page["jobs"]:
                page = goes_on(web, "jobs?state=buried", "jobs", page["next"])
            equal(len(page["jobs"]), 1)

    def test_limits(self):
        with self.server() as server, Web(server, self.token) as web:
            web.good("PUT", "tubes/api/limit", {"running": 2, "starts": 100, "per": "1m", "burst": 50})
            web.good("PUT", "tubes/api/limit", {"each": True, "running": 1})
            made = web.good("POST", "jobs", [{"tube": "api", "group": group} for group in "aabc"])
            equal(web.good("GET", "jobs/" + made[2]["id"])["group"], "b")
            leases = web.good("POST", "leases", {"tubes": ["api"], "most": 9})["leases"]
            equal(len(leases), 2)
            whole, = (limit for limit in web.good("GET", "limits?tube=api")["limits"] if not limit["each"])
            equal([whole[name] for name in ("tube", "running", "starts", "per", "burst", "now_running")],
                  ["api", 2, 100, 60, 50, 2])
            for each in ({}, {"each": True}):
                web.good("DELETE", "tubes/api/limit", each)
            equal(web.good("GET", "limits"), {"limits": []})
            equal(len(web.good("POST", "leases", {"tubes": ["api"], "most": 9})["leases"]), 2)
            web.refused(422, "running", "PUT", "tubes/api/limit", {})
            web.refused(422, "starts", "PUT", "tubes/api/limit", {"starts": 1, "per": "8d"})
            web.refused(422, "each", "PUT", "tubes/api/limit", {"running": 1, "each": True, "group": "a"})

    def test_pause(self):
        with self.server() as server, Web(server, self.token) as web:
            web.good("POST", "jobs", {"body": "x"})
            web.good("POST", "tubes/default/pause", {"span": "1h"})
            equal(web.good("GET", "tubes/default")["pause"], 3600)
            equal(web.good("POST", "leases", {}), {"leases": []})
            web.good("POST", "tubes/default/resume")
            equal(len(web.good("POST", "leases", {})["leases"]), 1)

    def test_waiting_for_a_job(self):
        with self.server() as server, Web(server, self.token) as web, server.client() as a:
            web.begin("POST", "leases", {"tubes": ["later", "other"], "wait": 20})
            a.until_waiting()
            a.put(b"at last", tube="other")
            lease, = web.end()[1]["leases"]
            equal((lease["tube"], lease["body"]), ("other", "at last"))
            # Each of those who wait gets one.
            others = [Web(server, self.token) for _ in range(5)]
            for other in others:
                other.begin("POST", "leases", {"tubes": ["other"], "wait": 20})
            a.until_waiting(5)
            for n in range(5):
                a.put(b"%d" % n)
            bodies = [lease["body"] for other in others for lease in other.end()[1]["leases"]]
            equal(sorted(bodies), list("01234"))
            for other in others:
                other.http.close()
            a.until_waiting(0)

    def test_ends_are_counted(self):
        with self.server() as server, Web(server, self.token) as web:
            for end, more in (("finish", {}), ("finish", {}), ("release", {"delay": 60}), ("bury", {}), ("return", {})):
                made = web.good("POST", "jobs", {"tube": "mail", "body": "x"})
                token = {"token": web.good("POST", "leases", {"tubes": ["mail"]})["leases"][0]["token"], **more}
                web.good("POST", "jobs/%s/%s" % (made["id"], end), token)
                web.refused(412, None, "POST", "jobs/%s/finish" % made["id"], {"token": token["token"]})
            lines = web.text("/metrics").splitlines()
            for name, count in (("delivered", 5), ("done", 2), ("failed", 1), ("buried", 1)):
                check('weekwheeld_tube_%s_total{tube="mail"} %d' % (name, count) in lines, name)
            check("weekwheeld_job_run_seconds_count 4" in lines, "runs")

    def test_the_last_failure_buries_a_job_and_has_a_line_of_the_log(self):
        with self.server() as server, Web(server, self.token) as web:
            for attempts, buried in ((2, False), (1, True)):
                made = web.good("POST", "jobs", {"body": "x", "attempts": attempts})
                lease, = web.good("POST", "leases", {})["leases"]
                equal(web.good("POST", "jobs/%s/release" % made["id"], {"token": lease["token"], "delay": 60}), {"buried": buried})
            server.stop()
            equal(re.findall(r"job (\d+) .* is buried \(", server.said), [made["id"]])

    def test_a_client_that_has_gone_gets_no_job(self):
        with self.server() as server, Web(server, self.token) as web, server.client() as a:
            web.begin("POST", "leases", {"wait": 20})
            a.until_waiting()
            web.http.sock.shutdown(socket.SHUT_RDWR)
            web.http.close()
            a.put(b"x")
            matches("RESERVED", a.ask("reserve-with-timeout 10"))

    def test_the_server_ends_while_requests_wait(self):
        with self.server() as server, Web(server, self.token) as web, server.client() as a:
            web.begin("POST", "leases", {"wait": 20})
            a.until_waiting()
            equal(server.stop(), 0)

    def test_what_is_wrong_is_named(self):
        with self.server() as server, Web(server, self.token) as web:
            for field, job in (("bdy", {"bdy": "x"}), ("at", {"at": "2026-12-01T09:00:00"}), ("delay", {"delay": -1}),
                               ("at", {"at": "2100-01-01T00:00:00Z", "delay": 1}), ("run", {"run": 0.5}),
                               ("tube", {"tube": ""}), ("tube", {"tube": "x" * 201}), ("key", {"key": "x" * 201}),
                               ("body_base64", {"body_base64": "x"}), ("missed", {"missed": "never"}),
                               ("priority", {"priority": 1 << 32}), ("body", {"body": {"a": 1}})):
                web.refused(422, field, "POST", "jobs", job)
            web.refused(413, "body", "POST", "jobs", {"body": "x" * 65536})
            web.refused(413, None, "POST", "jobs", {"body": "x" * 1000000})
            for text in (b"{", b"nonsense", b'{"body":"x"} y', b'{"body":"\xff"}', b"[{}"):
                status, said = web.ask("POST", "jobs", text)
                check(status in (400, 422), (text, status, said))
            # One who forgot the body does not mean an empty job.
            for method, path in ("POST", "jobs"), ("PUT", "tubes/t/keys/k"):
                matches("no body", web.refused(400, None, method, path, b""))
            for at, why in (("2116-01-01T00:00:00Z", "a year from 1970 to 2115"), ("2030-01-01T09:00:60Z", "a time of day such as"),
                            ("2030-02-30T09:00:00Z", "a day that this month has"), ("2030-01-01T09:00:00+15:00", "an offset such as"),
                            ("soon", "a time with its zone"), ("2030-01-01", "a time with its zone")):
                matches(why, web.refused(422, "at", "POST", "jobs", {"at": at}))
            web.refused(415, "Content-Type", "POST", "jobs", b"body=x", Content_Type="text/plain")
            web.refused(400, "If-Match", "PATCH", "jobs/1", {"delay": 1}, If_Match="new")
            web.refused(400, "colour", "GET", "jobs?colour=red")
            web.refused(400, "state", "GET", "jobs?state=done")
            web.refused(400, "limit", "GET", "jobs?limit=1001")
            web.refused(404, "id", "GET", "jobs/one")
            web.refused(404, None, "GET", "jobs/1234567")
            web.refused(404, None, "GET", "tubes/nope")
            web.refused(404, None, "GET", "nope")
            web.refused(404, None, "GET", "nope/" * 500)
            matches("a GET has no body", web.refused(400, None, "GET", "jobs", {}))
            matches("POST, GET", web.refused(405, None, "DELETE", "jobs"))
            web.refused(422, "token", "POST", "jobs/1/finish", {})
            matches("from 1 to 100|1 to 100", web.refused(422, "most", "POST", "leases", {"most": 101}))
            web.refused(422, "wait", "POST", "leases", {"wait": 21})
            web.refused(422, "tubes", "POST", "leases", {"tubes": []})
            web.refused(422, "tubes", "POST", "leases", {"tubes": ["x"] * 101})
            equal(web.good("GET", "stats")["accepted"] <= 1, True)

    def test_numbers_have_each_form_of_json(self):
        with self.server() as server, Web(server, self.token) as web:
            for text in (b'{"priority":1024.0,"delay":1e+05}', b'{"priority":1.024e3,"delay":100000.0}', b'{"priority":10240E-1,"delay":10e4}'):
                status, made = web.ask("POST", "jobs", text)
                equal(status, 201, (text, made))
                job = web.good("GET", "jobs/" + made["id"])
                equal((job["priority"], job["delay"]), (1024, 100000), text)
            for text in (b'{"priority":1024.5}', b'{"priority":1e10}', b'{"priority":1e400}', b'{"priority":1e-1}', b'{"delay":1e}'):
                equal(web.ask("POST", "jobs", text)[0], 422, text)

    def test_who_may(self):
        with self.server() as server, Web(server, self.token) as admin, Web(server, None) as nobody, \
                Web(server, self.mailer) as mailer:
            nobody.refused(401, None, "GET", "stats")
            nobody.refused(401, None, "POST", "jobs", {"body": "x"})
            made = admin.good("POST", "jobs", {"tube": "mail", "body": "x"})
            other = admin.good("POST", "jobs", {"tube": "secret", "body": "x"})
            # It may work in mail, put into results, and no more.
            matches("does not grant 'put' in the tube mail", mailer.refused(403, "tube", "POST", "jobs", {"tube": "mail"}))
            mailer.good("POST", "jobs", {"tube": "results"})
            matches("does not grant 'read' in any tube", mailer.refused(403, None, "GET", "stats"))
            equal(mailer.good("GET", "token"), {"name": "mailer", "grants": [{"rights": ["work"], "tubes": ["mail"]},
                                                                             {"rights": ["put"], "tubes": ["results"]}]})
            equal(admin.good("GET", "token"),
                  {"name": "admin", "grants": [{"rights": ["read", "put", "work", "admin"], "tubes": ["*"]}]})
            nobody.refused(401, None, "GET", "token")
            # What there is, a stranger may read before all.
            equal(nobody.good("GET", "openapi.json")["openapi"][:2], "3.")
            mailer.refused(403, None, "GET", "jobs/" + made["id"])
            mailer.refused(403, None, "POST", "tubes/mail/pause", {"span": 1})
            mailer.refused(403, "tube", "POST", "leases", {"tubes": ["mail", "secret"]})
            # To it there is no such job.
            mailer.refused(404, None, "DELETE", "jobs/" + other["id"])
            mailer.refused(404, None, "PATCH", "jobs/" + other["id"], {"delay": 9})
            mailer.refused(404, None, "POST", "jobs/%s/kick" % other["id"])
            lease, = mailer.good("POST", "leases", {"tubes": ["mail"]})["leases"]
            mailer.good("POST", "jobs/%s/finish" % made["id"], {"token": lease["token"]})
            secret, = admin.good("POST", "leases", {"tubes": ["secret"]})["leases"]
            for end in ("finish", "release", "bury", "touch", "return"):
                mailer.refused(404, None, "POST", "jobs/%s/%s" % (other["id"], end), {"token": secret["token"]})
            equal(admin.good("GET", "jobs/" + other["id"])["state"], "reserved")

    def test_bodies_that_do_not_end_are_bounded(self):
        with self.server("--max-buffers", "4M", "--max-job-size", "3000000") as server, contextlib.ExitStack() as stack:
            others = []
            for _ in range(4):
                web = stack.enter_context(Web(server, self.token))
                web.http.putrequest("POST", "/v1/jobs")
                for name, value in (("Authorization", "Bearer " + self.token), ("Content-Length", "4000000")):
                    web.http.putheader(name, value)
                web.http.endheaders()
                others.append(web.http.sock)
                others[-1].sendall(b" " * 2000000)
            until(lambda: any(has_left(other) for other in others), "one of them has to leave")
            with Web(server, self.token) as web:
                web.good("POST", "jobs", {"body": "x"})
            equal(server.stop(), 0)
            matches("buffers", server.said)

    def test_without_tokens_nothing_changes(self):
        with Server("--http", "127.0.0.1:0") as server, Web(server, None) as web:
            equal(web.good("GET", "jobs"), {"jobs": [], "next": None})
            equal(web.good("GET", "token"), {"name": None, "grants": [{"rights": ["read"], "tubes": ["*"]}]})
            matches("need a token", web.refused(403, None, "POST", "jobs", {"body": "x"}))
            web.refused(403, None, "DELETE", "jobs/1")
            equal(web.good("GET", "stats")["accepted"], 0)


class Embedded(Interface, Stores, Case):
    def test_weights_of_groups(self):
        with self.server() as server, Web(server, self.token) as web:
            web.good("PUT", "tubes/api/limit", {"group": "a", "weight": 3})
            equal([(limit["group"], limit["weight"], limit["running"]) for limit in web.good("GET", "limits")["limits"]], [("a", 3, 0)])
            web.good("DELETE", "tubes/api/limit", {"group": "a"})
            equal(web.good("GET", "limits"), {"limits": []})
            web.refused(422, "weight", "PUT", "tubes/api/limit", {"weight": 3})
            web.refused(422, "weight", "PUT", "tubes/api/limit", {"group": "a", "weight": 1001})

    def test_the_description_is_true(self):
        """Each path and method of it is there, no other is, and objects have the members that it names."""
        with self.server() as server, Web(server, self.token) as web:
            said = web.good("GET", "openapi.json")
            schemas = said["components"]["schemas"]
            equal(schemas["Reserve"]["properties"]["most"]["maximum"], 100)
            check("maximum" not in schemas["Kick"]["properties"]["most"], "more is taken")
            jobs = said["paths"]["/jobs"]["post"]["requestBody"]["content"]["application/json"]["schema"]["oneOf"][1]
            equal((jobs["minItems"], jobs["maxItems"]), (1, 1000))
            for path, methods in said["paths"].items():
                path = path[1:].format(id="1", tube="t", key="k", name="n")
                wrong = next(m for m in ("PUT", "PATCH", "POST", "DELETE", "GET") if m.lower() not in methods)
                there = web.refused(405, None, wrong, path, {} if wrong in ("PUT", "PATCH", "POST") else None)
                equal(sorted(there.rsplit("methods ", 1)[1].lower().split(", ")), sorted(methods), path)
                for method, operation in methods.items():
                    if "requestBody" not in operation:
                        continue
                    schema = operation["requestBody"]["content"][JSON]["schema"]
                    schema = schema.get("oneOf", [schema])[0]
                    members = schemas[schema["$ref"].rsplit("/", 1)[1]]["properties"]
                    told = web.refused(422, "no member", method.upper(), path, {"no member": 1})
                    equal(sorted(told.rsplit("there are ", 1)[1].split(", ")), sorted(members), (method, path))
                # Each path takes the arguments that are said, and refuses all others by naming those.
                for method, operation in methods.items():
                    has = sorted(one["name"] for one in operation.get("parameters", []) if one["in"] == "query")
                    told = web.refused(400, "count" if "count" not in has else "prefix", method.upper(),
                                       path + ("?prefix=1" if "count" in has else "?count=2"))
                    equal(sorted(told.rsplit("there are ", 1)[1].split(", ")) if has else told,
                          has or "this path has no arguments", (method, path))
            # And what it says of answers.
            made = web.good("POST", "jobs", {"key": "k", "body": "x"})
            equal(sorted(made), sorted(schemas["PutResult"]["properties"]))
            for kind, object_ in (("Job", web.good("GET", "jobs/" + made["id"])),
                                  ("Lease", web.good("POST", "leases", {})["leases"][0]),
                                  ("Tube", web.good("GET", "tubes/default")),
                                  ("SchedulePut", web.good("PUT", "tubes/t/schedules/n", {"cron": "@daily"})),
                                  ("ScheduleState", web.good("GET", "tubes/t/schedules/n")),
                                  ("Meaning", web.good("GET", "cron?expression=@daily")), ("Token", web.good("GET", "token"))):
                check(set(object_) <= set(schemas[kind]["properties"]), (kind, object_))

    def test_history(self):
        with self.server() as server, Web(server, self.token) as web:
            made = web.good("POST", "jobs", {"tube": "api", "key": "k", "body": "x", "keep": "7d", "attempts": 2,
                                             "expire": "1h", "expired": "bury"})
            shown = web.good("GET", "jobs/" + made["id"])
            equal((shown["expire"], shown["expired"], shown["expires"] > shown["created"]), (3600, "bury", True))
            web.refused(422, "expired", "POST", "jobs", {"body": "x", "expire": "1h", "expired": "gone"})
            web.good("POST", "jobs", {"tube": "other", "body": "y", "keep": 60})
            job = "jobs/%s/" % made["id"]
            lease = web.good("POST", "leases", {"tubes": ["api"]})["leases"][0]
            web.good("POST", job + "report", {"token": lease["token"], "body": "status 1"})
            web.refused(422, "body", "POST", job + "report", {"token": lease["token"], "body": "x" * 4097})
            web.refused(422, "token", "POST", job + "report", {"body": "x"})
            web.good("POST", job + "release", {"token": lease["token"], "error": "no", "delay": 0})
            lease = web.good("POST", "leases", {"tubes": ["api"]})["leases"][0]
            web.good("POST", job + "finish", {"token": lease["token"]})
            lease = web.good("POST", "leases", {"tubes": ["other"]})["leases"][0]
            web.good("POST", "jobs/%s/finish" % lease["id"], {"token": lease["token"]})
            runs = web.good("GET", job + "history")
            equal([(run["outcome"], run["attempt"], run["error"], run["report"], run["key"]) for run in runs["runs"]],
                  [("finished", 2, "", "", "k"), ("released", 1, "no", "status 1", "k")])
            equal(runs["next"], None)
            schemas = web.good("GET", "openapi.json")["components"]["schemas"]
            check(set(runs["runs"][0]) <= set(schemas["Run"]["properties"]), runs)
            equal(len(web.good("GET", "history")["runs"]), 3)
            equal(len(web.good("GET", "history?tube=api&prefix=k")["runs"]), 2)
            page = web.good("GET", "history?limit=2")
            equal(len(web.good("GET", "history?after=" + page["next"])["runs"]), 1)

    def test_a_schedule_is_no_job(self):
        with self.server() as server, Web(server, self.token) as web, server.client() as a:
            matches("SCHEDULED", a.ask(b"put-schedule 100 0 60 1 n cron=%40daily\r\nx\r\n"))
            for method, path, body in (("GET", "jobs/1", None), ("PATCH", "jobs/1", {"delay": 0}),
                                       ("DELETE", "jobs/1", None), ("POST", "jobs/1/kick", None)):
                web.refused(404, None, method, path, body)
            equal((web.good("GET", "jobs")["jobs"], web.good("GET", "tubes")["tubes"]), ([], []))
            for name in ("-schedules", "a b", "a\r\nb", "ä", "\"x"):
                web.refused(422, "tube", "POST", "jobs", {"tube": name})
                web.refused(422, "tubes", "POST", "leases", {"tubes": [name]})
            web.refused(404, "tube", "GET", "tubes/-schedules")
            web.refused(404, "tube", "PUT", "tubes/-schedules/keys/default%2Fn", {"body": "x"})

    def test_who_waits_longest_is_first(self):
        with self.server() as server, Web(server, self.token) as first, Web(server, self.token) as second, \
                Web(server, self.token) as other, server.client() as a:
            for n, (web, tube) in enumerate(((first, "mail"), (other, "other"), (second, "mail"))):
                web.begin("POST", "leases", {"tubes": [tube], "wait": 20})
                a.until_waiting(n + 1)
            for web, body in ((first, "1"), (second, "2")):
                a.put(body.encode(), tube="mail")
                equal([lease["body"] for lease in web.end()[1]["leases"]], [body])
            a.until_waiting(1)

    def test_quotas_of_the_jobs_of_a_list(self):
        with self.server("--max-tube-jobs", "3", "--max-jobs", "9") as server, Web(server, self.token) as web:
            def put(tubes):
                return web.ask("POST", "jobs", [{"tube": tube, "body": "x"} for tube in tubes])[0]

            equal(put("aaaa"), 507)
            equal(put("a"), 200)
            # Jobs of other tubes take no room there.
            equal(put("bbccab"), 200)
            equal(put("aa"), 507)
            equal(put("dddee"), 507)
            equal(put("de"), 200)
            equal(put("d"), 507)

    def test_time(self):
        with self.server("--clock", "virtual") as server, Web(server, self.token) as web, server.client() as a:
            web.good("POST", "jobs", {"body": "x", "delay": "3d12h", "every": "1h"})
            web.begin("POST", "leases", {"wait": 10})
            a.until_waiting()
            a.ask("advance 10")
            equal(web.end(), (200, {"leases": []}))
            web.begin("POST", "leases", {"wait": 10})
            a.until_waiting()
            a.ask("advance 302385")
            equal(web.end(), (200, {"leases": []}))
            web.begin("POST", "leases", {"wait": 10})
            a.until_waiting()
            a.ask("advance 5")
            lease, = web.end()[1]["leases"]
            equal(lease["body"], "x")
            web.refused(422, "at", "POST", "jobs", {"at": "9999-01-01T00:00:00Z"})
            # RFC 3339 allows small letters.
            web.good("POST", "jobs", {"at": "2100-01-01t09:00:00.5z"})


class OnDisk(Embedded):
    arguments = ("--data", "jobs")

    def test_changes_of_a_turn_are_one_write(self):
        """And each is answered after it: a server that is killed has what it acknowledged."""
        with self.server() as server:
            webs = [Web(server, self.token) for _ in range(20)]

            def puts(web, made):
                for n in range(20):
                    made.append(web.good("POST", "jobs", {"body": str(n)})["id"])

            made = [[] for _ in webs]
            threads = [threading.Thread(target=puts, args=pair) for pair in zip(webs, made)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            ids = {number for each in made for number in each}
            equal(len(ids), 400)
            server.stop(9)
        with self.server() as server, server.client() as a:
            equal({str(job["id"]) for job in a.all_jobs()}, ids)


    def test_what_could_not_be_written_is_not_acknowledged(self):
        plan = Plan()
        with self.server(**plan.environment) as server, Web(server, self.token) as web:
            web.good("PUT", "tubes/default/keys/k", {"body": "first"})
            plan.set(1, FOREVER, errno.ENOSPC, WRITE | SIZE)
            equal(web.ask("PUT", "tubes/default/keys/k", {"body": "second"})[0], 507)
            # The disk is known to be full by now, and each job of a list is refused by itself.
            equal(web.good("POST", "jobs", [{"body": "third"}])[0]["status"], 507)
            equal("the disk of jobs is full", web.good("GET", "stats")["fault"])
            plan.set(0)
            equal([job["body"] for job in web.good("GET", "jobs?body=true")["jobs"]], ["first"])


class InRedis(Interface, ByRedis, Case):
    def test_weights_are_refused(self):
        with self.server() as server, Web(server, self.token) as web:
            web.refused(422, "weight", "PUT", "tubes/api/limit", {"group": "a", "weight": 3})

    def test_waiting_goes_on_while_redis_is_away(self):
        with self.server() as server, Web(server, self.token) as web, Web(server, self.token) as other:
            self.redis.kill()
            # Who does not wait is told that nobody knows.
            check(other.ask("POST", "leases", {})[0] >= 500, "an error")
            web.begin("POST", "leases", {"wait": 20})
            until(lambda: "\nweekwheeld_store_errors_total 0\n" not in other.text("/metrics"), "it asks in vain")
            self.redis.start()
            until(lambda: other.ask("POST", "jobs", {"body": "x"})[0] == 201, "Redis is back")
            equal([lease["body"] for lease in web.end()[1]["leases"]], ["x"])


main()
