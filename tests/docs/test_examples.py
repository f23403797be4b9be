#!/usr/bin/env python3
"""The examples of README.md, of docs/, of the manuals and of each --help: what they tell to do works, and prints what they show.

The blocks of a paper are one script, and so are the examples of a manual and those of a program's help. It runs in a scratch
folder, with servers on ports of the test. A block without a language is what the one before it prints. It has other
numbers: each run of digits stands for any, and so does one of blanks and dashes. Standard output and errors come in another
order than on a terminal, so the lines of a block may, too. What a reader has already is made here by MADE and, in a page, by
comments such as <!-- test: COMMANDS -->. NOT_RUN has what cannot run, with the reason; all else does. The programs in C of
README.md and docs/guide.md belong to scripts/check-readme.
"""
# tier: check
# needs: examples/sessions examples/jobs_redis
import contextlib
import glob
import os
import re
import signal
import socket
import subprocess
import sys

from harness import (BEANSTALKD, BUILD, PATIENCE, ROOT, WEEKWHEEL, WEEKWHEELD, Case, Redis, environment, equal, free_port,
                     main, need_program, need_server)
from postgres import Postgres

# What begins with these words does not run here.
NOT_RUN = {
    "session.save_handler": "lines of php.ini",
    "from datetime import timedelta": "needs Flask; test_sessiond_clients runs it",
    "config.session_store": "lines of Rails; test_sessiond_clients runs them",
    "make demo": "takes minutes; CI runs it as a step",
    "make && sudo make install": "needs root; test_install has it, and compiles a program by pkg-config",
    "make install prefix=": "test_install has it, with another folder",
    "cc program.c": "test_install compiles with these flags",
    "systemctl stop": "needs systemd and root; test_unit has what it says of files and users",
    "weekwheel replay --sessions 1000000": "a million sessions take long in a sanitizer's build; test_cli has fewer",
    "weekwheel-bench": "measures for minutes; test_bench_cli has its options",
    "weekwheel sessions --token-file token": "another machine with TLS; test_sessiond_auth has it",
    "echo 'redis://:PASSWORD": "two machines; test_failover has two servers, test_redis the file",
    "put-key 0 86400": "lines of the protocol, not of a shell",
    "make amalgamation": "test_amalgamation runs it",
    "cc -O2 -c weekwheel.c": "test_amalgamation compiles so, by several compilers",
    "make deb": "test_packages runs it",
    "cd build/deb": "needs root and a clean Debian; test_packages installs them in one",
    "docker ": "needs a daemon; test_packages builds the images and starts them",
    "systemctl enable": "needs systemd and root; test_unit has the units",
    "cc app.c": "test_install compiles with these flags",
    "weekwheeld --store postgresql": "goes on; its tests start it on a PostgreSQL",
    "connection = psycopg.connect": "needs psycopg", "await client.query": "needs node-postgres", "tx, err := pool": "needs pgx",
    "$pdo->begin": "needs PDO's driver",
    "'beanstalkd' => [": "lines of Laravel; test_php_queues runs them", "'redis' => [": "lines of Laravel; test_sessiond_clients runs them",
    "composer require": "needs the network; test_php_queues has Debian's packages",
    "php artisan": "needs a site; test_php_queues works so", "php bin/console": "needs a site; test_php_queues works so",
    "CACHE_DRIVER": "lines of Laravel's .env", "MESSENGER_TRANSPORT_DSN": "a line of Symfony's .env; test_php_queues takes it",
}
# Programs on the ports of the test. A worker of an example ends when nothing is due.
PROGRAMS = {
    "weekwheeld": 'case "$*" in *--listen*) ;; *--memory*|*--http*) set -- --listen 127.0.0.1:11300 "$@" ;;\n'
                  '*) set -- --listen 127.0.0.1:11300 --http 127.0.0.1:11301 "$@" ;; esac\n'
                  'exec ' + WEEKWHEELD + ' "$@" 2>>log',
    "weekwheel-sessiond": "exec " + os.path.join(BUILD, "bin", "weekwheel-sessiond") + ' --listen 127.0.0.1:6380 "$@" 2>>log',
    "weekwheel-expirer": "exec " + os.path.join(BUILD, "bin", "weekwheel-expirer") + ' "$@" 2>>log',
    "weekwheel": "exec " + WEEKWHEEL + ' "$@"',
    "beanstalkd": "exec " + BEANSTALKD + ' "$@"',
    "redis-cli": 'case "$*" in "-p "*) ;; *) set -- -p 6379 "$@" ;; esac\nexec /usr/bin/redis-cli "$@"',
    "old": "exec " + sys.executable + " -c 'import socket, sys; s = socket.create_connection((\"127.0.0.1\", 11300)); "
           "t = sys.stdin.buffer.read(); s.sendall(t); f = s.makefile(); "
           "[f.readline() for _ in range(t.count(b\"use \") + t.count(b\"put \"))]'",
    # Debian has several; this one reads until the body of the job.
    "nc": "exec " + sys.executable + " -c 'import socket, sys; s = socket.create_connection((\"127.0.0.1\", 11300)); "
          "s.sendall(sys.stdin.buffer.read()); f = s.makefile(); print(*[f.readline() for _ in range(3)])'",
    "crontab": "cat mine",
    "convert": 'cat "$1" >"${4:-$2}"',
    "send": "cat",
    "backup": ":",
    "scripts/bench-plots": "cat >/dev/null",
    "make": 'exec test -x "$1"',
}
# Before a line that starts a server, and behind it.
ALONE = '[ -z "$server" ] || { kill $server; wait $server || true; }\n'
UP = 'server=$!\nwhile [ "$(grep -c listening log)" = "$up" ]; do kill -0 $server; sleep 0.02; done; up=$(grep -c listening log)\n'
SERVER = "weekwheeld --memory &\n" + UP
# As a reader does by Ctrl-C, when it listens to that: bit 15 of the caught signals is SIGTERM's.
TOLD_TO_END = """until [ $((0x$(sed -n 's/^SigCgt:.*\\(....\\)$/\\1/p' /proc/$!/status) & 0x4000)) != 0 ]; do sleep 0.02; done
kill $!; wait $!
"""
JOBS = SERVER + """for i in $(seq 16); do weekwheel put --in 1d $i; done
weekwheel put --key refresh --in 1h refresh
weekwheel put x; weekwheel put y
weekwheel put --tube mail --key ada --in 1h 'remind ada'
weekwheel put --tube mail x; weekwheel bury 21 --reason 'wrong address'
weekwheel put --tube mail y
weekwheel put --tube resize x
weekwheel put --key cart-1 --in 1h x
"""
STORE = SERVER.replace("--memory", "--data jobs") + "weekwheel put --tube mail x; weekwheel put --tube mail y; weekwheel bury 1\n"
STOPPED = STORE + "kill $!; wait $!\n"
CALENDAR = SERVER + "weekwheel schedule add backup '@daily' --tube nightly\n"
LOGS = """echo '1 0 1 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1' | gzip >jobs.swf.gz
for i in 1 2 3; do echo '192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 7'; done >access.log; gzip -k access.log
"""
BEANSTALK = "beanstalkd -l 127.0.0.1 -p 11301 &\nuntil (: </dev/tcp/127.0.0.1/11301) 2>/dev/null; do sleep 0.02; done\n"
CRONTAB = "echo '0 3 * * * ./backup' >mine\n"
# What a reader has before the examples: by the name of the paper, of the manual or of the command whose help it is.
MADE = {
    "guide.md": LOGS,
    "installing.md": SERVER + "weekwheel-sessiond &\n" + UP.replace("server", "sessions"),
    "weekwheel.1": LOGS, "README.md": CRONTAB,
    "weekwheel-jobs.1": SERVER + BEANSTALK + CRONTAB + "touch a.jpg b.jpg; mkdir small\n",
    "weekwheel-store.1": STORE,
    "weekwheel replay": LOGS,
    "weekwheel put": JOBS + "echo a.jpg >files\n",
    "weekwheel sessions": "weekwheel-sessiond --http 127.0.0.1:6382 &\n" + UP,
    "weekwheel schedule": CALENDAR,
    "weekwheel fsck": STOPPED,
    "weekwheel recover": STOPPED,
    "weekwheel backup": STORE,
    "weekwheel restore": STOPPED + "weekwheel backup jobs jobs.copy\n",
    "weekwheel export": STOPPED,
    "weekwheel import": STOPPED + "weekwheel export jobs --output jobs.json; rm -r jobs\n",
    "weekwheel import --from URL": SERVER + BEANSTALK + "redis-cli ZADD delayed 1796115600000 x\n",
    "weekwheel advance": SERVER.replace("--memory", "--memory --clock virtual"),
    "weekwheel cron": "",
    "weekwheel postgres": "createdb shop\n",
    "weekwheel-postgres.7": "createdb shop\nweekwheel postgres setup postgresql:///shop\n",
    "weekwheel token": SERVER + "touch tokens\n",
    "weekwheeld": "", "weekwheel-sessiond": "", "weekwheel-bench": "", "weekwheel-expirer": "", "weekwheel-expirer.1": "", "weekwheeld.1": "", "weekwheel-sessiond.1": "", "weekwheel.7": "",
}
# Languages that other tests run: scripts/check-readme, tests/install/test_embed.sh and test_monitoring.
OTHERS = ("c", "cmake", "meson", "yaml")
PART = re.compile(r"^<!-- test:\n(?P<test>.*?)^-->$|^( *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$", re.M | re.S)


def alike(text):
    """Its lines in order, without numbers and the width of columns. A span of time is one number."""
    text = re.sub(r"\b\d+ (?:d|h|min|s)(?: \d+ (?:h|min|s))?\b", "0", text)
    return sorted(re.sub(r"[ -]+", " ", re.sub(r"\d+", "0", line)) for line in text.splitlines())


def is_run(block):
    """The entry of NOT_RUN that holds for the block is used."""
    for words in NOT_RUN:
        if block.lstrip("\n").startswith(words):
            unused.discard(words)
            return False
    return True


unused = set(NOT_RUN)


def made(name):
    return MADE.get(name, "" if name.endswith(".md") else JOBS)


class Script:
    """What the examples of one text are as a script of bash."""

    def __init__(self, made):
        self.lines = ["set -eu", "exec 2>&1", "shopt -u checkwinsize", "touch log", "up=0 server=", "{\n:\n" + made + "} >/dev/null"]
        self.blocks, self.shown = 0, {}

    def add(self, text):
        self.blocks += 1
        self.lines += [f"printf '\\001%s\\n' {self.blocks}", text]

    def silent(self, text):
        self.lines.append("{\n" + text + "} >/dev/null")

    def command(self, text):
        """Servers are waited for, workers end, and what goes on forever is ended."""
        text = re.sub(r"\bbuild/bin/", "", text).replace("build/examples", os.path.join(BUILD, "examples"))
        # Those that share a store go on side by side.
        text = re.sub(r"^(weekwheeld .*(?:\\\n.*)?&(?: *#.*)?\n(?:export .*\n)?)",
                      lambda found: ("" if "redis://" in found[1] else ALONE) + found[1] + UP, text, flags=re.M)
        text = re.sub(r"^(weekwheel-sessiond .*&(?: *#.*)?\n)", r"\1" + UP.replace("server", "sessions"), text, flags=re.M)
        text = re.sub(r"\bweekwheel work\b(?!.*--drain)(?!.*&(?: *#.*)?$)", "weekwheel work --drain", text, flags=re.M)
        text = re.sub(r"^(weekwheel import .*--follow)$", lambda found: found[1] + " &\n" + TOLD_TO_END, text, flags=re.M)
        text = text.replace("put 0 3 60", "put 0 0 60")
        self.add(text)


def paper(text):
    """The blocks of a page. What a program in C prints belongs to it."""
    script, former = [], None
    for part in PART.finditer(text):
        if part["test"]:
            script.append(("test", part["test"]))
            continue
        block = re.sub("^  ", "", part["text"], flags=re.M) if part[2] else part["text"]
        if part["language"] == "" and former in OTHERS:
            former = None
            continue
        former = part["language"]
        if former not in OTHERS and is_run(block):
            script.append((former, block))
    return script


def manual(text):
    """The examples of a manual."""
    text = re.search(r"^\.SH EXAMPLES?\n(.*?)(?=^\.SH|\Z)", text + "\n", re.M | re.S)
    for old, new in ((r"\-", "-"), (r"\(aq", "'"), (r"\e", "\\"), (r"\&", "")):
        text = text.replace(old, new) if isinstance(text, str) else text[1].replace(old, new)
    return [("sh", block) for block in re.findall(r"^\.nf\n(.*?)^\.fi$", text, re.M | re.S) if is_run(block)]


def help_of(*command):
    """The examples of a program's help. All of them are lines."""
    text = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    found = re.search(r"^Examples?\b[^\n]*:\n((?:  .*\n)+)", text, re.M)
    return [("sh", re.sub("^  ", "", line, flags=re.M)) for line in found[1].splitlines(True) if is_run(line.strip())] if found else []


def commands():
    """weekwheel's commands, of which its help has a line each."""
    text = subprocess.run([WEEKWHEEL, "--help"], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    return [name for name in re.findall(r"^  ([a-z]+)  ", text, re.M) if name != "help"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def cluster_port():
    """A node of a cluster also takes the port 10,000 above: below those that connections get, and free."""
    while True:
        port = free_port()
        with socket.socket() as probe, contextlib.suppress(OSError):
            if port < 22768:
                probe.bind(("127.0.0.1", port + 10000))
                return port


class Follower(Case):
    """Follows a text in a scratch folder, as a reader would. A subclass may have more environment, programs and ports."""
    more, programs, ports = {}, PROGRAMS, ()

    def follow(self, name, parts):
        need_server()
        text = "\n".join(part for _, part in parts) + made(name)
        for program in ("openssl", "curl", "sqlite3", "jq", "beanstalkd", "redis-cli", "node"):
            if re.search(rf"\b{program} ", text):
                need_program(program)
        ports = {"6380": free_port(), "11300": free_port(), "11301": free_port(), "6379": free_port(), "6381": free_port(),
                 "6382": free_port(), "6383": free_port(), "6384": free_port(), "11310": free_port(), "11311": free_port(),
                 **{str(port): cluster_port() for port in range(6371, 6377)}, **{port: free_port() for port in self.ports}}
        with contextlib.ExitStack() as stack:
            if re.search("redis://|redis-cli|sidekiq://", text):
                ports["6379"] = stack.enter_context(Redis()).port
            if re.search(r"^(createdb|psql) ", text, re.M):
                postgres = stack.enter_context(Postgres())
                self.more = {**self.more, "PGHOST": postgres.folder, "PGUSER": "postgres"}
                ports = {**ports, "createdb ": postgres.bin + "/createdb "}
            self.run_parts(name, parts, ports)

    def run_parts(self, name, parts, ports):
        script = Script(self.replace(made(name), ports))
        for kind, text in parts:
            text = self.replace(text, ports)
            if kind == "test":
                script.silent(text)
            elif kind == "sh":
                script.command(text)
            elif kind == "python":
                script.add(f"{sys.executable} - <<'PYTHON'\n{text}PYTHON")
            elif kind == "js":
                script.add(f"if command -v node; then node --check --input-type=module <<'MODULE'\n{text}MODULE\nfi")
            elif kind == "":
                script.shown[script.blocks] = text
            else:
                self.fail(f"{name}: how does a block of {kind} run?")
        self.make_programs(ports)
        said = self.run_script(name, "\n".join(script.lines), ports)
        found = dict(part.split("\n", 1) for part in said.split("\1")[1:])
        equal(len(found), script.blocks, said)
        for number, text in script.shown.items():
            equal(alike(found[str(number)]), alike(text), f"{name}, block {number}")

    def make_programs(self, ports):
        os.makedirs("bin/scripts")
        os.mkdir("build")
        for program, lines in self.programs.items():
            if program in ("send", "backup"):
                path = program
            else:
                path = os.path.join("bin", program)
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + self.replace(lines, ports) + "\n")
            os.chmod(path, 0o755)

    def replace(self, text, ports):
        for old, new in (("jobs.example.org", "localhost"), ("0.0.0.0:", "127.0.0.1:"), ("queue.example:", "127.0.0.1:"),
                         ("/var/lib/weekwheeld/jobs", "jobs"), ("/backup/", "backup-"),
                         ("redis://127.0.0.1/", "redis://127.0.0.1:6379/")):
            text = text.replace(old, new)
        # All at once: 11300 may become 16379.
        return re.sub("|".join(ports), lambda found: str(ports[found[0]]), text)

    def run_script(self, name, script, ports):
        """All that it printed. What it left running is ended with it."""
        with open("script", "w", encoding="utf-8") as file:
            file.write(script + "\n")
        started = subprocess.Popen(["bash", "script"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   stdin=subprocess.DEVNULL, start_new_session=True,
                                   env=environment(PATH=os.path.abspath("bin") + ":" + os.environ["PATH"], TZ="UTC",
                                                   **self.more, PAPER=os.path.join(ROOT, "docs", name), WEEKWHEEL_SERVER=f"127.0.0.1:{ports['11300']}"))
        try:
            # Servers have its output, too, so that does not end before them.
            status = started.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            status = "it does not end"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            said = started.communicate()[0]
        equal(status, 0, said + read("log"))
        return said


class Examples(Follower):
    def test_who_pastes_a_block_asks_no_server_that_does_not_listen_yet(self):
        """Here Script waits for servers; clients of Redis do not."""
        for path in PAPERS:
            for _, block in paper(read(path)):
                for behind in re.findall(r"^\S*weekwheel-sessiond .*&(?: *#.*)?\n(.+)", block, re.M):
                    equal(behind[:28], "until redis-cli -p 6380 ping", path)

    def test_all_that_does_not_run_is_somewhere(self):
        """An entry of NOT_RUN that no example needs any more would hide a new one."""
        for path in PAPERS:
            paper(read(path))
        for path in MANUALS:
            manual(read(path))
        for command in HELPS:
            help_of(*command)
        equal(unused, set())


PAPERS = [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")))]
MANUALS = sorted(glob.glob(os.path.join(ROOT, "man", "*.[17]")))
HELPS = [[program] for program in (os.path.join(BUILD, "bin", name) for name in ("weekwheeld", "weekwheel-sessiond", "weekwheel-expirer",
                                                                          "weekwheel-bench"))
         if os.access(program, os.X_OK)]
if os.access(WEEKWHEEL, os.X_OK):
    HELPS += [[WEEKWHEEL, command] for command in commands()] + [[WEEKWHEEL, "import", "--from", "URL"]]


def add_test(name, parts):
    """A test for each text that has examples."""
    setattr(Examples, "test_" + re.sub(r"\W+", "_", name), lambda self: self.follow(name, parts()))


def add_tests():
    for path in PAPERS:
        # test_recipes follows those section by section.
        if paper(read(path)) and os.path.basename(path) != "recipes.md":
            add_test(os.path.basename(path), lambda path=path: paper(read(path)))
    for path in MANUALS:
        add_test(os.path.basename(path), lambda path=path: manual(read(path)))
    for command in HELPS:
        add_test(" ".join([os.path.basename(command[0]), *command[1:]]), lambda command=command: help_of(*command))


if __name__ == "__main__":
    add_tests()
    main()
