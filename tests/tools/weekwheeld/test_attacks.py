#!/usr/bin/env python3
"""Ten clients ask weekwheeld for all that it has and read nothing, or begin what they do not end. Others are served."""
# tier: check
import re

from attack import Attack, Probe
from harness import Case, Server, descriptors, main
from web import token_of

GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
MB = 1 << 20


class Attacks(Case):
    COUNT, BOUND, SECONDS = 10, 32 * MB, 3
    LEAST, PART = 0.02, 2   # seconds of processor time that anybody may wait, or a part of the cost of all

    def setUp(self):
        super().setUp()
        descriptors(4 * self.COUNT + 200)

    def attack(self, rest, jobs=0, size=60000, by_http=True, token=None, tubes=0, delay=1000):
        arguments = ["--max-buffers", str(self.BOUND), "--max-job-size", "16000000", "--http", "127.0.0.1:0"]
        first = b""
        if token:
            arguments += ["--auth-file", "tokens"]
            first = b"auth %s\r\n" % token.encode()
        server = self.enterContext(Server(*arguments))
        if jobs or tubes:
            with server.client() as client:
                if first:
                    client.ask(first)
                for _ in range(0, jobs, 100):
                    client.send(b"put 0 %d 60 %d\r\n%s\r\n" % (delay, size, b"x" * size) * min(jobs, 100))
                    for _ in range(min(jobs, 100)):
                        client.line()
                for first_tube in range(0, tubes, 500):
                    client.send("".join("use t%d\r\nput 0 1000 60 1\r\nx\r\n" % n for n in range(first_tube, first_tube + 500)))
                    for _ in range(1000):
                        client.line()
        port = int(re.search(r"serving http://[0-9.]+:(\d+)/", server.said).group(1)) if by_http else server.port
        with Attack(server, port, self.COUNT, rest) as attack:
            attack.run(Probe(server, b"list-tube-used\r\n", first), self.SECONDS)
            attack.held(self.BOUND, self.LEAST, self.PART)

    def test_lists(self):
        self.attack(GET % b"/v1/jobs?body=true&limit=100", 100)

    def test_short_answers(self):
        self.attack((GET % b"/healthz") * 3000)

    def test_pages_of_jobs(self):
        self.attack(GET % b"/v1/jobs?body=true&limit=100", 100)

    def test_numbers_of_many_tubes(self):
        self.attack((GET % b"/metrics") * 50, tubes=20000)

    def test_numbers_by_the_protocol(self):
        self.attack(b"stats\r\n" * 2000, by_http=False, tubes=20000)

    def post(self, path, body, times=1, **more):
        token = token_of("admin", "admin:*")
        self.attack(b"POST /v1/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"
                    b"Content-Length: %d\r\n\r\n%s" % (path, token.encode(), len(body), body) * times, token=token, **more)

    def test_lists_of_jobs(self):
        self.post(b"jobs", b"[" + b",".join(1000 * [b"{}"]) + b"]")

    def test_many_leases(self):
        self.post(b"leases", b'{"most":100}', jobs=1000, delay=0)

    def test_leases_of_large_jobs(self):
        self.post(b"leases", b'{"most":100}', jobs=100, size=1000000, delay=0)

    def test_kicks(self):
        self.post(b"tubes/default/kick", b'{"most":10000}', jobs=100000, size=1)

    def test_objects_that_have_no_end(self):
        token = token_of("admin", "admin:*")
        self.attack(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    b"Authorization: Bearer %s\r\nContent-Length: 60000000\r\n\r\n" % token.encode() + b" " * 20 * MB,
                    token=token)

    def test_objects_of_nobody(self):
        self.attack(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n" + b" " * 40 * MB)

    def test_bodies_that_have_no_end(self):
        self.attack(b"put 0 0 60 16000000\r\n" + b"x" * 8000000, by_http=False)

    def test_lists_by_the_protocol(self):
        self.attack(b"list-delayed body=yes limit=1000\r\n" * 5, 100, by_http=False)

    def test_large_jobs(self):
        self.attack(b"peek 1\r\n" * 50, 1, 4000000, by_http=False)

    def test_forecasts(self):
        self.attack(b"forecast 1 10080\r\n" * 10, by_http=False)

    def test_short_jobs(self):
        self.attack(b"list-delayed limit=1000\r\n" * 10, 1000, 10, by_http=False)


if __name__ == "__main__":
    main()
