"""A PostgreSQL of a test's own, and sessions on it by libpq.

The server lies in a temporary folder, listens on a socket in it, trusts everybody there, and is gone with the `with` block.
Root may not run it, so it then runs as the user postgres, which Debian's package makes.
"""
import contextlib
import ctypes
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import PATIENCE, WEEKWHEEL, environment, run, until

PACKAGE = "postgresql-15"


def folder_of_programs():
    """Where the programs of PostgreSQL are; Debian has only wrappers of some in the path."""
    found = glob.glob("/usr/lib/postgresql/15/bin") or [os.path.dirname(shutil.which("initdb") or "")]
    if not os.access(os.path.join(found[0], "postgres"), os.X_OK):
        raise unittest.SkipTest(f"there is no PostgreSQL: Debian has it in the package {PACKAGE}")
    return found[0]


def as_user():
    """Arguments of subprocess with which a program runs as a user who may run a server."""
    if os.geteuid():
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        raise unittest.SkipTest(f"there is no user postgres: Debian makes it with the package {PACKAGE}") from None
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


# ---- The server -------------------------------------------------------------------------------------------------

class Postgres:
    """A server with the database postgres, whose superuser is postgres. `settings` are names and values of its
    configuration. Files need no sync, because the machine goes on."""

    def __init__(self, **settings):
        self.bin, self.user = folder_of_programs(), as_user()
        self.folder = tempfile.mkdtemp(prefix="pg")
        if self.user:
            os.chown(self.folder, self.user["user"], self.user["group"])
        self.data = os.path.join(self.folder, "data")
        self.settings = {"fsync": "off", "listen_addresses": "", "unix_socket_directories": self.folder,
                         "max_connections": 60, "max_prepared_transactions": 10, "log_checkpoints": "off", **settings}
        self.process = None
        try:
            self.program("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8",
                         "--no-sync", "--no-instructions")
            self.start()
        except BaseException:
            self.remove()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def program(self, name, *arguments):
        """Run a program of PostgreSQL to its end, as the server's user. Return what it writes."""
        done = subprocess.run([os.path.join(self.bin, name), *arguments], capture_output=True, text=True, check=False,
                              timeout=PATIENCE, stdin=subprocess.DEVNULL, cwd=self.folder, env=self.environment(),
                              **self.user)
        assert done.returncode == 0, f"{name} {arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def environment(self):
        return environment(PGHOST=self.folder, PGUSER="postgres", PGDATABASE="postgres", LC_ALL="C.UTF-8")

    def start(self):
        options = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.log_name, "ab") as log:
            self.process = subprocess.Popen([os.path.join(self.bin, "postgres"), "-D", self.data, *options], stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder, **self.user)
        until(self.is_up, "PostgreSQL answers")

    @property
    def log_name(self):
        return os.path.join(self.folder, "log")

    def log(self):
        with open(self.log_name, encoding="utf-8", errors="replace") as log:
            return log.read()

    def is_up(self):
        assert self.process.poll() is None, self.log()
        try:
            Session(self.url()).close()
        except SqlError:
            return False
        return True

    def stop(self, number=signal.SIGINT):
        """SIGINT ends all sessions; SIGQUIT is a crash, after which the next start replays the log."""
        self.process.send_signal(number)
        self.process.wait(PATIENCE)

    def kill(self):
        """As by kill -9 of all its processes. What was not written to a file is gone."""
        self.stop(signal.SIGQUIT)

    def kill_all(self):
        """kill -9 of each of its processes."""
        with open("/proc/{0}/task/{0}/children".format(self.process.pid), encoding="utf-8") as file:
            children = [int(pid) for pid in file.read().split()]
        for pid in (self.process.pid, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children), "the processes are gone")

    def restart(self):
        self.stop()
        self.start()

    def remove(self):
        if self.process and self.process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, user="postgres", database="postgres"):
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def session(self, user="postgres", database="postgres"):
        return Session(self.url(user, database))

    def psql(self, sql, user="postgres", database="postgres"):
        """The rows of one statement in a session of its own."""
        with self.session(user, database) as session:
            return session.rows(sql)

    def configure(self, **settings):
        """Set these, and let all sessions see them."""
        for name, value in settings.items():
            self.psql(f"ALTER SYSTEM SET {name} = '{value}'")
        self.psql("SELECT pg_reload_conf()")

    def set_up(self, user="postgres", database="postgres"):
        """Make weekwheel's tables and functions."""
        return run(0, WEEKWHEEL, "postgres", "setup", self.url(user, database))


class Replica(Postgres):
    """A standby, which has synced what the primary acknowledges."""

    def __init__(self, primary, **settings):
        self.primary = primary
        super().__init__(**settings)
        primary.configure(synchronous_standby_names="*")
        until(lambda: primary.psql("SELECT sync_state FROM pg_stat_replication") == [("sync",)], "the standby follows")

    def program(self, name, *arguments):
        if name != "initdb":
            return super().program(name, *arguments)
        return super().program("pg_basebackup", "-h", self.primary.folder, "-U", "postgres", "-D", self.data, "-R", "-c", "fast",
                               "--no-sync")

    def promote(self):
        self.program("pg_ctl", "promote", "-D", self.data)


# ---- Sessions ---------------------------------------------------------------------------------------------------

class SqlError(Exception):
    """An error of PostgreSQL by its parts; state "" is the connection's."""

    def __init__(self, state, message, detail="", hint=""):
        super().__init__(f"{state} {message} {detail} {hint}".strip())
        self.state, self.message, self.detail, self.hint = state, message, detail, hint


class Notification(ctypes.Structure):
    """The first members of PGnotify, which libpq promises."""
    _fields_ = [("relname", ctypes.c_char_p), ("pid", ctypes.c_int), ("extra", ctypes.c_char_p)]


def load():
    try:
        library = ctypes.CDLL("libpq.so.5")
    except OSError:
        raise unittest.SkipTest("there is no libpq: Debian has it in the package libpq5") from None
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, *takes in (
            ("PQconnectdb", pointer, text), ("PQstatus", number, pointer), ("PQerrorMessage", text, pointer),
            ("PQfinish", None, pointer), ("PQclear", None, pointer), ("PQresultStatus", number, pointer),
            ("PQexecParams", pointer, pointer, text, number, pointer, pointer, pointer, pointer, number),
            ("PQexec", pointer, pointer, text), ("PQresultErrorField", text, pointer, number), ("PQntuples", number, pointer),
            ("PQnfields", number, pointer), ("PQgetvalue", text, pointer, number, number),
            ("PQgetisnull", number, pointer, number, number), ("PQconsumeInput", number, pointer),
            ("PQnotifies", ctypes.POINTER(Notification), pointer), ("PQfreemem", None, pointer),
            ("PQbackendPID", number, pointer), ("PQsetNoticeProcessor", pointer, pointer, pointer, pointer)):
        function = getattr(library, name)
        function.restype, function.argtypes = result, takes
    return library


PROCESSOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
EMPTY, COMMAND, TUPLES = 0, 1, 2


class Session:
    """A connection. One thread at a time uses it; calls of several sessions run side by side in threads."""

    def __init__(self, url):
        self.pq = load()
        self.connection = self.pq.PQconnectdb(url.encode())
        self.notices = []
        self.processor = PROCESSOR(lambda _, text: self.notices.append(text.decode()))
        self.pq.PQsetNoticeProcessor(self.connection, ctypes.cast(self.processor, ctypes.c_void_p), None)
        if self.pq.PQstatus(self.connection):
            message = self.pq.PQerrorMessage(self.connection).decode()
            self.close()
            raise SqlError("", message)
        self.pid = self.pq.PQbackendPID(self.connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.connection:
            self.pq.PQfinish(self.connection)
            self.connection = None

    def rows(self, sql, *parameters):
        """The rows of a statement, whose values are text or None. Without parameters it may be several statements; the
        rows are those of the last."""
        if parameters:
            values = (ctypes.c_char_p * len(parameters))(
                *(None if value is None else str(value).encode() for value in parameters))
            result = self.pq.PQexecParams(self.connection, sql.encode(), len(parameters), None, values, None, None, 0)
        else:
            result = self.pq.PQexec(self.connection, sql.encode())
        try:
            return self.take(result)
        finally:
            self.pq.PQclear(result)

    def take(self, result):
        if self.pq.PQresultStatus(result) not in (EMPTY, COMMAND, TUPLES):
            parts = [(self.pq.PQresultErrorField(result, ord(part)) or b"").decode() for part in "CMDH"]
            raise SqlError(parts[0], parts[1] or self.pq.PQerrorMessage(self.connection).decode(), *parts[2:])
        return [tuple(None if self.pq.PQgetisnull(result, row, column) else self.pq.PQgetvalue(result, row, column).decode()
                      for column in range(self.pq.PQnfields(result))) for row in range(self.pq.PQntuples(result))]

    def value(self, sql, *parameters):
        return self.rows(sql, *parameters)[0][0]

    def notified(self):
        """How many notifications have come since the last call."""
        self.rows("SELECT 1")
        self.pq.PQconsumeInput(self.connection)
        count = 0
        while notification := self.pq.PQnotifies(self.connection):
            self.pq.PQfreemem(notification)
            count += 1
        return count
