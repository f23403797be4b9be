#!/usr/bin/env python3
"""Who may do what at weekwheel-sessiond: tokens and their rights, guessing, TLS, and where it listens."""
# tier: check, threads
import contextlib
import hashlib
import os
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from sessiond import SESSIOND, Client, Sessiond
from harness import PATIENCE, WEEKWHEEL, Case, check, equal, free_port, main, matches, run, until

OK = b"+OK\r\n"
NOPERM_KEY = b"-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
NOPERM_ALL = b"-NOPERM this user has no permissions to run this command for all keys\r\n"
NOPERM_CHANNEL = b"-NOPERM this user has no permissions to access one of the channels used as arguments\r\n"
WRONG = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
SITE, SHOP, ADMIN, LOOKER = ("token-of-%s-with-some-length" % name for name in ("site", "shop", "admin", "looker"))


def line(name, token, *grants):
    return " ".join([name, "sha256:" + hashlib.sha256(token.encode()).hexdigest(), *grants]) + "\n"


def write_tokens(*lines):
    with open("tokens.new", "w", encoding="utf-8") as file:
        file.write("".join(lines))
    os.chmod("tokens.new", 0o600)
    os.rename("tokens.new", "tokens")


ALL = (line("site", SITE, "read,write:sess:*"), line("shop", SHOP, "read:*", "write:cart:*"),
       line("root", ADMIN, "admin:*"), line("looker", LOOKER, "read:sess:*,__keyevent@0__:*"))


CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def certificate(name, kind=CURVE):
    run(0, "openssl", "req", "-x509", *kind, "-nodes", "-days", "30",
        "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", name + ".key", "-out",
        name + ".pem")


def http_status(port, path, token=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if token:
        request.add_header("Authorization", "Bearer " + token)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


class SecureClient(Client):
    def __init__(self, port, trusted="server.pem", **more):
        super().__init__(port)
        context = ssl.create_default_context(cafile=trusted)
        if more.get("cert"):
            context.load_cert_chain(*more["cert"])
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")


class Tokens(Case):
    def setUp(self):
        super().setUp()
        write_tokens(*ALL)

    def test_who_says_no_token_may_nothing(self):
        with Sessiond("--auth-file", "tokens") as server, server.client() as a:
            for words in (("GET", "a"), ("PING",), ("SUBSCRIBE", "x"), ("INFO",), ("KEYS", "*")):
                matches("NOAUTH", a.ask(*words).decode())
            equal(a.ask("AUTH", SITE), OK)
            equal(a.ask("PING"), b"+PONG\r\n")

    def test_rights_are_by_key(self):
        with Sessiond("--auth-file", "tokens") as server, server.client() as a, server.client() as b:
            equal((a.ask("AUTH", SITE), b.ask("AUTH", SHOP)), (OK, OK))
            equal(a.ask("SET", "sess:1", "x", "EX", 100), OK)
            equal(a.ask("GET", "cart:1"), NOPERM_KEY)
            equal(a.ask("MGET", "sess:1", "cart:1"), NOPERM_KEY)
            equal(a.ask("RENAME", "sess:1", "other"), NOPERM_KEY)
            equal(b.ask("GET", "sess:1"), b"$1\r\nx\r\n")
            equal(b.ask("DEL", "sess:1"), NOPERM_KEY)
            equal(b.ask("SET", "cart:1", "y"), OK)
            for words in (("KEYS", "*"), ("SCAN", 0), ("DBSIZE",), ("FLUSHALL",), ("CONFIG", "GET", "*"), ("SHUTDOWN",),
                          ("CLIENT", "KILL", "ID", 1), ("SAVE",)):
                equal((words, a.ask(*words)), (words, NOPERM_ALL))
            equal(b.ask("DBSIZE"), b":2\r\n")
            equal(b.ask("FLUSHDB"), NOPERM_ALL)
            matches("QUEUED|OK", a.ask("MULTI").decode())
            equal(a.ask("SET", "cart:2", "z"), NOPERM_KEY)
            matches("EXECABORT", a.ask("EXEC").decode())

    def test_an_admin_may_do_everything(self):
        with Sessiond("--auth-file", "tokens") as server, server.client() as a:
            equal(a.ask("AUTH", "root", ADMIN), OK)
            equal(a.ask("SET", "any", 1), OK)
            equal(a.ask("FLUSHALL"), OK)
            equal(a.ask("CONFIG", "RESETSTAT"), OK)

    def test_channels(self):
        with Sessiond("--auth-file", "tokens") as server, server.client() as a:
            equal(a.ask("AUTH", LOOKER), OK)
            equal(a.ask("PSUBSCRIBE", "*"), NOPERM_CHANNEL)
            equal(a.ask("SUBSCRIBE", "__keyevent@1__:expired"), NOPERM_CHANNEL)
            equal(a.ask("PUBLISH", "sess:1", "x"), NOPERM_CHANNEL)
            equal(a.ask("PUBSUB", "CHANNELS"), NOPERM_CHANNEL)
            equal(a.ask("PUBSUB", "shardchannels", "sess:*"), NOPERM_CHANNEL)
            equal(a.ask("PUBSUB", "NUMSUB", "sess:1", "cart:1"), NOPERM_CHANNEL)
            equal(a.ask("PUBSUB", "NUMSUB", "sess:1"), b"*2\r\n$6\r\nsess:1\r\n:0\r\n")
            equal(a.ask("PUBSUB", "NUMPAT"), b":0\r\n")
            matches("subscribe", a.ask("SUBSCRIBE", "__keyevent@0__:expired").decode())

    def test_who_reads_all_sees_the_channels(self):
        with Sessiond("--auth-file", "tokens") as server, server.client() as a, server.client() as b:
            equal(a.ask("AUTH", LOOKER) + b.ask("AUTH", SHOP), OK + OK)
            a.ask("SUBSCRIBE", "sess:1")
            equal(b.ask("PUBSUB", "CHANNELS"), b"*1\r\n$6\r\nsess:1\r\n")

    def test_names(self):
        """A token belongs to its name; Redis's own name for who has none stands for any."""
        for words, answer in ((("AUTH", "site", SITE), OK), (("AUTH", "default", SITE), OK), (("AUTH", "shop", SITE), WRONG),
                              (("AUTH", "nobody", SITE), WRONG)):
            with Sessiond("--auth-file", "tokens") as server, server.client() as a:
                equal((words, a.ask(*words)), (words, answer))
                if answer == OK:
                    matches("proto", a.ask("HELLO", 3, "AUTH", *words[1:]).decode())
                    equal(a.ask("RESET"), b"+RESET\r\n")
                    matches("NOAUTH", a.ask("GET", "sess:1").decode())

    def test_guessing_is_slowed_by_address(self):
        with Sessiond("--auth-file", "tokens") as server, server.client() as a, server.client() as b:
            equal(b.ask("AUTH", SITE), OK)
            began = time.monotonic()
            for _ in range(3):
                equal(a.ask("AUTH", "wrong-token-of-some-length"), WRONG)
            assert time.monotonic() - began > 0.5
            # Whoever was right from there before is not slowed; a pipeline waits behind the wrong one.
            equal(b.ask("AUTH", SITE), OK)
            a.send(b"AUTH wrong-token-of-some-length\r\nPING\r\n")
            equal((a.answer(), a.answer()), (WRONG, b"-NOAUTH Authentication required.\r\n"))
            equal(a.ask("AUTH", ADMIN), OK)
            # In a transaction nothing can wait for its turn.
            equal((a.ask("AUTH", "wrong-token-of-some-length"), a.ask("MULTI")), (WRONG, OK))
            with server.client() as c:
                c.send(b"AUTH wrong-token-of-some-length\r\n")
                equal(a.ask("AUTH", "another-wrong-token-of-some-length"), b"+QUEUED\r\n")
                equal(a.ask("EXEC"), b"*1\r\n" + WRONG)
                equal(a.ask("PING"), b"+PONG\r\n")
                equal(c.answer(), WRONG)
            server.stop()
            matches("a wrong token from 127.0.0.1:.*number 1 ", server.said)
            assert "wrong-token" not in server.said

    def guessers(self, server, count):
        """So many clients that send a wrong secret and wait for the answer; return when several have been seen."""
        stack = self.enterContext(contextlib.ExitStack())
        guessers = [stack.enter_context(server.client()) for _ in range(count)]
        for guesser in guessers:
            guesser.send(b"AUTH wrong-token-of-some-length\r\n")
        until(lambda: "number 4 " in server.process.stderr.readline(), "they are seen")
        return [guesser.socket for guesser in guessers]

    def test_a_guesser_locks_no_token_out(self):
        with Sessiond("--auth-file", "tokens") as server, server.client() as a, server.client() as b:
            guessers = self.guessers(server, 7)
            # Both come from there for the first time; the last of the guessers waits for more than 12 s.
            equal((a.ask("AUTH", SITE), b.ask("AUTH", "shop", SHOP)), (OK, OK))
            check(len(select.select(guessers, [], [], 0)[0]) < 7, "a guesser waits")

    def test_passwords(self):
        """A short one waits as long as wrong ones do, since a guesser could learn from silence. A long one does not."""
        for password, waits in (("secret", True), (31 * "x", True), (32 * "x", False)):
            with open("password", "w", encoding="utf-8") as file:
                file.write(password + "\n")
            os.chmod("password", 0o600)
            port = free_port()
            with Sessiond("--requirepass-file", "password", "--http", f"127.0.0.1:{port}") as server, server.client() as a:
                equal(http_status(port, "/metrics", password), 200)
                guessers = self.guessers(server, 7)
                if waits:
                    until(lambda n=port: http_status(n, "/metrics", "secret") == 429, "it rests")
                else:
                    equal(http_status(port, "/metrics", password), 200)
                equal(a.ask("AUTH", "default", password), OK)
                check(waits or len(select.select(guessers, [], [], 0)[0]) < 7, "a guesser waits")

    def test_the_file_is_read_again(self):
        with Sessiond("--auth-file", "tokens") as server, server.client() as a, server.client() as b:
            equal((a.ask("AUTH", SITE), b.ask("AUTH", SHOP)), (OK, OK))
            write_tokens(ALL[0], line("shop", SHOP, "read:cart:*"))
            server.process.send_signal(signal.SIGHUP)
            with self.assertRaises(ConnectionError):
                until(lambda: b.ask("PING") != b"+PONG\r\n", "it is closed")
            equal(a.ask("SET", "sess:2", 1), OK)
            with server.client() as c:
                equal(c.ask("AUTH", SHOP), OK)
                equal(c.ask("GET", "sess:2"), NOPERM_KEY)
            write_tokens("nonsense\n")
            server.process.send_signal(signal.SIGHUP)
            until(lambda: "stay as they were" in server.process.stderr.readline(), "it says so")
            equal(a.ask("GET", "sess:2"), b"$1\r\n1\r\n")

    def test_http(self):
        port = free_port()
        with Sessiond("--auth-file", "tokens", "--http", f"127.0.0.1:{port}"):
            def get(path, token=None):
                return http_status(port, path, token)

            equal([get(path) for path in ("/livez", "/readyz", "/", "/metrics", "/v1/stats")], [200, 200, 200, 401, 401])
            equal([get("/metrics", token) for token in (SHOP, SITE, ADMIN)], [200, 403, 200])
            equal(get("/v1/stats", SHOP), 200)
            equal(get("/metrics", "wrong-token-of-some-length"), 401)
            equal(get("/metrics", "wrong-token-of-some-length"), 429)
            equal(get("/metrics", SHOP), 200)


class Tls(Case):
    def setUp(self):
        super().setUp()
        certificate("server")

    @staticmethod
    def server(*more):
        server = Sessiond("--tls-cert", "server.pem", "--tls-key", "server.key", "--listen", "tls:127.0.0.1:0", *more)
        text = ""
        while not (found := re.search(r"listening on tls:127\.0\.0\.1:(\d+)", text)):
            text = server.process.stderr.readline()
        server.tls_port = int(found.group(1))
        return server

    def test_the_protocol_is_the_same_behind_it(self):
        with self.server() as server, SecureClient(server.tls_port) as a, server.client() as b:
            equal(a.ask("SET", "k", "v" * 100000, "EX", 100), OK)
            equal(b.ask("STRLEN", "k"), b":100000\r\n")
            for _ in range(30):  # more than is sent at a time, before anything is read
                a.send(b"GET k\r\n")
            for _ in range(30):
                equal(len(a.answer()), 100000 + len("$100000\r\n\r\n"))
            a.send(b"SUBSCRIBE news\r\n")
            a.answer()
            equal(b.ask("PUBLISH", "news", "hello"), b":1\r\n")
            matches("hello", a.answer().decode())

    def test_the_server_keeps_no_sessions_of_tls(self):
        """What it kept for clients without tickets would be within no bound."""
        context = ssl.create_default_context(cafile="server.pem")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_TICKET
        former = None
        with self.server() as server:
            for _ in range(2):
                with socket.create_connection(("127.0.0.1", server.tls_port), PATIENCE) as plain, \
                     context.wrap_socket(plain, server_hostname="localhost", session=former) as a:
                    a.sendall(b"PING\r\n")
                    equal((a.recv(100), a.session_reused), (b"+PONG\r\n", False))
                    former = a.session

    def test_who_speaks_no_tls_is_turned_away(self):
        with self.server() as server:
            with Client(server.tls_port) as a:
                a.send(b"PING\r\n")
                equal(a.socket.recv(100)[:1] in (b"", b"\x15"), True)
            with self.assertRaises(ssl.SSLError):
                certificate("other")
                SecureClient(server.tls_port, "other.pem")
            with SecureClient(server.tls_port) as a:
                equal(a.ask("PING"), b"+PONG\r\n")

    def test_clients_with_certificates(self):
        certificate("client")
        with self.server("--tls-client-ca", "client.pem") as server:
            with SecureClient(server.tls_port, cert=("client.pem", "client.key")) as a:
                equal(a.ask("PING"), b"+PONG\r\n")
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                with SecureClient(server.tls_port) as a:
                    a.ask("PING")

    def test_the_certificate_is_read_again(self):
        with self.server() as server, SecureClient(server.tls_port) as a:
            certificate("server")
            server.process.send_signal(signal.SIGHUP)
            until(lambda: "read again" in server.process.stderr.readline(), "it says so")
            equal(a.ask("PING"), b"+PONG\r\n")
            with SecureClient(server.tls_port) as b:
                equal(b.ask("PING"), b"+PONG\r\n")

    def test_redis_cli(self):
        if not shutil.which("redis-cli"):
            raise unittest.SkipTest("redis-cli is not installed (redis-tools)")
        with self.server() as server:
            done = subprocess.run(["redis-cli", "--tls", "--cacert", "server.pem", "-h", "localhost", "-p",
                                   str(server.tls_port), "PING"], capture_output=True, text=True, timeout=PATIENCE, check=False)
            equal(done.stdout, "PONG\n", done.stderr)

    def test_weekwheel_sessions(self):
        write_tokens(*ALL)
        with open("token", "w", encoding="utf-8") as file:
            file.write(ADMIN + "\n")
        os.chmod("token", 0o600)
        with self.server("--auth-file", "tokens", "--unix", "socket") as server, server.client() as a:
            equal(a.ask("AUTH", ADMIN), OK)
            for i in range(3000):
                a.send(b"SET sess:%d %s EX 3000\r\n" % (i, b"v" * 100))
            equal({a.answer() for _ in range(3000)}, {OK})

            def count(status, address, *more, **env):
                return run(status, WEEKWHEEL, "sessions", address, *more, **env)

            address = f"tls:localhost:{server.tls_port}"
            matches("has 3000 sessions", count(0, address, "--tls-ca", "server.pem", "--token-file", "token").out)
            matches("has 3000 sessions", count(0, "unix:socket", REDISCLI_AUTH=ADMIN).out)
            matches("give the certificates to trust with --tls-ca", count(1, address).err)
            matches("NOAUTH.*give --token-file", count(1, address, "--tls-ca", "server.pem").err)
            matches("TLS failed", count(1, f"tls:127.0.0.1:{server.port}", "--tls-ca", "server.pem").err)

    def test_strangers_do_not_stall_others(self):
        """Many begin handshakes and say nothing more."""
        with self.server() as server, server.client() as a:
            waiting = [socket.create_connection(("127.0.0.1", server.tls_port)) for _ in range(200)]
            for one in waiting:
                one.send(b"\x16\x03\x01\x02\x00\x01")
            equal(a.ask("PING"), b"+PONG\r\n")
            with SecureClient(server.tls_port) as b:
                equal(b.ask("PING"), b"+PONG\r\n")
            for one in waiting:
                one.close()

    def test_what_strangers_send_waits_with_them(self):
        """Each begins a handshake, of which the server can do few in a moment, and sends as much as it can meanwhile."""
        certificate("server", ("-newkey", "rsa:4096"))
        outgoing = ssl.MemoryBIO()
        begun = ssl.create_default_context(cafile="server.pem").wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="x")
        with self.assertRaises(ssl.SSLWantReadError):
            begun.do_handshake()
        hello = outgoing.read()
        count, most = 200, 65536
        with self.server("--threads", "1") as server, server.client() as a:
            strangers = [socket.create_connection(("127.0.0.1", server.tls_port)) for _ in range(count)]
            for one in strangers:
                one.setblocking(False)
                one.send(hello)
            while strangers:
                _, ready, _ = select.select([], strangers, [])
                for one in ready:
                    try:
                        one.send((b"\x17\x03\x03\x40\x00" + bytes(16384)) * 16)
                    except BlockingIOError:
                        pass
                    except OSError:
                        strangers.remove(one)
                        one.close()
            got = re.search(rb"total_net_input_bytes:(\d+)", a.ask("INFO", "stats"))
            check(int(got[1]) < 3 * count * most, got)


class Doors(Case):
    def test_other_machines_need_tls_and_tokens(self):
        write_tokens(*ALL)
        certificate("server")
        tls = ("--tls-cert", "server.pem", "--tls-key", "server.key", "--listen", "tls:0.0.0.0:0")

        def says(*arguments):
            return subprocess.run([SESSIOND, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False).stderr

        matches("everybody could use it", says("--listen", "0.0.0.0:0"))
        matches("tokens and sessions would pass unencrypted", says("--listen", "0.0.0.0:0", "--auth-file", "tokens"))
        matches("no client needs a token or a certificate", says(*tls))
        matches("needs a certificate", says("--listen", "tls:127.0.0.1:0"))
        matches("--tls-cert is for TLS", says("--tls-cert", "server.pem"))
        matches("--auth-file 'none'", says("--auth-file", "none"))
        with Sessiond(*tls, "--auth-file", "tokens") as server:
            assert server.port

    def test_sockets_of_systemd(self):
        """They take the place of the usual address."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            port = listener.getsockname()[1]
            # LISTEN_PID must be the server's own, so a shell sets it and becomes the server.
            with subprocess.Popen(["sh", "-c", 'exec 3<&%d; LISTEN_FDS=1 LISTEN_PID=$$ exec "$0"' % listener.fileno(), SESSIOND],
                                  pass_fds=[listener.fileno()], stderr=subprocess.PIPE, text=True) as process:
                with Client(port) as a:
                    equal(a.ask("PING"), b"+PONG\r\n")
                    matches("tcp_port:%d\r\n" % port, a.ask("INFO", "server").decode())
                process.terminate()
                said = process.communicate(timeout=PATIENCE)[1]
            equal((process.returncode, re.findall("listening on .*", said)), (0, ["listening on 127.0.0.1:%d" % port]))

    def test_other_machines_need_tls_and_tokens_for_the_page(self):
        write_tokens(*ALL)
        certificate("server")

        def says(*arguments):
            return run(None, SESSIOND, "--listen", "127.0.0.1:0", *arguments).err

        for address in ("0.0.0.0:0", "[::]:0"):
            matches("other machines can reach .*, and everybody could use it, unencrypted.*--insecure", says("--http", address))
        matches("tokens and sessions would pass unencrypted", says("--http", "0.0.0.0:0", "--auth-file", "tokens"))
        matches("needs a certificate", says("--http", "tls:127.0.0.1:0"))
        matches("no client needs a token or a certificate", says("--http", "tls:0.0.0.0:0", "--tls-cert", "server.pem", "--tls-key", "server.key"))
        with Sessiond("--http", "tls:0.0.0.0:0", "--tls-cert", "server.pem", "--tls-key", "server.key", "--auth-file", "tokens") as server:
            matches("serving https://0.0.0.0", server.said)
        with Sessiond("--http", "0.0.0.0:0", "--insecure") as server:
            server.stop()
            matches("warning: other machines can reach 0.0.0.0", server.said)


if __name__ == "__main__":
    main()
