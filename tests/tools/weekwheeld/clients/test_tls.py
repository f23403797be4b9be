#!/usr/bin/env python3
"""TLS on the job port: certificates of both sides, what is refused, and that the protocol is the same behind it."""
# tier: check
import contextlib
import errno
import os
import re
import select
import shutil
import signal
import socket
import ssl
import time
import unittest
import urllib.request

from faults import SYNC, WRITE, Plan
from harness import PATIENCE, Case, Client, Program, Server, check, conversation, equal, lack, main, matches, refused, run, stopped, until


def certificate(name, signer=None, names="DNS:localhost,IP:127.0.0.1", start=None, end=None):
    """Make NAME.pem with a certificate and NAME.key with its key, signed by itself or by another. It is valid for 30 days
    from now on, or from `start` to `end`, which are days from now."""
    by = ["-CA", signer + ".pem", "-CAkey", signer + ".key"] if signer else []
    run(0, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
        "-subj", "/CN=" + name, "-addext", "subjectAltName=" + names, "-keyout", name + ".key", "-out", name + ".pem", *by)
    if end is not None:
        date(name, names, start, end)


def date(name, names, start, end):
    """Sign NAME.pem anew with other dates, which of openssl 3.0 only this command can."""
    days = [time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + day * 86400)) for day in (start, end)]
    with open("ca.conf", "w", encoding="ascii") as file:
        file.write("[ca]\ndefault_ca=one\n[one]\ndatabase=index\nrand_serial=yes\npolicy=any\ndefault_md=sha256\n"
                   f"new_certs_dir=.\ncertificate={name}.pem\nx509_extensions=more\n[any]\ncommonName=supplied\n"
                   f"[more]\nsubjectAltName={names}\nbasicConstraints=CA:true\n")
    with open("index", "w", encoding="ascii"):
        pass
    run(0, "openssl", "ca", "-config", "ca.conf", "-batch", "-notext", "-selfsign", "-keyfile", name + ".key", "-ss_cert",
        name + ".pem", "-startdate", days[0], "-enddate", days[1], "-out", name + ".new")
    os.rename(name + ".new", name + ".pem")


class Secure:
    """A server whose plain address its own tests use, and which listens with TLS beside it."""

    def __init__(self, *arguments, **environment):
        self.server = Server("--listen", "tls:127.0.0.1:0", "--tls-cert", "server.pem", "--tls-key", "server.key",
                             *arguments, **environment)
        line = ""
        while "listening on tls:" not in line:
            line = self.server.process.stderr.readline()
        self.port = int(re.search(r":(\d+)$", line.strip()).group(1))
        self.program = Program(f"tls:localhost:{self.port}")

    def __enter__(self):
        return self

    def __exit__(self, *of):
        self.server.__exit__(*of)

    def plain(self):
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def client(self, trusted="server.pem", own=None):
        context = ssl.create_default_context(cafile=trusted)
        if own:
            context.load_cert_chain(own + ".pem", own + ".key")
        return Client(context.wrap_socket(self.plain(), server_hostname="localhost"))


@unittest.skipUnless(shutil.which("openssl"), lack("openssl"))
class Tls(Case):
    def setUp(self):
        super().setUp()
        certificate("server")

    def test_a_client_goes_through_its_languages_tls_socket(self):
        with Secure() as secure, secure.client() as a, secure.server.client() as b:
            conversation(a, ("put 5 0 60 5\r\nhello", "INSERTED 1"), ("peek 1", "FOUND 1 5|hello"),
                         ("reserve", "RESERVED 1 5|hello"), ("delete 1", "DELETED"))
            # A job from the plain side wakes a client that waits behind TLS.
            a.send("reserve\r\n")
            b.until_waiting()
            b.put(b"across")
            equal(a.answer(), "RESERVED 2 6|across")

    def test_bytes_in_any_pieces_and_answers_of_any_size(self):
        body = os.urandom(60000)
        with Secure() as secure, secure.client() as a:
            command = b"put 0 0 60 %d\r\n%s\r\n" % (len(body), body)
            for i in range(0, len(command), 7001):
                a.send(command[i:i + 7001])
            equal(a.line(), "INSERTED 1")
            # More than a socket takes: the server waits until the client reads.
            a.send(b"peek 1\r\n" * 200)
            for _ in range(200):
                equal(a.line(), "FOUND 1 60000")
                equal(a.block(60000), body)

    @unittest.skipIf(os.environ.get("SANITIZE"), "a sanitizer keeps what is freed")
    def test_a_client_keeps_no_memory_of_a_large_answer(self):
        def resident(server):
            with open("/proc/%d/status" % server.process.pid, encoding="ascii") as file:
                return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))

        with Secure("--max-job-size", "4000000") as secure, contextlib.ExitStack() as stack:
            clients = [stack.enter_context(secure.client()) for _ in range(30)]
            clients[0].put(b"x" * 2000000)
            before = resident(secure.server)
            for client in clients:
                equal(client.ask("peek 1")[:15], "FOUND 1 2000000")
            check(resident(secure.server) < before + 30000, "less than 1 MB for each")

    def test_a_connection_ends_in_order(self):
        with Secure() as secure, secure.client() as a:
            a.socket.suppress_ragged_eofs = False
            a.send("list-tube-used\r\nquit\r\n")
            equal(a.line(), "USING default")
            equal(a.socket.recv(1), b"")

    def test_what_is_no_tls_is_turned_away(self):
        with Secure() as secure:
            for bytes_ in (b"put 0 0 60 1\r\nx\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\0" * 70000):
                with secure.plain() as other:
                    try:
                        other.sendall(bytes_)
                        while other.recv(65536):
                            pass
                    except ConnectionError:
                        pass
            with secure.plain() as silent, secure.client() as a:
                silent.sendall(b"\x16")
                equal(a.numbers("stats")["cmd-put"], "0")

    def test_our_commands_check_the_certificate(self):
        with Secure() as secure:
            put = secure.program.run
            equal(put(0, "put", "--tls-ca", "server.pem", "hello").out[:1], "1")
            put(0, "put", "again", WEEKWHEEL_TLS_CA="server.pem")
            matches("self.signed certificate", put(1, "put", "hello").err)
            certificate("other")
            matches("TLS failed", put(1, "put", "--tls-ca", "other.pem", "hello").err)
            matches("no/file: has no readable certificates", put(1, "put", "--tls-ca", "no/file", "x").err)
            plain = Program(f"127.0.0.1:{secure.port}")
            matches("the connection was lost.* If it listens with TLS there, write tls:127", plain.run(1, "put", "hello").err)
            unready = Program("tls:" + secure.server.address)
            matches("TLS failed", unready.run(1, "put", "--timeout", "1s", "hello").err)
            listed = put(0, "list", "--json", "--tls-ca", "server.pem")
            equal(len(listed.out.splitlines()), 2)

    def test_the_certificate_is_for_another_name(self):
        certificate("server", names="DNS:example.org")
        with Secure() as secure:
            matches("[Hh]ostname mismatch", secure.program.run(1, "put", "--tls-ca", "server.pem", "hello").err)

    def test_a_certificate_that_is_not_valid_now_is_warned_of(self):
        day = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
        for start, end, warned, client in (
                (-20, -10, "server.pem: a certificate in it expired at " + day, "certificate has expired"),
                (10, 20, f"server.pem: a certificate in it is valid only from {day} on", "not yet valid"),
                (-20, 13, "server.pem: a certificate in it expires at " + day, None)):
            certificate("server", start=start, end=end)
            with Secure() as secure:
                matches(warned, secure.server.said)
                ended = secure.program.run(1 if client else 0, "put", "--tls-ca", "server.pem", "x")
                matches(f"{client}; the server needs another certificate" if client else "^$", ended.err)
                secure.server.process.send_signal(signal.SIGHUP)
                matches(warned, secure.server.process.stderr.readline())
        certificate("server", start=-20, end=15)
        with Secure() as secure:
            check("a certificate in it" not in secure.server.said, secure.server.said)

    def test_each_certificate_of_the_file_is_looked_at(self):
        certificate("authority", names="DNS:authority", start=-20, end=-1)
        certificate("server", signer="authority")
        with open("server.pem", "a", encoding="ascii") as file, open("authority.pem", encoding="ascii") as more:
            file.write(more.read())
        with Secure() as secure:
            matches("server.pem: a certificate in it expired", secure.server.said)

    def test_a_worker_behind_tls(self):
        with Secure() as secure, secure.client() as a:
            worker = secure.program.start("work", "--tls-ca", "server.pem", "--", "cat")
            a.until_waiting()
            a.put(b"to be done")
            until(lambda: a.numbers("stats")["cmd-delete"] == "1", "the job is done")
            worker.send_signal(signal.SIGTERM)
            equal(worker.communicate(timeout=PATIENCE)[0], "to be done")

    def test_clients_need_a_certificate(self):
        certificate("authority", names="DNS:authority")
        certificate("known", signer="authority")
        certificate("stranger")
        with Secure("--tls-client-ca", "authority.pem") as secure:
            with secure.client(own="known") as a:
                equal(a.put(), "INSERTED 1")
            for own in (None, "stranger"):
                with self.assertRaises((ssl.SSLError, ConnectionError, EOFError)):
                    with secure.client(own=own) as a:
                        a.put()
            put = secure.program.run
            put(0, "put", "--tls-ca", "server.pem", "--tls-cert", "known.pem", "--tls-key", "known.key", "x")
            put(1, "put", "--tls-ca", "server.pem", "x")
            equal(secure.server.client().numbers("stats")["cmd-put"], "2")

    def test_the_certificate_is_read_again(self):
        with Secure() as secure, secure.client() as before:
            os.rename("server.pem", "former.pem")
            certificate("server")
            secure.server.process.send_signal(signal.SIGHUP)
            matches("the certificate was read again", secure.server.process.stderr.readline())
            with secure.client() as after:
                equal(after.put(), "INSERTED 1")
            equal(before.put(), "INSERTED 2")
            with open("server.pem", "w", encoding="ascii") as file:
                file.write("nothing")
            os.rename("server.pem", "wrong.pem")
            os.rename("wrong.pem", "server.pem")
            secure.server.process.send_signal(signal.SIGHUP)
            matches("server.pem: is not a readable certificate", secure.server.process.stderr.readline())
            matches("stays in use", secure.server.process.stderr.readline())
            equal(before.put(), "INSERTED 3")

    def test_http_has_tls_too(self):
        with Server("--http", "tls:127.0.0.1:0", "--tls-cert", "server.pem", "--tls-key", "server.key") as server:
            port = re.search(r"serving https://127.0.0.1:(\d+)/", server.said).group(1)
            context = ssl.create_default_context(cafile="server.pem")
            with server.client() as client:
                for number in range(300):
                    client.put(b"%d " % number + b"x" * 500, delay=100)

            def get(path):
                with urllib.request.urlopen(f"https://localhost:{port}{path}", timeout=PATIENCE, context=context) as got:
                    return got.read().decode()

            matches("^weekwheeld_", get("/metrics"))
            equal(get("/v1/jobs?limit=1000").count('"id"'), 300)

    def test_strangers_who_begin_handshakes_delay_each_other(self):
        """What comes from others in the same turn is answered after one of them at most."""
        def hello():
            into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
            with contextlib.suppress(ssl.SSLWantReadError):
                ssl.create_default_context(cafile="server.pem").wrap_bio(into, out, server_hostname="localhost").do_handshake()
            return out.read()

        run(0, "openssl", "req", "-x509", "-newkey", "rsa:3072", "-nodes", "-days", "2", "-subj", "/CN=server", "-keyout",
            "server.key", "-out", "server.pem", "-addext", "subjectAltName=DNS:localhost")
        with Secure() as secure, secure.server.client() as a, contextlib.ExitStack() as stack:
            strangers = [stack.enter_context(secure.plain()) for _ in range(100)]
            with stopped(secure.server):
                for stranger in strangers:
                    stranger.sendall(hello())
                a.send("list-tube-used\r\n")
            equal(a.answer(), "USING default")
            answered = len(select.select(strangers, [], [], 0)[0])
            check(answered < 50, "%d handshakes came before" % answered)
            until(lambda: len(select.select(strangers, [], [], 0)[0]) == 100, "all have their turn")
            with secure.client() as b:
                equal(b.ask("list-tube-used"), "USING default")

    def test_what_comes_with_the_end_of_the_handshake_is_written_before_its_answer(self):
        plan = Plan()
        with Secure("--data", "jobs", **plan.environment) as secure, secure.plain() as sock:
            into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = ssl.create_default_context(cafile="server.pem").wrap_bio(into, out, server_hostname="localhost")

            def answers(step):
                while True:
                    try:
                        return step()
                    except ssl.SSLWantReadError:
                        sock.sendall(out.read())
                        into.write(sock.recv(65536))

            answers(client.do_handshake)
            client.write(b"put 0 0 60 1\r\nx\r\nuse t\r\n")
            plan.set(1, 1, errno.EIO, WRITE | SYNC, file="journal")
            said = b""
            while said.count(b"\r\n") < 2:
                said += answers(lambda: client.read(100))
            check(plan.failed(), "the write has failed")
            equal(said, b"INTERNAL_ERROR\r\nUSING t\r\n")

    def test_a_handshake_that_is_not_finished(self):
        with Secure("--clock", "virtual") as secure, secure.server.client() as a, secure.client() as b, \
                secure.plain() as silent:
            until(lambda: a.numbers("stats")["current-connections"] == "3", "they are there")
            a.ask("advance 31")
            equal(silent.recv(1), b"")
            equal(b.ask("list-tube-used"), "USING default")

    def test_what_does_not_go_together_is_refused(self):
        tls = ("--memory", "--listen", "tls:127.0.0.1:0")
        matches("tls:HOST:PORT needs a certificate", refused(*tls))
        matches("tls:HOST:PORT needs a certificate", refused("--memory", "--http", "tls:127.0.0.1:0"))
        matches("tls:HOST:PORT is missing", refused("--memory", "--tls-cert", "server.pem"))
        matches("no.pem: is not a readable certificate .*No such file", refused(*tls, "--tls-cert", "no.pem"))
        matches("server.pem: has no key .*; --tls-key names", refused(*tls, "--tls-cert", "server.pem"))
        certificate("other")
        matches("other.key: is not a readable key",
                refused(*tls, "--tls-cert", "server.pem", "--tls-key", "other.key"))
        matches("no-ca.pem: has no readable certificates", refused(
            *tls, "--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-client-ca", "no-ca.pem"))


if __name__ == "__main__":
    main()
