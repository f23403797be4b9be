#!/usr/bin/env python3
"""Clients of Redis by other authors keep a site's sessions in weekwheel-sessiond: log in, touch, change, expire.

Each client has a program in clients/ that tells its story, and asks for what only a test can do: it prints "restart" or
"advance SECONDS", and gets "done"; at its end it prints "told". Those for Node.js come
from npm's registry, in the versions of package-lock.json.
"""
# tier: long, waits, no-sanitizers
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import laravel
from sessiond import Sessiond
from harness import PATIENCE, ROOT, Case, environment, equal, free_port, lack, main, matches, need_program, run

DOCS = os.path.join(ROOT, "docs")
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients")


def write_block(name, language, beginning, port, page="sessions-for-a-site.md"):
    """The block of the page that begins so becomes a file here, with the server of the test."""
    with open(os.path.join(DOCS, page), encoding="utf-8") as file:
        found = re.search(rf"^```{language}\n({re.escape(beginning)}.*?)^```$", file.read(), re.M | re.S)
    with open(name, "w", encoding="utf-8") as file:
        file.write(found[1].replace("6380", str(port)))


class Site:
    """A server whose clock stands still, and that keeps what it has in the folder of the test."""

    def __init__(self):
        self.port = free_port()
        self.server = self.started()

    def started(self):
        return Sessiond("--data", "data", "--clock", "virtual", port=self.port)

    def do(self, what, seconds="0"):
        if what == "restart":
            equal(self.server.stop(), 0)
            self.server = self.started()
        else:
            with self.server.client() as client:
                equal((what, client.ask("ADVANCE", int(seconds) * 1000)), ("advance", b"+OK\r\n"))

    def hears(self, *command, **env):
        """Run a client's program, do what it asks for, and see it succeed."""
        said = []
        try:
            # It is ended if it waits for ever.
            with subprocess.Popen(["timeout", str(PATIENCE), *command, str(self.port)], env=environment(**env), text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as story:
                for line in story.stdout:
                    if line.startswith(("restart\n", "advance ")):
                        self.do(*line.split())
                        story.stdin.write("done\n")
                        story.stdin.flush()
                    else:
                        said.append(line)
            equal((story.returncode, "".join(said)), (0, "told\n"))
        finally:
            equal(self.server.stop(), 0)


class Node(Case):
    """A client of Node.js takes about as long to come from npm as its story."""
    modules = None

    @classmethod
    def setUpClass(cls):
        need_program("node")
        need_program("npm")
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(HERE, name), folder.name)
        got = run(None, "timeout", os.environ.get("NPM_SECONDS", "30"), "npm", "ci", "--prefix", folder.name,
                  "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0",
                  "--fetch-timeout=5000")
        if got.status:
            raise unittest.SkipTest(f"npm does not get them, or takes too long: {got.err}")
        cls.modules = os.path.join(folder.name, "node_modules")

    def hears(self, name):
        Site().hears("node", os.path.join(HERE, name), NODE_PATH=self.modules, NODE_NO_WARNINGS="1")

    def test_ioredis(self):
        self.hears("ioredis.js")

    def test_node_redis(self):
        self.hears("node_redis.js")

    def test_connect_redis(self):
        self.hears("connect_redis.js")


class Python(Case):
    """Of Debian, for the machine's own Python."""

    def hears(self, name, *modules, block=None):
        for python in (sys.executable, "/usr/bin/python3"):
            if run(None, python, "-I", "-c", "import " + ", ".join(modules)).status == 0:
                site = Site()
                if block:
                    write_block("page.py", "python", block, site.port)
                return site.hears(python, os.path.join(HERE, name), PYTHONWARNINGS="ignore", PYTHONPATH=os.getcwd())
        raise unittest.SkipTest(lack("python3-" + modules[-1].replace("_", "-")))

    def test_redis_py(self):
        self.hears("redis_py.py", "redis")

    def test_flask_session(self):
        self.hears("flask_site.py", "redis", "flask_session")

    def test_flask_of_the_page(self):
        self.hears("flask_page.py", "redis", "flask_session", block="from datetime")

    def test_django(self):
        self.hears("django_site.py", "redis", "django_redis")


class Others(Case):
    def test_phpredis(self):
        need_program("php")
        if "redis" not in run(0, "php", "-m").out.split():
            raise unittest.SkipTest(lack("php-redis"))
        Site().hears("php", os.path.join(HERE, "phpredis.php"))

    def test_laravel_of_its_page(self):
        laravel.need_laravel()
        site = Site()
        laravel.configure(_6380=site.port)
        site.hears("php", os.path.join(HERE, "laravel.php"), SUPPORT=laravel.SUPPORT)

    def test_redis_rb(self):
        need_program("ruby")
        if run(None, "ruby", "-e", "require 'redis'").status:
            raise unittest.SkipTest(lack("ruby-redis"))
        Site().hears("ruby", os.path.join(HERE, "redis_rb.rb"))

    def rails(self, page, **libraries):
        need_program("ruby")
        for library, package in libraries.items():
            if run(None, "ruby", "-e", f"require '{library}'").status:
                raise unittest.SkipTest(lack(package))
        site = Site()
        write_block("page.rb", "ruby", "config.session_store", site.port, page)
        site.hears("ruby", os.path.join(HERE, "rails_page.rb"))

    def test_rails_of_the_page(self):
        self.rails("sessions-for-a-site.md", redis="ruby-redis", action_dispatch="ruby-actionpack")

    def test_rails_of_the_recipes(self):
        self.rails("recipes.md", **{"action_dispatch": "ruby-actionpack", "redis-store": "ruby-redis-actionpack"})


class Tools(Case):
    """Those of Debian's redis-tools."""

    def setUp(self):
        super().setUp()
        need_program("redis-cli")

    def test_redis_cli(self):
        def cli(*words, said=b""):
            return run(0, "redis-cli", "-p", str(server.port), *words, stdin=said).out

        with Sessiond() as server:
            equal(cli("-3", "set", "a", "b", "EX", "100") + cli("get", "a"), "OK\nb\n")
            matches("redis_version:7", cli("info", "server"))
            equal(cli("--scan"), "a\n")
            matches("keys=1", cli("info"))
            equal(cli("-x", "set", "b", said=b"long\0"), "OK\n")
            matches("errors: 0, replies: 3$", cli("--pipe", said=b"SET c 1\r\nINCR c\r\nSET d x\r\n"))
            equal(cli(said=b"MULTI\nGET c\nSTRLEN b\nEXEC\n"), "OK\nQUEUED\nQUEUED\n2\n5\n")
            matches(r"Biggest string found '\"b\"' has 5 bytes", cli("--bigkeys"))
            equal(server.stop(), 0)

    def test_redis_benchmark(self):
        with Sessiond() as server:
            for more in ((), ("-3", "-P", "16", "--threads", "2")):
                said = run(0, "redis-benchmark", "-p", str(server.port), "-q", "-n", "2000", "-r", "100",
                           "-t", "ping,set,get,incr,mset", *more)
                equal((len(re.findall("requests per second", said.out)), said.err), (6, ""))
                run(0, "redis-benchmark", "-p", str(server.port), "-q", "-n", "2000", "-r", "100", *more,
                    "SET", "key:__rand_int__", "x", "EX", "1800")
            equal(server.stop(), 0)


if __name__ == "__main__":
    main()
