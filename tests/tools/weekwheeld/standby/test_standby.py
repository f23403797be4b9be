#!/usr/bin/env python3
"""A server that stands by listens, passes its clients on to the owner of the store, and takes over without a gap."""
# tier: check, waits
import base64
import contextlib
import os
import re
import signal
import socket
import ssl
import struct
import threading

from harness import PATIENCE, Case, Client, Server, check, compiled, descriptors, equal, main, matches, need_server, refused, run, until
from postgres import Postgres

WEB = ("--http", "127.0.0.1:0")


def setUpModule():
    global postgres
    need_server()
    postgres = Postgres()
    postgres.psql("CREATE DATABASE prepared")
    postgres.set_up(database="prepared")


def tearDownModule():
    postgres.remove()


class StandbyCase(Case):
    """Each test has a database of its own."""
    count = 0

    def setUp(self):
        super().setUp()
        StandbyCase.count += 1
        name = f"standby{StandbyCase.count}"
        postgres.psql(f"CREATE DATABASE {name} TEMPLATE prepared")
        self.addCleanup(postgres.psql, f"DROP DATABASE {name} WITH (FORCE)")
        self.url = postgres.url(database=name)

    def server(self, *arguments, **environment):
        server = Server("--store", self.url, *(arguments or WEB), **environment)
        self.addCleanup(self.end, server)
        return server

    @staticmethod
    def end(server):
        if server.process.poll() is None:
            server.stop(signal.SIGKILL)

    def pair(self, *arguments):
        """The owner, and a server that passes clients on to it."""
        owner = self.server(*arguments)
        with owner.client() as client:
            client.numbers("stats")
        return owner, self.another(*arguments)

    def another(self, *arguments):
        standby = self.server(*arguments)
        until(lambda: standby.get("/readyz")[0] == 200, "the owner is reached", 0.02)
        return standby


def is_standby(server):
    return "weekwheeld_standby 1" in server.metrics()


def until_owns(server):
    until(lambda: not is_standby(server), "the server owns the store", 0.02)


def web_port(server):
    return int(re.search(r"serving http://127.0.0.1:(\d+)/", server.said).group(1))


def ask_web(port, request):
    """All of an answer, whose connection the server closes."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        client.sendall(request)
        answer = b""
        while more := client.recv(65536):
            answer += more
    return answer.decode()


class WhilePassingOn(StandbyCase):
    def test_jobs_travel_both_ways(self):
        owner, standby = self.pair()
        check(is_standby(standby) and not is_standby(owner), "which of both stands by")
        with owner.client() as near, standby.client() as far:
            matches("INSERTED", far.put(b"by the standby"))
            matches(r"RESERVED \d+ 14\|by the standby", near.ask("reserve-with-timeout 60"))
            far.send("reserve-with-timeout 60\r\n")
            near.until_waiting()
            matches("INSERTED", near.put(b"by the owner"))
            matches(r"RESERVED \d+ 12\|by the owner", far.answer())

    def test_a_closed_client_gives_its_jobs_back(self):
        owner, standby = self.pair()
        with owner.client() as near:
            near.put(b"back")
            with standby.client() as far:
                matches("RESERVED", far.ask("reserve-with-timeout 60"))
            matches(r"RESERVED \d+ 4\|back", near.ask("reserve-with-timeout 60"))

    def test_a_client_that_sends_no_more_gets_what_the_owner_gives_it(self):
        owner, standby = self.pair()
        answers = []
        for server in owner, standby:
            with server.client() as client:
                client.send(b"put 0 0 60 4\r\nhalf\r\nlist-tubes\r\n")
                client.socket.shutdown(socket.SHUT_WR)
                with contextlib.suppress(EOFError):
                    while True:
                        client.more()
                answers.append(re.sub(rb"INSERTED \d+", b"INSERTED", client.kept))
        matches(b"INSERTED", answers[0])
        equal(answers[0], answers[1])

    def test_a_slow_reader_gets_all_and_holds_nobody_up(self):
        owner, standby = self.pair()
        body = os.urandom(30000).hex().encode()
        with standby.client() as slow, standby.client() as quick:
            number = re.fullmatch(r"INSERTED (\d+)", slow.put(body)).group(1)
            writer = threading.Thread(target=slow.send, args=(f"peek {number}\r\n" * 300,))
            writer.start()
            for _ in range(20):
                matches("INSERTED", quick.put(b"quick"))
            for _ in range(300):
                equal(slow.answer(), f"FOUND {number} 60000|{body.decode()}")
            writer.join()

    def test_a_thousand_clients(self):
        descriptors(4096)
        owner, standby = self.pair()
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(standby.client()) for _ in range(1000)]
            for client in clients:
                client.send(b"put 0 0 60 1\r\nx\r\n")
            for client in clients:
                matches("INSERTED", client.line())
            check("weekwheeld_standby_connections 1000" in standby.metrics(), "they are counted")
            with owner.client() as near:
                equal(near.numbers("stats")["current-jobs-ready"], "1000")
        until(lambda: "weekwheeld_standby_connections 0" in standby.metrics(), "they are gone", 0.02)

    def test_http_goes_to_the_owner_and_health_does_not(self):
        owner, standby = self.pair()
        with standby.client() as client:
            client.put(b"seen")
        for path in "/v1/tubes", "/", "/nowhere":
            equal(standby.get(path), owner.get(path))
        matches('"default"', standby.get("/v1/tubes")[1])
        equal(standby.get("/livez"), (200, "ok\n"))
        equal(standby.get("/readyz"), (200, "ok\n"))
        equal(standby.get("/healthz?format=json")[0], 200)
        # A line that comes in pieces.
        with socket.create_connection(("127.0.0.1", web_port(standby)), PATIENCE) as client:
            for piece in b"G", b"ET /li", b"vez HTT", b"P/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n":
                client.sendall(piece)
                until(lambda: True, "", 0)
            matches("HTTP/1.1 200", client.recv(65536).decode())
        # After a path of its own, a connection stays here.
        matches("503(.|\n)*stands by", ask_web(web_port(standby), b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
                b"GET /v1/tubes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))

    def test_a_unix_socket_is_passed_on(self):
        self.pair()
        standby = self.another(*WEB, "--unix", "standby.sock")
        connection = socket.socket(socket.AF_UNIX)
        connection.connect("standby.sock")
        with Client(connection) as client:
            matches("INSERTED", client.put(b"by a file"))

    def test_tls_goes_from_end_to_end(self):
        run(0, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
            "-subj", "/CN=server", "-addext", "subjectAltName=DNS:localhost", "-keyout", "server.key", "-out", "server.pem")
        secure = (*WEB, "--listen", "tls:127.0.0.1:0", "--tls-cert", "server.pem", "--tls-key", "server.key")
        owner, standby = self.pair(*secure)
        context = ssl.create_default_context(cafile="server.pem")
        port = int(re.search(r"listening on tls:127.0.0.1:(\d+)", standby.said + self.more_of(standby)).group(1))
        with Client(context.wrap_socket(socket.create_connection(("127.0.0.1", port), PATIENCE), server_hostname="localhost")) as far, \
                owner.client() as near:
            matches("INSERTED", far.put(b"sealed"))
            matches(r"RESERVED \d+ 6\|sealed", near.ask("reserve-with-timeout 60"))

    @staticmethod
    def more_of(server):
        """What it says from its plain address to that with TLS."""
        return server.process.stderr.readline()

    def test_an_address_of_one_machine_beside_one_of_all(self):
        owner = self.server(*WEB, "--listen", "0.0.0.0:0", "--insecure")
        with owner.client() as client:
            client.numbers("stats")
        name, = postgres.psql("SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'weekwheel *%'")[0]
        matches(r"weekwheel \* [1-9]\d* 0 0$", name)
        standby = self.another()
        with standby.client() as client:
            matches("INSERTED", client.put())
        equal(standby.get("/v1/tubes")[0], 503)
        equal(standby.stop(), 0)
        matches("a client by HTTP is turned away: the owner listens nowhere", standby.said)

    def test_one_host_is_told_for_all_ports(self):
        """At the jobs' host, the port of HTTP may be anybody's."""
        owner, standby = self.pair("--http", "127.0.0.2:0", "--listen", "127.0.0.1:0")
        name, = postgres.psql("SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'weekwheel 127%'")[0]
        matches(r"weekwheel 127.0.0.1 [1-9]\d* 0 0$", name)

    def test_a_port_that_is_closed_holds_up_no_other(self):
        owner = self.server("--http", "127.0.0.2:0", "--advertise", "127.0.0.1")
        with owner.client() as client:
            client.numbers("stats")
        standby = self.another()
        with socket.create_connection(("127.0.0.1", web_port(standby)), PATIENCE) as web:
            web.sendall(b"GET /v1/tubes HTTP/1.1\r\nHost: localhost\r\n\r\n")
            until(lambda: "owner-port" in "".join(standby.metrics()), "the port is tried", 0.02)
            equal(standby.get("/readyz")[0], 200)
            with standby.client() as client:
                matches("INSERTED", client.put())
            matches("HTTP/1.1 503", web.recv(65536).decode())
        standby.stop()
        matches("a client waits: 127.0.0.1:", standby.said)

    def test_health_has_room_beside_clients(self):
        self.pair()
        standby = self.another(*WEB, "--max-connections", "3")
        with standby.client() as one, standby.client() as two, standby.client() as three:
            for client in one, two, three:
                client.numbers("stats")
            equal(standby.get("/readyz")[0], 200)
            equal(standby.get("/v1/tubes")[0], 503)
            with standby.client() as four:
                check(four.is_closed(), "it is one too many")

    def test_a_client_from_the_port_of_the_first_connection(self):
        """One of the same machine may have it: it is no circle."""
        owner, standby = self.pair()
        with standby.client() as far:
            matches("INSERTED", far.put())
            with open(f"/proc/{standby.process.pid}/net/tcp", encoding="ascii") as table:
                rows = [line.split()[1:4] for line in table if line.split()[2] == f"0100007F:{owner.port:04X}"]
            for port in {int(row[0][9:], 16) for row in rows if row[2] == "01"}:
                connection = socket.socket()
                try:
                    connection.setsockopt(socket.IPPROTO_IP, 51, struct.pack("=I", port << 16 | port))  # IP_LOCAL_PORT_RANGE
                except OSError:
                    self.skipTest("Linux is older than 6.3")
                connection.connect(("127.0.0.1", standby.port))
                equal(connection.getsockname()[1], port)
                with Client(connection) as client:
                    matches("INSERTED", client.put())
            matches("INSERTED", far.put())

    def test_signals_reach_a_standby(self):
        _, standby = self.pair()
        standby.process.send_signal(signal.SIGHUP)
        standby.process.send_signal(signal.SIGUSR1)
        until(lambda: standby.get("/readyz")[0] == 503, "it drains", 0.02)
        equal(standby.stop(), 0)
        check("error" not in standby.said, standby.said)


class WhenTheOwnerGoes(StandbyCase):
    def test_what_systemd_hears(self):
        """It does not wait for the end of the owner, and gives a standby that takes over the time to load."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.bind("notify")
            end.settimeout(PATIENCE)
            owner = self.server()
            with owner.client() as client:
                client.numbers("stats")
            standby = self.server(*WEB, NOTIFY_SOCKET=os.path.abspath("notify"), WATCHDOG_USEC="3000000", WATCHDOG_PID=None)
            waits = b"READY=1\nSTATUS=standing by: another server owns the store\nWATCHDOG=1\nWATCHDOG_USEC=300000000"
            equal([end.recv(200) for _ in range(3)], 3 * [waits])
            owner.stop()
            heard = waits
            while heard == waits:
                heard = end.recv(200)
            equal(heard, b"READY=1\nSTATUS=\nWATCHDOG_USEC=3000000")
            equal(end.recv(200), b"WATCHDOG=1")
            equal(standby.stop(), 0)

    def test_takeover_without_a_refused_connection(self):
        owner, standby = self.pair()
        ended, errors, put = threading.Event(), [], []

        def knock():
            """Nobody is refused; who is cut off comes again."""
            number = 0
            while not ended.is_set():
                try:
                    with standby.client() as client:
                        while not ended.is_set():
                            number += 1
                            answer = client.put(b"%d" % number)
                            if answer.startswith("INSERTED"):
                                put.append(number)
                except ConnectionRefusedError as error:
                    errors.append(error)
                except (EOFError, ConnectionError):
                    pass

        threads = [threading.Thread(target=knock)]
        for thread in threads:
            thread.start()
        try:
            with owner.client() as near, standby.client() as far:
                matches("INSERTED", near.put(b"near"))
                matches("INSERTED", far.put(b"far"))
                until(lambda: len(put) > 20, "puts pass")
                owner.stop(signal.SIGKILL)
                check(far.is_closed(), "its owner is gone")
            until_owns(standby)
            so_far = len(put)
            until(lambda: len(put) > so_far + 20, "puts come to the new owner")
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        equal(errors, [])
        with standby.client() as client:
            bodies = {base64.b64decode(job["body"]).decode() for job in client.all_jobs()}
        equal({"near", "far", *map(str, put)} - bodies, set())

    def test_an_owner_that_hangs(self):
        owner, standby = self.pair()
        with standby.client() as far:
            matches("INSERTED", far.put(b"stays"))
            owner.process.send_signal(signal.SIGSTOP)
            far.send("reserve\r\n")
            check(far.is_closed(), "the next owner cuts it off")
        until_owns(standby)
        with standby.client() as client:
            matches(r"RESERVED \d+ 5\|stays", client.ask("reserve-with-timeout 60"))
        owner.process.send_signal(signal.SIGCONT)

    def test_who_waits_becomes_a_client_of_the_next_owner(self):
        owner, standby = self.pair()
        with standby.client() as far:
            owner.process.send_signal(signal.SIGSTOP)
            self.addCleanup(owner.process.send_signal, signal.SIGCONT)
            # The first connection after the end of those that lead to the former owner may come before or after the takeover.
            check(far.is_closed(), "it led to the former owner")
            with standby.client() as client:
                matches("INSERTED", client.put())

    def test_a_third_server_finds_the_next_owner(self):
        owner, standby = self.pair()
        third = self.another()
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(server.client()) for server in (standby, third)]
            for client in clients:
                matches("INSERTED", client.put())
            owner.stop()
            for client in clients:
                check(client.is_closed(), "it led to the former owner")
        until(lambda: is_standby(standby) != is_standby(third), "one of both owns the store", 0.02)
        heir, other = (third, standby) if is_standby(standby) else (standby, third)
        with other.client() as far, heir.client() as near:
            matches("INSERTED", far.put(b"anew"))
            equal(near.numbers("stats")["current-jobs-ready"], "3")


class WhenTheOwnerIsNotReached(StandbyCase):
    def failing(self, *of_owner, why, door="127.0.0.1:0"):
        owner = self.server(*WEB, *of_owner)
        with owner.client() as client:
            client.numbers("stats")
        standby = Server("--listen", door, "--store", self.url, *WEB)
        self.addCleanup(self.end, standby)
        until(lambda: why in standby.get("/readyz")[1], why, 0.02)
        equal(standby.get("/readyz")[0], 503)
        equal(standby.get("/livez")[0], 200)
        return owner, standby

    def test_clients_get_an_error_after_a_while(self):
        _, standby = self.failing("--advertise", "127.0.0.9", why="Connection refused; check the way there")
        with standby.client() as client:
            client.send("put 0 0 60 1\r\nx\r\n")
            answer = ask_web(web_port(standby), b"GET /v1/tubes HTTP/1.1\r\nHost: localhost\r\n\r\n")
            matches("HTTP/1.1 503 Service Unavailable", answer)
            head, body = answer.split("\r\n\r\n")
            matches(f"Content-Length: {len(body)}$", head)
            equal(client.line(), "INTERNAL_ERROR")
            check(client.is_closed(), "it is closed")
        standby.stop()
        matches(r"no client can be passed on to the owner of the store: 127\.0\.0\.9:\d+, which it publishes", standby.said)

    def test_who_waits_becomes_a_client_when_the_server_takes_over(self):
        owner, standby = self.failing("--advertise", "127.0.0.9", why="Connection refused; check the way there")
        with standby.client() as client, socket.create_connection(("127.0.0.1", web_port(standby)), PATIENCE) as web:
            client.send("put 0 0 60 1\r\nx\r\n")
            web.sendall(b"GET /v1/tubes HTTP/1.1\r\nHost: localhost\r\n\r\n")
            until(lambda: "weekwheeld_standby_waiting 2" in standby.metrics(), "both wait", 0.02)
            owner.stop(signal.SIGKILL)
            matches("INSERTED", client.line())
            matches("HTTP/1.1 200", web.recv(65536).decode())

    def with_names(self, name):
        """An owner of that name, and a server that looks it up."""
        if os.environ.get("SANITIZE"):
            self.skipTest("a sanitizer has to be the first library")
        owner = self.server(*WEB, "--advertise", name)
        with owner.client() as client:
            client.numbers("stats")
        standby = Server("--store", self.url, *WEB, LD_PRELOAD=compiled("support/slow_names.c", "-shared", "-fPIC"))
        self.addCleanup(self.end, standby)
        return owner, standby

    def test_a_name_without_an_answer_holds_up_no_takeover(self):
        owner, standby = self.with_names("silent.example")
        until(lambda: is_standby(standby), "it stands by", 0.02)
        equal(standby.get("/livez")[0], 200)
        owner.stop(signal.SIGKILL)
        until_owns(standby)
        with standby.client() as client:
            matches("INSERTED", client.put())

    def test_the_longest_name(self):
        """It fits beside ports of five digits."""
        name = "n" * 35
        with self.server(*WEB, "--advertise", name) as owner, owner.client() as client:
            client.numbers("stats")
            said, = postgres.psql(f"SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'weekwheel {name[0]}%'")[0]
            equal(said, f"weekwheel {name} {owner.port} 0 {web_port(owner)}")

    def test_all_addresses_of_a_name_are_tried(self):
        owner, standby = self.with_names("two.example")
        until(lambda: standby.get("/readyz")[0] == 200, "the second one is tried", 0.02)
        with standby.client() as client:
            matches("INSERTED", client.put())

    def test_a_postgres_that_hangs(self):
        """Nothing goes on in the server meanwhile, not even signals: it does not wait for ever."""
        _, standby = self.pair()
        pid = postgres.psql("SELECT pid FROM pg_stat_activity WHERE application_name = 'weekwheel'")[0][0]
        os.kill(int(pid), signal.SIGSTOP)
        try:
            equal(standby.process.wait(PATIENCE), 1)
        finally:
            os.kill(int(pid), signal.SIGCONT)
        standby.stop()
        matches("cannot open the store in PostgreSQL: no answer", standby.said)

    def test_an_unknown_name(self):
        self.failing("--advertise", "no.such.host.invalid", why="no.such.host.invalid")

    def test_an_address_that_leads_back(self):
        owner = self.server(*WEB, "--advertise", "127.0.0.2")
        standby = Server("--listen", f"127.0.0.2:{owner.port}", "--store", self.url, *WEB)
        self.addCleanup(self.end, standby)
        until(lambda: "leads back to this server" in standby.get("/readyz")[1], "the circle is found", 0.02)
        equal(standby.get("/readyz")[0], 503)


class TestOptions(Case):
    def test_advertise(self):
        refused("--memory", "--advertise", "10.0.0.5")
        refused("--store", "postgresql:///x", "--advertise", "10.0.0.5 x")
        refused("--store", "postgresql:///x", "--advertise", "x" * 36)


if __name__ == "__main__":
    main()
