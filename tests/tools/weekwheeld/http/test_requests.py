#!/usr/bin/env python3
"""Every path with every method, and with arguments, headers and bodies that it does not expect, gets an answer."""
# tier: check
import http.client
import itertools
import json
import re

from harness import PATIENCE, Case, Server, check, equal, main
from web import JSON, token_of

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "BREW")
OBJECTS = (None, b"x", b"{}", b"[]", b"null", b'""', b'{"body":[' * 5000)
BODIES = [(body, {"Content-Type": JSON}) for body in OBJECTS] + \
    [(body, {}) for body in OBJECTS[:3]] + [(b"{}", {"Content-Type": "text/plain"})]
OTHERS = ("/", "/page.css", "/metrics", "/livez", "/readyz", "/healthz", "/list", "/forecast", "/none", "/v1", "/v1/",
          "/v1/none", "/v1/jobs/x", "/v1/tubes/-x", "/v1/tubes/t/keys/", "/v1/tubes//keys/k", "/v1/jobs/1/none")
ARGUMENTS = ("tube=t", "prefix=p", "state=ready", "after=1", "limit=1", "body=true", "span=1", "count=1",
             "expression=@daily", "zone=UTC", "none=1")


class Asker:
    """Asks over one connection for as long as the server keeps it."""

    def __init__(self, server, token):
        port = int(re.search(r"serving http://[0-9.]+:(\d+)/", server.said).group(1))
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.headers = {"Authorization": "Bearer " + token} if token else {}

    def status(self, method, path, body=None, **headers):
        what = (method, path, body and body[:20], headers)
        try:
            self.http.request(method, path, body, {**self.headers, **headers})
            answer = self.http.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise AssertionError("no answer to %s" % (what,)) from error
        if answer.getheader("Content-Type") == "text/event-stream":
            self.http.close()
        else:
            said = answer.read()
            check(method == "HEAD" or answer.status == 204 or said or answer.status == 200, (what, answer.status))
        # A stream of events that has ended may still have its place.
        check(answer.status < 500 or (answer.status == 503 and path.startswith("/v1/events")), (what, answer.status))
        return answer.status


class Requests(Case):
    def setUp(self):
        super().setUp()
        self.token = token_of("admin", "admin:*")
        self.open = self.enterContext(Server("--http", "127.0.0.1:0"))
        self.closed = self.enterContext(Server("--http", "127.0.0.1:0", "--auth-file", "tokens"))
        self.askers = (Asker(self.open, None), Asker(self.closed, self.token))
        for asker in self.askers:
            self.addCleanup(asker.http.close)

    def tearDown(self):
        for server in (self.open, self.closed):
            equal(server.process.poll(), None)
            equal(server.stop(), 0)
        super().tearDown()

    def paths(self):
        status, text = self.open.get("/v1/openapi.json")
        equal(status, 200)
        paths = json.loads(text)["paths"]
        return ["/v1" + path.format(id="1", tube="t", key="k", name="n") for path in paths]

    def test_bodies(self):
        for asker, path, method in itertools.product(self.askers, [*self.paths(), *OTHERS], METHODS):
            for body, headers in BODIES:
                status = asker.status(method, path, body, **headers)
                if method in ("GET", "HEAD") and body:
                    check(status >= 400, (method, path, body[:20], headers, status))

    def test_no_token(self):
        asker = Asker(self.closed, None)
        self.addCleanup(asker.http.close)
        for path, method, body in itertools.product([*self.paths(), *OTHERS], METHODS, OBJECTS[:3]):
            asker.status(method, path, body, **{"Content-Type": JSON})

    def test_arguments(self):
        for asker, path, argument in itertools.product(self.askers, [*self.paths(), *OTHERS], ARGUMENTS):
            name = argument.split("=", maxsplit=1)[0]
            for query in (argument, name, name + "=", argument + "&" + argument, name + "=%00", name + "=%",
                          name + "=" + "%ff" * 3000):
                asker.status("GET", path + "?" + query)
            asker.status("DELETE", path + "?" + argument)
        asker = self.askers[0]
        for query in ("limit=1&limit=2", "body=yes", "tube=a&tube=a"):
            equal(asker.status("GET", "/v1/jobs?" + query), 400, query)
        for path in ("/v1/jobs?state=ready&state=buried", "/v1/jobs?body=false", "/v1/events?tube=a&tube=b"):
            equal(asker.status("GET", path), 200, path)

    def test_headers(self):
        for asker, path, method in itertools.product(self.askers, [*self.paths(), *OTHERS], ("GET", "POST", "DELETE")):
            for name, value in itertools.product(("If-Match", "If-None-Match", "Idempotency-Key", "Last-Event-ID"),
                                                 ("", "*", '"', "x" * 300)):
                asker.status(method, path, None, **{name: value})
        for path in (*self.paths(), *OTHERS):
            for value in ("", "Bearer", "Bearer ", "Basic eDp5", "x" * 300):
                self.askers[0].status("GET", path, Authorization=value)

    def test_an_operation_without_members_takes_an_empty_object(self):
        asker = self.askers[1]
        equal(asker.status("POST", "/v1/jobs", b'{"tube":"t"}', **{"Content-Type": JSON}), 201)
        for path, status in (("/v1/tubes/t/resume", 204), ("/v1/jobs/7/kick", 404)):
            equal(asker.status("POST", path, b"{}", **{"Content-Type": JSON}), status)
            equal(asker.status("POST", path), status)
            equal(asker.status("POST", path, b'{"a":1}', **{"Content-Type": JSON}), 422)
            equal(asker.status("POST", path, b"x", **{"Content-Type": JSON}), 400)


main()
