#!/usr/bin/env python3
"""What both servers show over HTTP in the same way: methods, bodies, paths, tokens, health, and the common metrics."""
# tier: check
import hashlib
import http.client
import json
import os
import re
import signal
import socket

from sessiond import Sessiond
from harness import PATIENCE, Case, Server, check, equal, main, matches, stopped, until

OPEN = ("/", "/page.css", "/common.js", "/livez", "/readyz", "/healthz")
ALL, SOME, LATE, WRONG = ("token-with-some-length-" + name for name in ("all", "some", "late", "wrong"))


def each(*arguments):
    for kind in (Server, Sessiond):
        with kind("--http", "127.0.0.1:0", *arguments) as server:
            yield server


def http_port(server):
    return int(re.search(r"serving http://127\.0\.0\.1:(\d+)/", server.said)[1])


def ask(server, path, token=None, method="GET", body=None):
    """The status, the fields and the text of an answer. Each has a connection of its own."""
    link = http.client.HTTPConnection("127.0.0.1", http_port(server), timeout=PATIENCE)
    link.request(method, path, body, {"Authorization": "Bearer " + token} if token else {})
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    return answer.status, answer.headers, text


class Site(Case):
    def setUp(self):
        super().setUp()
        self.write_tokens()

    def write_tokens(self):
        with open("tokens", "w", encoding="utf-8") as file:
            for name, token, grants in (("all", ALL, "read:*"), ("some", SOME, "read:a*")):
                file.write("%s sha256:%s %s\n" % (name, hashlib.sha256(token.encode()).hexdigest(), grants))
        os.chmod("tokens", 0o600)

    def test_only_get_without_a_body(self):
        for server in each():
            for path in (*OPEN, "/metrics", "/nothing"):
                for method, body in (("POST", None), ("POST", b"x"), ("PUT", b"x"), ("DELETE", None), ("OPTIONS", None), ("GET", b"x")):
                    status, fields, text = ask(server, path, None, method, body)
                    equal((path, method, status, fields["Allow"]), (path, method, 405, "GET, HEAD"))
                    matches("^only GET: this interface is read-only$", text)
                equal(ask(server, path, None, "HEAD")[::2], (404 if path == "/nothing" else 200, ""))

    def test_paths(self):
        for server in each():
            status, _, text = ask(server, "/nothing")
            equal(status, 404)
            matches(r"^there are /, /livez, /readyz, /healthz, /metrics, .* and /v1/\w*$", text)
            for path in ("//livez", "/livez/", "/metrics/x", "/Livez", "/%6civez"):
                equal((path, ask(server, path)[0]), (path, 404))
            equal(ask(server, "/livez?x=y")[0], 200)

    def test_tokens(self):
        for server in each("--auth-file", "tokens"):
            equal([ask(server, path)[0] for path in OPEN], [200] * len(OPEN))
            status, fields, text = ask(server, "/metrics")
            equal((status, fields["WWW-Authenticate"]), (401, "Bearer"))
            matches("this needs a token", text)
            matches("the token.*read:", ask(server, "/metrics", SOME)[2])
            equal([ask(server, "/metrics", token)[0] for token in (ALL, SOME, ALL)], [200, 403, 200])
            status, _, text = ask(server, "/metrics", WRONG)
            equal(status, 401)
            matches("does not know this token", text)
            # It rests for a tenth of a second.
            for _ in range(20):
                status, fields, text = ask(server, "/metrics", WRONG)
                if status == 429:
                    break
            equal((status, int(fields["Retry-After"]) > 0), (429, True))
            matches("a wrong token came from your address", text)
            equal([ask(server, "/metrics", token)[0] for token in (ALL, SOME)], [200, 403])
            count = re.search(r"^weekwheel\w+_auth_failures_total (\d+)$", ask(server, "/metrics", ALL)[2], re.M)
            check(int(count[1]) >= 2, count)

    def test_tokens_for_http_alone(self):
        """Plain clients go on as if there were no tokens; requests need one, to change something, too."""
        for server in each("--http-auth-file", "tokens"):
            word = ("use mail", "USING mail") if isinstance(server, Server) else ("PING", b"+PONG\r\n")
            with server.client() as client:
                equal(client.ask(word[0]), word[1])
                equal([ask(server, "/metrics", token)[0] for token in (None, WRONG, SOME, ALL)], [401, 401, 403, 200])
                with open("tokens", "a", encoding="utf-8") as file:
                    file.write("late sha256:%s admin:*\n" % hashlib.sha256(LATE.encode()).hexdigest())
                server.process.send_signal(signal.SIGHUP)
                until(lambda: ask(server, "/metrics", LATE)[0] == 200, "the new token counts")
                equal(client.ask(word[0]), word[1])
            if isinstance(server, Server):
                job = json.dumps({"tube": "mail", "body": "x"})
                equal([ask(server, "/v1/jobs", token, "POST", job)[0] for token in (None, ALL, LATE)], [401, 403, 201])
                with server.client() as client:
                    equal(client.ask("put 1024 0 60 1\r\ny"), "INSERTED 2")
            with open("tokens", "a", encoding="utf-8") as file:
                file.write("nonsense\n")
            server.process.send_signal(signal.SIGHUP)
            matches("stay as they were: --http-auth-file 'tokens': line 4", next(line for line in server.process.stderr if "stay as" in line))
            self.write_tokens()

    def test_health(self):
        for server in each():
            for path in ("/readyz", "/healthz"):
                equal(ask(server, path)[::2], (200, "ok\n"))
                told = json.loads(ask(server, path + "?format=json")[2])
                equal([told[name] for name in ("ready", "reads", "writes", "reasons")], [True, True, True, []])
            equal(ask(server, "/livez")[::2], (200, "ok\n"))

    def test_who_sends_the_end_with_the_request_is_let_go(self):
        """When it is answered, and not only when its time is over."""
        for server in each():
            with socket.create_connection(("127.0.0.1", http_port(server)), PATIENCE) as client:
                with stopped(server):
                    client.sendall(2 * b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    client.shutdown(socket.SHUT_WR)
                answer = b""
                while came := client.recv(65536):
                    answer += came
            equal(answer.count(b"HTTP/1.1 200 OK\r\n"), 2)
            matches(r"(?m)^weekwheel\w+_http_too_slow_total 0$", ask(server, "/metrics")[2])

    def test_metrics(self):
        for server in each():
            _, fields, text = ask(server, "/metrics")
            equal(fields["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            prefix = re.search(r"^(weekwheel\w+)_build_info\{version=", text, re.M)[1]
            for name in ("uptime_seconds", "auth_failures_total", "http_connections", "http_connections_total", "http_too_slow_total",
                         "http_replaced_total"):
                matches(r"(?m)^%s_%s [0-9.]+$" % (prefix, name), text)
            names = re.findall(r"^# TYPE (\S+)", text, re.M)
            equal(sorted(set(names)), sorted(names))


main()
