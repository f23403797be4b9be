#!/usr/bin/env python3
"""docs/recipes.md: each section is followed with the libraries of its language, as Debian has them, and prints what it shows.

A block below a line that begins or ends with a name in backquotes is, or extends, that file. A worker goes on until it has
printed a line.
"""
# tier: long, no-sanitizers (other tests send the server as much)
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import unittest

import test_monitoring
from harness import (BUILD, PATIENCE, ROOT, WEEKWHEEL, Case, Server, check, environment, equal, free_port, lack, main, need_program,
                     run, until)
from test_examples import PROGRAMS, SERVER, UP, Follower

PAGE = os.path.join(ROOT, "docs", "recipes.md")
SERVERS = SERVER + "weekwheel-sessiond --data sessions &\n" + UP.replace("server", "sessions")
PART = re.compile(r"^<!-- test:\n(?P<test>.*?)^-->$|"
                  r"(?:(?P<not>\(\*not tested\*\)):\n\n|^`(?P<first>[\w./-]+)`[^\n]*:\n\n|`(?P<last>[\w./-]+)`:\n\n)?"
                  r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
# Debian's modules and gems, where Node and other Pythons do not look for them.
NODE = "/usr/share/nodejs"
WORKER = re.compile(r"^((?:python3|ruby|node) (?:manage.py work|worker\.\w+))$", re.M)
UNTIL_IT_PRINTS = r"""\1 >said &
worker=$!
until [ -s said ]; do kill -0 $worker; sleep 0.02; done
kill $worker; wait $worker || [ $? = 143 ]
cat said"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sections():
    """{title: text}"""
    return dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", read(PAGE), re.M | re.S))


def parts_of(title):
    for part in PART.finditer(sections()[title]):
        name = part["first"] or part["last"]
        if part["test"]:
            yield "test", part["test"]
        elif part["not"]:
            continue
        elif name:
            folder = os.path.dirname(name)
            yield "test", f"{'mkdir -p ' + folder if folder else ':'}\ncat >>{name} <<'THE END'\n{part['text']}THE END\n"
        else:
            yield part["language"], part["text"]


def file_of(title, name):
    """The block that is this file."""
    return next(part["text"] for part in PART.finditer(sections()[title]) if name in (part["first"], part["last"]))


def python_with(module, package):
    """Debian's Python has Debian's modules."""
    if run(None, "/usr/bin/python3", "-c", "import " + module).status:
        raise unittest.SkipTest(lack(package))
    return f'PYTHONPATH="{ROOT}/lib/bindings/python" PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3'


class Recipes(Follower):
    ports = ("5000", "3000", "8080")

    def section(self, title, **programs):
        self.programs = {**PROGRAMS, **programs}
        parts = [(kind, WORKER.sub(UNTIL_IT_PRINTS, text) if kind == "sh" else text) for kind, text in parts_of(title)]
        self.follow("recipes.md", [("test", SERVERS), *parts])

    def test_flask(self):
        python = python_with("flask_session, redis", "python3-flask-session")
        self.section("Flask", python3=python + ' "$@"', flask=python + ' -m flask "$@" --port 5000 2>>log')

    def test_django(self):
        python = python_with("django_redis", "python3-django-redis")
        self.section("Django", python3=python + ' "$@"')

    def test_express(self):
        need_program("node")
        if not os.path.exists(os.path.join(NODE, "express")):
            raise unittest.SkipTest(lack("node-express"))
        os.mkdir("node_modules")
        os.symlink(os.path.join(ROOT, "lib", "bindings", "node"), "node_modules/weekwheel")
        os.symlink(os.path.join(NODE, "express"), "node_modules/express")
        self.section("Express", node=f'NODE_PATH={NODE} exec {run(0, "which", "node").out.strip()} --preserve-symlinks "$@"')

    def test_ruby(self):
        need_program("ruby")
        if run(None, "ruby", "-e", "require 'beaneater'").status:
            raise unittest.SkipTest(lack("ruby-beaneater"))
        self.section("Ruby")

    def test_go(self):
        need_program("go")
        self.more = {"GOCACHE": os.path.join(os.path.abspath(BUILD), "go-cache"), "GOPATH": os.path.join(self.folder, "path"),
                     "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOENV": "off"}
        self.section("Go")

    def test_spring_session(self):
        self.section("Spring Session")


@contextlib.contextmanager
def running(*command, **env):
    with subprocess.Popen(command, env=environment(**env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def until_it_says(process, words):
    late = threading.Timer(PATIENCE, process.kill)
    late.start()
    said = ""
    while words not in said:
        line = process.stdout.readline()
        check(line, f"it ends and does not say {words}: {said}")
        said += line
    late.cancel()


class Workers(Case):
    """Outside their service, container or cluster, as these would start them."""

    def setUp(self):
        super().setUp()
        self.port = free_port()

    def started(self):
        server = Server("--data", "jobs", "--listen", f"127.0.0.1:{self.port}")
        while f"listening on 127.0.0.1:{self.port}" not in server.said:
            server.said += server.process.stderr.readline()
        return server

    def test_a_service_waits_for_its_server_and_survives_it(self):
        unit = read(os.path.join(ROOT, "tools/weekwheel/jobs/weekwheel-work@.service"))
        settings = dict(line.split("=", 1) for line in file_of("A worker as a service", "/etc/default/weekwheel-work-mail").splitlines())
        settings = {name: "".join(shlex.split(value)) for name, value in settings.items()}
        equal(settings["WEEKWHEEL_SERVER"], "127.0.0.1:11300")
        os.makedirs("srv/shop")
        with open("srv/shop/send-mail", "w", encoding="utf-8") as script:
            script.write('#!/bin/sh\n[ "$1" = --quiet ] && { cat; echo; } >>mails\n')
            os.fchmod(script.fileno(), 0o755)
        # As systemd does it: a variable that stands alone becomes words.
        words = re.search(r"^ExecStart=(.*)", unit, re.M)[1].split()
        words = [part for word in words for part in (settings[word[1:]].split() if word[0] == "$" else [word])]
        equal(words[0], "/usr/local/bin/weekwheel")
        command = [WEEKWHEEL, *(word.replace("/srv/", "srv/") for word in words[1:])]
        with running(*command, WEEKWHEEL_SERVER=f"127.0.0.1:{self.port}") as worker:
            until_it_says(worker, "trying again")
            for body, end in (("ada\n", signal.SIGKILL), ("ada\nbob\n", signal.SIGTERM)):
                with self.started() as server:
                    server.program.run(0, "put", "--tube", "mail", body.split()[-1])
                    until(lambda: os.path.exists("mails") and read("mails") == body, body)  # pylint: disable=cell-var-from-loop
                    server.stop(end)
            worker.terminate()
            equal(worker.wait(PATIENCE), 0)

    def test_a_container(self):
        """Its instructions, what it copies, and how it starts and ends."""
        lines = file_of("A worker in a container", "Containerfile").splitlines()
        instructions = [line.split(" ", 1) for line in lines]
        equal([name for name, _ in instructions], ["FROM", "RUN", "COPY", "COPY", "USER", "ENTRYPOINT"])
        values = dict(instructions)
        check(f"ARG BASE={values['FROM']}\n" in read(os.path.join(ROOT, "scripts/containers/Dockerfile")), "Debian is that of the servers")
        os.makedirs("srv/worker")
        with open("worker.py", "w", encoding="utf-8") as file:
            file.write(file_of("Flask", "worker.py"))
        for source, target in (value.split() for name, value in instructions if name == "COPY"):
            path = source if source == "worker.py" else os.path.join(ROOT, source)
            (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, target.lstrip("/"))
        start = [word.replace("/srv/", "srv/") for word in json.loads(values["ENTRYPOINT"])]
        need_program(start[0])
        with self.started() as server, running(*start, WEEKWHEEL_SERVER=f"127.0.0.1:{self.port}", TINI_SUBREAPER="1",
                                               PYTHONDONTWRITEBYTECODE="1") as worker:
            server.program.run(0, "put", "--tube", "mail", "ada@example.org")
            until_it_says(worker, "a mail to ada@example.org")
            worker.terminate()
            equal(worker.wait(PATIENCE), 0)

    def test_kubernetes(self):
        """Ports, names and the volume agree with each other and with the image, and the server answers the probes."""
        try:
            import yaml  # pylint: disable=import-outside-toplevel
        except ImportError:
            raise unittest.SkipTest(lack("python3-yaml")) from None
        objects = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(file_of("Kubernetes", "weekwheeld.yaml"))}
        pod = objects["StatefulSet", "weekwheeld"]["spec"]["template"]
        server = pod["spec"]["containers"][0]
        image = re.search(rf"^FROM common AS {server['image']}\n(?:.+\n)*", read(os.path.join(ROOT, "scripts/containers/Dockerfile")), re.M)[0]
        ports = {port["name"]: port["containerPort"] for port in server["ports"]}
        arguments = dict(zip(server["args"], server["args"][1:]))
        equal((arguments["--listen"], arguments["--http"]), (f"0.0.0.0:{ports['jobs']}", f"0.0.0.0:{ports['http']}"))
        check(f"EXPOSE {ports['jobs']}\n" in image and f"VOLUME {server['volumeMounts'][0]['mountPath']}\n" in image, image)
        service, policy = objects["Service", "weekwheeld"]["spec"], objects["NetworkPolicy", "weekwheeld"]["spec"]
        labels = pod["metadata"]["labels"].items()
        check(service["selector"].items() <= labels and policy["podSelector"]["matchLabels"].items() <= labels, labels)
        equal((service["ports"][0]["targetPort"] in ports, policy["ingress"][0]["ports"][0]["port"]), (True, ports["jobs"]))
        worker = objects["Deployment", "send-mail"]["spec"]["template"]
        check(policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"].items() <= worker["metadata"]["labels"].items(), worker)
        equal(worker["spec"]["containers"][0]["env"][0]["value"], f"weekwheeld:{service['ports'][0]['port']}")
        probes = {name: probe["httpGet"] for name, probe in server.items() if name.endswith("Probe")}
        equal({probe["port"] in ports and probe["port"] for probe in probes.values()}, {"http"})
        words = [word.replace("0.0.0.0:11300", f"127.0.0.1:{self.port}").replace(":11301", ":0") for word in server["args"]]
        with Server(*words) as started:
            while "serving http" not in started.said:
                started.said += started.process.stderr.readline()
            equal([test_monitoring.status(started, probe["path"]) for probe in probes.values()], [200, 200, 200])
            started.process.send_signal(signal.SIGUSR1)
            until(lambda: test_monitoring.status(started, probes["readinessProbe"]["path"]) == 503, "it drains")
            equal(test_monitoring.status(started, probes["livenessProbe"]["path"]), 200)
            equal(test_monitoring.status(started, "/healthz"), 503)


if __name__ == "__main__":
    main()
