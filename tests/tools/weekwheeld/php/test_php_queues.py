#!/usr/bin/env python3
"""Laravel's queue and Symfony's Messenger, as Debian has them, with their own drivers of beanstalkd: docs/from-laravel.md."""
# tier: long, no-sanitizers (other tests send the server as much)
import contextlib
import os
import re
import signal
import subprocess

import laravel
from harness import PATIENCE, Case, Server, check, equal, free_port, main, run, until

HERE = os.path.dirname(os.path.abspath(__file__))


def ran():
    with contextlib.suppress(FileNotFoundError), open("ran", encoding="utf-8") as file:
        return file.read().splitlines()
    return []


class Queue:
    """What a framework's queue promises, whatever the framework."""
    script = ""

    def setUp(self):
        super().setUp()
        self.servers = []
        self.port = free_port()
        self.start()
        self.addCleanup(lambda: [server.stop() for server in self.servers])

    def start(self):
        self.servers.append(server := Server("--data", os.path.join(self.folder, "jobs"), "--listen", f"127.0.0.1:{self.port}"))
        while f"listening on 127.0.0.1:{self.port}" not in server.said:
            server.said += server.process.stderr.readline()

    def php(self, *words):
        return laravel.php(os.path.join(HERE, self.script), *words, dsn=self.dsn(), stderr=subprocess.STDOUT, stdout=subprocess.PIPE)

    def dsn(self):
        """That of the page, on the port of this test."""
        with open(laravel.PAGE, encoding="utf-8") as file:
            return re.search(r"^MESSENGER_TRANSPORT_DSN=(.*)", file.read(), re.M)[1].replace("11300", str(self.port))

    def push(self, *words):
        with self.php("push", *words) as php:
            said = php.communicate(timeout=PATIENCE)[0]
        equal(php.returncode, 0, said)

    @contextlib.contextmanager
    def worker(self, *words):
        """A worker that runs meanwhile."""
        with open("log", "a", encoding="utf-8") as log, laravel.php(os.path.join(HERE, self.script), "work", *words, dsn=self.dsn(), stdout=log,
                                                                     stderr=log) as php:
            try:
                yield php
            finally:
                php.kill()

    def until_ran(self, *lines):
        try:
            until(lambda: ran() == list(lines), f"{lines}")
        except AssertionError as error:
            with open("log", encoding="utf-8") as log:
                raise AssertionError(f"{error}: {ran()}\n{log.read()}") from error

    def jobs(self):
        with self.servers[-1].client() as client:
            return client.all_jobs()

    def until_no_job(self):
        until(lambda: self.jobs() == [], "all jobs are done")

    def test_a_job_runs_now_and_another_one_later(self):
        self.push("eve", "well", "3600")
        self.push("bob", "well", "1")
        self.push("ada", "well")
        equal([(job["state"], job["delay"]) for job in self.jobs()][:1], [("delayed", 3600)])
        with self.worker():
            until(lambda: sorted(ran()) == self.lines("ada", "bob"), "both ran")  # in any order, if the pushes were slow
            until(lambda: [job["id"] for job in self.jobs()] == [1], "both are deleted")

    def test_a_failed_job_comes_again(self):
        self.push("ada", "fail once")
        with self.worker():
            self.until_ran(*self.lines("ada", "ada"))
            self.until_no_job()

    def test_a_killed_worker_gives_its_job_back(self):
        self.push("ada", "hang")
        with self.worker() as php:
            self.until_ran(*self.lines("ada"))
            php.kill()
        with self.worker():
            self.until_ran(*self.lines("ada", "ada"))
            self.until_no_job()

    def test_a_signal_ends_a_worker_after_its_job(self):
        self.push("ada", "wait")
        self.push("bob")
        with self.worker() as php:
            self.until_ran(*self.lines("ada"))
            php.send_signal(signal.SIGTERM)
            with open("go on", "w", encoding="utf-8"):
                pass
            php.wait(PATIENCE)
        equal((ran(), [job["state"] for job in self.jobs()]), (self.lines("ada"), ["ready"]))

    def test_a_worker_goes_on_after_the_server_was_killed(self):
        self.push("bob", "well", "3600")
        with self.worker() as php:
            with self.servers[-1].client() as client:
                client.until_waiting()
            self.servers.pop().stop(signal.SIGKILL)
            self.start()
            self.push("ada")
            # If the server is not back at once, a worker may end itself, and its supervisor starts another one.
            until(lambda: ran() or php.poll() is not None, "it goes on or ends")
            with contextlib.nullcontext() if php.poll() is None else self.worker():
                self.until_ran(*self.lines("ada"))
                until(lambda: len(self.jobs()) == 1, "it is deleted")
        equal([job["state"] for job in self.jobs()], ["delayed"])


class Laravel(Queue, Case):
    script = "laravel.php"

    def setUp(self):
        laravel.need_laravel()
        super().setUp()
        laravel.configure(_11300=self.port)

    @staticmethod
    def lines(*names):
        return [f"{name} {names[:number].count(name) + 1}" for number, name in enumerate(names)]

    def worker(self, *words):
        return super().worker("--tries=2", "--sleep=0", *words)

    def test_a_job_that_is_released_comes_again(self):
        self.push("ada", "release")
        with self.worker():
            self.until_ran("ada 1", "ada 2")
            self.until_no_job()

    def test_the_last_attempt_fails(self):
        self.push("ada", "fail")
        with self.worker():
            self.until_ran("ada 1", "ada 2", "ada failed: no way")
            self.until_no_job()

    def test_a_buried_job_waits_to_be_kicked(self):
        self.push("ada", "bury")
        with self.worker():
            until(lambda: [job["state"] for job in self.jobs()] == ["buried"], "it is buried")
            self.servers[-1].program.run(0, "kick", "--tube", "default", "--all")
            self.until_ran("ada 1", "ada 2")
            self.until_no_job()

    def test_what_waits_is_seen_and_taken_back(self):
        self.push("ada", "well", "3600")
        with self.php("size") as php:
            equal(php.communicate(timeout=PATIENCE)[0], "0\n")
        program = self.servers[-1].program
        check("Remind" in program.run(0, "peek", "1").out, "the job names its class")
        program.run(0, "cancel", "1")
        equal(self.jobs(), [])


class Symfony(Queue, Case):
    script = "symfony.php"

    def setUp(self):
        laravel.need_packages(php_symfony_messenger="Symfony/Component/Messenger/autoload.php", php_pda_pheanstalk="Pheanstalk/autoload.php",
                              php_symfony_beanstalkd_messenger="Symfony/Component/Messenger/Bridge/Beanstalkd/autoload.php",
                              php_symfony_event_dispatcher="Symfony/Component/EventDispatcher/autoload.php")
        super().setUp()

    @staticmethod
    def lines(*names):
        return list(names)

    def test_the_last_attempt_goes_to_the_failure_transport(self):
        self.push("ada", "fail")
        with self.worker():
            self.until_ran("ada", "ada")
            until(lambda: [job["tube"] for job in self.jobs()] == ["failed"], "it failed")


if __name__ == "__main__":
    main()
