#!/usr/bin/env python3
"""TLS before HTTP, in both servers: the same answers behind it, who ends first, a silent client, and another certificate."""
# tier: check
import contextlib
import os
import re
import signal
import socket
import ssl
import urllib.request

from sessiond import Sessiond
from harness import PATIENCE, Case, Server, check, equal, main, matches, run, stopped, until

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *4 * [".."]))
GET = b"GET /common.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
SECURE = ("--http", "tls:127.0.0.1:0", "--tls-cert", "server.pem", "--tls-key", "server.key")


with open(os.path.join(ROOT, "tools/service/page/common.js"), "rb") as SCRIPT:
    TEXT = SCRIPT.read()


class Relay(Case):
    def setUp(self):
        super().setUp()
        self.certificate()

    def certificate(self):
        run(0, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj",
            "/CN=server", "-addext", "subjectAltName=DNS:localhost", "-keyout", "server.key", "-out", "server.pem")

    def each(self):
        """Each server with TLS for HTTP, and its port."""
        for kind in (Server, Sessiond):
            with kind(*SECURE) as server:
                yield server, int(re.search(r"serving https://127\.0\.0\.1:(\d+)/", server.said)[1])

    def get(self, port, path):
        context = ssl.create_default_context(cafile="server.pem")
        with urllib.request.urlopen(f"https://localhost:{port}{path}", timeout=PATIENCE, context=context) as got:
            return got.read()

    def test_the_same_answers(self):
        for _, port in self.each():
            equal(self.get(port, "/common.js"), TEXT)
            matches("^weekwheel\\w+_build_info", self.get(port, "/metrics").decode())
            with self.assertRaises(OSError):
                urllib.request.urlopen(f"https://localhost:{port}/metrics", timeout=PATIENCE)
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
                plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                check(not plain.recv(65536).startswith(b"HTTP"), "in clear there is no answer")

    def test_more_than_the_sockets_take(self):
        """Nothing is read from one side while its bytes wait at the other."""
        count = 300
        for _, port in self.each():
            context = ssl.create_default_context(cafile="server.pem")
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain, \
                    context.wrap_socket(plain, server_hostname="localhost") as client:
                client.sendall(count * GET)
                equal(self.get(port, "/livez"), b"ok\n")
                answer = b""
                while answer.count(TEXT[-50:]) < count:
                    came = client.recv(1 << 20)
                    check(came, "they come")
                    answer += came
                equal(answer.count(TEXT), count)

    def test_another_certificate_beside_a_silent_client(self):
        for server, port in self.each():
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as silent:
                silent.sendall(b"\x16")
                self.certificate()
                with self.assertRaises(OSError):
                    self.get(port, "/common.js")
                server.process.send_signal(signal.SIGHUP)
                until(lambda s=server: "the certificate was read again" in s.process.stderr.readline(), "it is read again")
                equal(self.get(port, "/common.js"), TEXT)

    def test_a_client_that_ends_its_side_first(self):
        for server, port in self.each():
            into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
            link = ssl.create_default_context(cafile="server.pem").wrap_bio(into, out, server_hostname="localhost")
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
                while True:
                    try:
                        link.do_handshake()
                        break
                    except ssl.SSLWantReadError:
                        plain.sendall(out.read())
                        into.write(plain.recv(65536))
                link.write(GET)
                with stopped(server):
                    plain.sendall(out.read())
                    plain.shutdown(socket.SHUT_WR)
                answer = b""
                while not answer.endswith(TEXT):
                    came = plain.recv(65536)
                    check(came, "the answer comes: %r" % answer[-100:])
                    into.write(came)
                    with contextlib.suppress(ssl.SSLWantReadError):
                        while piece := link.read(65536):
                            answer += piece

    def test_the_end_of_the_server_ends_it(self):
        for server, port in self.each():
            context = ssl.create_default_context(cafile="server.pem")
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain, \
                    context.wrap_socket(plain, server_hostname="localhost") as client:
                client.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                check(client.recv(65536).startswith(b"HTTP/1.1 200"), "it is served")
                equal(server.stop(), 0)
                with contextlib.suppress(OSError):
                    equal(client.recv(65536), b"")


main()
