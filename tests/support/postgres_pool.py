"""A pgbouncer in transaction mode before a test's PostgreSQL: a client has a session for the length of a transaction, and the
next transaction, of this client or another, may get another session."""
import os
import shutil
import socket
import subprocess
import tempfile
import unittest

from harness import PATIENCE, until

PACKAGE = "pgbouncer"


class Pool:
    """It has so many sessions, of one user and database."""

    def __init__(self, postgres, sessions, user="postgres", database="postgres"):
        program = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if not program:
            raise unittest.SkipTest(f"there is no pgbouncer: Debian has it in the package {PACKAGE}")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.folder = tempfile.mkdtemp(prefix="pgbouncer")
        with open(f"{self.folder}/ini", "w", encoding="ascii") as file:
            file.write(f"[databases]\n{database} = host={postgres.folder} dbname={database} user={user}\n"
                       f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
                       f"auth_type = any\npool_mode = transaction\ndefault_pool_size = {sessions}\nmax_client_conn = 1000\n"
                       "ignore_startup_parameters = extra_float_digits,options,application_name\n")
        if postgres.user:
            for path in self.folder, f"{self.folder}/ini":
                os.chown(path, postgres.user["user"], postgres.user["group"])
        with open(f"{self.folder}/log", "wb") as log:
            self.process = subprocess.Popen([program, f"{self.folder}/ini"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.folder, **postgres.user)
        self.url = f"postgresql://{user}@127.0.0.1:{self.port}/{database}?sslmode=disable"
        until(self.is_up, "pgbouncer listens")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(PATIENCE)
        shutil.rmtree(self.folder)

    def is_up(self):
        if self.process.poll() is not None:
            with open(f"{self.folder}/log", encoding="utf-8") as log:
                raise AssertionError(f"pgbouncer has ended: {log.read()}")
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0
