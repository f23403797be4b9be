#!/usr/bin/env python3
"""The module for Go: its own tests beside servers, with the race detector where it works, its example and its form."""
# tier: long, no-sanitizers (other tests send the server as much)
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess

from bindings import TOKEN, tls_server, write, write_grants
from harness import (BUILD, PATIENCE, ROOT, WEEKWHEELD, Beanstalkd, Case, Server, check, environment, equal, free_port, main, matches,
                     need_program, run)

HERE = os.path.dirname(os.path.abspath(__file__))
MODULE = os.path.join(ROOT, "lib", "bindings", "go")


class Go(Case):
    def setUp(self):
        need_program("go")
        super().setUp()
        for file in glob.glob(os.path.join(MODULE, "*.go")) + glob.glob(os.path.join(HERE, "*.go")) + [os.path.join(MODULE, "go.mod")]:
            shutil.copy(file, ".")

    def program(self, *words, **env):
        """Run a program and what it starts, with more patience than others need: the first use of a build folder compiles Go itself."""
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(**env), text=True,
                              start_new_session=True) as process:
            try:
                said = process.communicate(timeout=4 * PATIENCE)[0]
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # servers of a test that failed
        check(process.returncode == 0, f"{words}: exit status {process.returncode}:\n{said}")
        return said

    def go(self, *words):
        """Run go without a network and without a home."""
        return self.program("go", *words, GOCACHE=os.path.join(os.path.abspath(BUILD), "go-cache"), GOPATH=os.path.join(self.folder, "path"),
                        GOFLAGS="-mod=mod", GOPROXY="off", GOTOOLCHAIN="local", GOENV="off", HOME=None)

    def race(self):
        """The race detector, which is written in C, if it works here."""
        return ["-race"] if self.go("env", "CGO_ENABLED").strip() == "1" and shutil.which("gcc") else []

    def suite(self, pattern, **env):
        """Run the tests of this name, and require that none was skipped."""
        race = self.race()
        self.go("vet", *race, ".")
        self.go("test", "-c", *race, "-o", "tests", ".")
        said = self.program("./tests", "-test.v", "-test.run", pattern, "-test.timeout", f"{3 * PATIENCE}s", **env)
        matches(r"^--- PASS: ", said)
        equal(re.findall(r"^ *--- (?:SKIP|FAIL).*", said, re.M), [])
        return said

    def test_jobs(self):
        write_grants("put,work,read:mail")
        with Server("--clock", "virtual") as server, Server() as real, Server("--auth-file", "tokens") as tokened, tls_server() as tls:
            with open("ca.pem", encoding="utf-8") as ca:
                said = self.suite(".", SERVER=server.address, WEEKWHEEL_SERVER=real.address, WEEKWHEELD=WEEKWHEELD, PORT=str(free_port()),
                                  TOKENED=tokened.address, TOKEN=TOKEN, TLS=tls, CA=ca.read())
        matches(r"^--- PASS: Example", said)

    def test_beanstalkd(self):
        with Beanstalkd() as server:
            self.suite("Beanstalkd", BEANSTALKD=f"127.0.0.1:{server.port}")

    def test_the_service_of_the_readme(self):
        with open(os.path.join(MODULE, "README.md"), encoding="utf-8") as file:
            readme = file.read()
        with open(os.path.join(ROOT, "include", "weekwheel", "version.h"), encoding="utf-8") as file:
            version = re.search(r'#define WW_VERSION "(.*)"', file.read())[1]
        edit = re.search(r"^go (mod edit -require weekwheel\.example/weekwheel@v(\S+) .*)", readme, re.M)
        equal(edit[2], version)
        program, said = re.search(r"^```go\n(.*?)^```\n\nIt prints:\n\n```\n(.*?)^```", readme, re.M | re.S).groups()
        os.mkdir("service")
        os.chdir("service")
        write("go.mod", "module service\n\ngo 1.19\n")
        self.go(*edit[1].replace("../weekwheel/lib/bindings/go", MODULE).split())
        with Server() as server:
            write("main.go", program.replace("127.0.0.1:11300", server.address))
            self.go("build", *self.race(), "-o", "service", ".")
            equal(self.program("./service"), said)

    def test_its_form(self):
        equal(self.program("gofmt", "-l", "."), "")
        equal(self.go("list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").split(), ["weekwheel.example/weekwheel"])


if __name__ == "__main__":
    main()
