#!/usr/bin/env python3
"""The package for PHP: each verb beside servers, what becomes of lost connections, its example and its form."""
# tier: long, no-sanitizers (other tests send the server as much)
import glob
import json
import os
import re
import signal
import socket
import subprocess
import threading

from bindings import TOKEN, listens, tls_server, write, write_grants
from harness import (BUILD, PATIENCE, ROOT, Beanstalkd, Case, Relay, Server, close_listener, equal, environment, free_port, main, matches,
                     need_program, run, until)

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(ROOT, "lib", "bindings", "php")


class Listener:
    """Answers each connection by a function of its own."""

    def __init__(self, answer):
        self.answer, self.kept = answer, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        close_listener(self.socket)
        for connection in self.kept:
            connection.close()

    def serve(self):
        while True:
            try:
                self.kept.append(self.socket.accept()[0])
                self.answer(self.kept[-1])
            except OSError:
                return


def trickle(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for verb in (b"headers", b"reserve"):
        while verb not in connection.recv(65536):
            pass
        connection.sendall(b"UNKNOWN_COMMAND\r\n" * (verb == b"headers"))
    for byte in b"RESERVED 7 4\r\na\r\nb\r\n":
        connection.sendall(bytes([byte]))
        threading.Event().wait(0.005)


def late(data):
    if data.startswith(b"OK "):
        threading.Event().wait(1.5)
    return data


class Php(Case):
    def setUp(self):
        need_program("php")
        super().setUp()

    def test_jobs(self):
        write_grants("put,work,read:mail")
        with Server("--clock", "virtual", "--unix", "socket") as server, Server("--auth-file", "tokens") as tokened, \
                tls_server() as tls:
            ended = run(None, "php", os.path.join(HERE, "jobs.php"), PACKAGE=PACKAGE, SERVER=server.address, TOKENED=tokened.address, TOKEN=TOKEN,
                       TLS=tls, SOCKET="socket", OPENAPI=os.path.join(BUILD, "gen", "openapi.json"))
        assert ended.status == 0, ended
        matches(r"^passed test_", ended.out)

    def test_the_example_of_the_readme(self):
        need_program("composer")
        with open(os.path.join(PACKAGE, "README.md"), encoding="utf-8") as file:
            readme = file.read()
        commands = re.search(r"^```sh\n(.*?)^```", readme, re.M | re.S)[1].replace("../weekwheel/lib/bindings/php", PACKAGE)
        program, said = re.search(r"^```php\n(.*?)^```\n\nIt prints:\n\n```\n(.*?)^```", readme, re.M | re.S).groups()
        write("composer.json", '{"repositories": {"packagist.org": false}}')
        run(0, "sh", "-e", "-c", commands, COMPOSER_HOME=os.path.join(self.folder, "home"), COMPOSER_ALLOW_SUPERUSER="1",
            COMPOSER_DISABLE_NETWORK="1", COMPOSER_NO_INTERACTION="1")
        with Server() as server:
            write("site.php", program.replace("127.0.0.1:11300", server.address))
            equal(run(0, "php", "site.php").out, said)

    def test_its_form(self):
        for file in glob.glob(os.path.join(PACKAGE, "**", "*.php"), recursive=True):
            run(0, "php", "-l", file)
            with open(file, encoding="utf-8") as text:
                matches(r"\A<\?php\n// [A-Z].*\.\n\ndeclare\(strict_types=1\);\n", text.read(), file)
        with open(os.path.join(ROOT, "include", "weekwheel", "version.h"), encoding="utf-8") as file, \
                open(os.path.join(PACKAGE, "composer.json"), encoding="utf-8") as package:
            matches(f'#define WW_VERSION "{re.escape(json.load(package)["version"])}"', file.read())

    def play(self, case, address, actions=None, direct=None, status=0):
        """Run a case of ends.php, and do what it asks for."""
        with open("said", "w+", encoding="utf-8") as errors, subprocess.Popen(
                ["php", os.path.join(HERE, "ends.php"), *case.split()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                text=True, env=environment(PACKAGE=PACKAGE, ADDRESS=address, DIRECT=direct or address)) as php:
            late = threading.Timer(PATIENCE, php.kill)
            late.start()
            said = []
            for line in php.stdout:
                said.append(line)
                if line.strip() in (actions or {}):
                    actions[line.strip()](php)
                    if php.poll() is None:
                        php.stdin.write("done\n")
                        php.stdin.flush()
            php.wait()
            late.cancel()
            errors.seek(0)
            assert php.returncode == status and (status or said[-1:] == ["passed\n"]), "".join(said) + errors.read()

    def test_a_broken_connection_says_what_may_have_been_done(self):
        with Server() as server:
            for word, change, case in ((b"put-key", None, "cut sent 0"), (b"use", None, "cut unsent 0"), (b"stats-key", None, "cut unsent 0"),
                                       (None, lambda data: None if data.startswith(b"INSERTED") else data, "cut sent 1")):
                with self.subTest(word), Relay(server.port, word, lambda: "stop", change) as relay:
                    self.play(case, relay.address, direct=server.address)
        with Server() as server, Relay(server.port, b"delete", lambda: "stop") as relay:
            self.play("cut_lease", relay.address, direct=server.address)

    def test_a_server_is_killed_and_comes_back(self):
        for case in ("restart", "worker_restart"):
            address = f"127.0.0.1:{free_port()}"
            servers = []

            def start(_=None):
                servers.append(Server("--data", os.path.join(self.folder, case), "--listen", address))
                listens(servers[-1], "listening on " + address)

            start()
            try:
                with self.subTest(case):
                    self.play(case, address, {"kill": lambda _: servers.pop().stop(signal.SIGKILL), "start": start})
            finally:
                for server in servers:
                    server.stop()

    def test_signals_end_a_worker(self):
        with Server() as server:
            self.play("worker_signal", server.address, {"terminate": lambda php: php.send_signal(signal.SIGTERM)})

    def test_an_idle_worker_ends_by_a_signal(self):
        with Server() as server, server.client() as client, subprocess.Popen(
                ["php", os.path.join(HERE, "ends.php"), "worker_idle"], stdout=subprocess.PIPE, text=True,
                env=environment(PACKAGE=PACKAGE, ADDRESS=server.address)) as php:
            client.until_waiting()
            php.send_signal(signal.SIGINT)
            equal((php.communicate(timeout=PATIENCE)[0], php.returncode), ("passed\n", 0))

    def test_a_killed_worker_gives_its_job_back(self):
        with Server() as server, server.client() as client:
            client.put(tube="t")
            self.play("worker_killed", server.address, {"die": lambda php: (php.kill(), php.wait())}, status=-signal.SIGKILL)
            client.until_stats("current-jobs-ready", 1)

    def test_a_worker_touches_its_job(self):
        with Server() as server:
            self.play("touches", server.address)
        with Server() as server, Relay(server.port, None, None, late) as relay:
            self.play("touch_in_a_command", relay.address, direct=server.address)

    def test_a_silent_server_is_lost_and_a_slow_one_is_not(self):
        with Listener(lambda connection: None) as server:
            self.play("silent", server.address)
        with Listener(trickle) as server:
            self.play("slow", server.address)

    def test_another_server_is_refused(self):
        for answer, says in ((b"OK much\r\n", "not"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "know"), (b"OK 5\r\nab", "closed")):
            def serve(connection, answer=answer):
                connection.recv(65536)
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_RDWR)
            with self.subTest(answer), Listener(serve) as server:
                self.play("another " + says, server.address)
        with Beanstalkd() as server:
            self.play("beanstalkd", f"127.0.0.1:{server.port}")

    def test_a_fork_has_a_connection_of_its_own(self):
        with Server() as server:
            self.play("forked", server.address)


if __name__ == "__main__":
    main()
