"""The client for threads: one connection, one command at a time, and its worker."""
from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import ssl
import threading
import weakref
from types import TracebackType
from typing import IO, Any, Callable, Concatenate, Iterable, ParamSpec, TypeVar, overload

from .._handle import Handle
from .._time import Seconds, nanoseconds
from . import verbs
from .address import Address, keep_alive, token_of
from .errors import JobsError, LeaseLost
from .protocol import Answer, Body, Dialogue, Object, Steps, block_size, introduce, reserve, unexpected

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def _verb(steps: Callable[Concatenate[Dialogue, Arguments], Steps[Result]]
          ) -> Callable[Concatenate[Client, Arguments], Result]:
    """Make a method of a verb."""
    @functools.wraps(steps)
    def method(self: Client, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        return self._carry_out(steps(self._dialogue, *arguments, **options))
    return method


class Reserved(Handle):
    """What a client has reserved."""

    def __init__(self, client: Any, id: int, body: bytes, headers: dict[str, str]) -> None:
        self.id = id
        self.body = body
        self.headers = headers
        """Names and values that it was put with, the names in lower case."""
        self.client = client
        self.is_finished = False
        """It was deleted, released or buried."""
        self._connection: int = client._connections

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Job(Reserved):
    """A job that its client has reserved. In a `with` statement it is deleted at the end, and released, with the
    exception as the reason, if the block raises one."""

    client: Client

    def delete(self) -> None:
        """The job is done."""
        self._do(verbs.delete(self.client._dialogue, self.id), True)

    def release(self, *, delay: Seconds | None = None, priority: int | None = None, error: str | None = None) -> bool:
        """Give the job back, for after `delay` (None: its own backoff), with a reason. Return True, or False if that was
        its last attempt and it is buried."""
        return self._do(verbs.release(self.client._dialogue, self.id, delay=delay, priority=priority, error=error), True)

    def _failed(self, error: str, attempts: int) -> None:
        self._do(verbs.failed(self.client._dialogue, self.id, error, attempts), True)

    def bury(self, *, priority: int | None = None, error: str | None = None) -> None:
        """Put the job aside, with a reason, until somebody kicks it."""
        self._do(verbs.bury(self.client._dialogue, self.id, priority=priority, error=error), True)

    def touch(self) -> None:
        """Begin the time to run anew."""
        self._do(verbs.touch(self.client._dialogue, self.id))

    def report(self, text: Body) -> None:
        """Say something of this run, which its history keeps: at most 4096 bytes."""
        self._do(verbs.report(self.client._dialogue, self.id, text))

    def stats(self) -> Object:
        """The job's numbers."""
        return self._do(verbs.stats_job(self.client._dialogue, self.id))

    def _do(self, steps: Steps[Result], finishes: bool = False) -> Result:
        result = self.client._carry_out(steps, self._connection)
        self.is_finished = self.is_finished or finishes
        return result

    def __enter__(self) -> Job:
        return self

    def __exit__(self, _type: type[BaseException] | None, value: BaseException | None,
                 _traceback: TracebackType | None) -> None:
        if self.is_finished:
            return
        if value is None:
            self.delete()
            return
        try:
            self.release(error=describe(value))
        except JobsError as error:  # the block's own exception matters more
            value.add_note(f"job {self.id} was not released: {error}")


def describe(error: BaseException) -> str:
    """An exception as a reason."""
    return f"{type(error).__name__}: {error}"


class Client(Handle):
    """A client of weekwheeld, or of beanstalkd without weekwheeld's own verbs.

    address: HOST:PORT, [IPV6]:PORT, tls:HOST:PORT or unix:PATH; None: $WEEKWHEEL_SERVER or 127.0.0.1:11300.
    tube: of the commands that name none. token: for a server with --auth-file; None: $WEEKWHEEL_TOKEN
    names. tls: a context instead of $WEEKWHEEL_TLS_CA, _CERT and _KEY. timeout: for a connection and for an answer, in
    seconds. code: it reserves only jobs up to this code, or without one; None: all.

    It connects with the first command. A connection that breaks raises ConnectionLost, and the next command connects
    again; what was reserved is lost then. Threads may share a client, and wait for each other: one that waits for a job
    needs its own. After a fork the child connects anew.
    """

    def __init__(self, address: str | None = None, *, tube: str = "default", token: str | None = None,
                 tls: ssl.SSLContext | None = None, timeout: float = 10.0, code: int | None = None) -> None:
        self.address = Address.of(address)
        self.timeout = timeout
        self._dialogue = Dialogue(tube, code)
        self._token = token_of(token)
        self._tls = tls
        self._lock = threading.RLock()
        self._socket: socket.socket | None = None
        self._file: IO[bytes] | None = None
        self._connections = 0
        self._is_busy = False
        _clients.add(self)

    @overload
    def reserve(self, timeout: None = None, *, tubes: Iterable[str] | None = None) -> Job: ...

    @overload
    def reserve(self, timeout: Seconds, *, tubes: Iterable[str] | None = None) -> Job | None: ...

    def reserve(self, timeout: Seconds | None = None, *, tubes: Iterable[str] | None = None) -> Job | None:
        """Take the next job of the tubes (None: of the client's own). Wait for one so long, rounded up to a second, or
        for ever. Return None if there was none. Raises DeadlineSoon if a job that is already reserved runs out of
        time."""
        wait = None if timeout is None else nanoseconds(timeout) / 1e9 + 1
        with self._lock:
            found = self._carry_out(reserve(self._dialogue, timeout, tubes), wait=wait)
            return Job(self, *found) if found else None

    def reserve_job(self, id: int) -> Job:
        """Take the job of an id, whatever its state and its limits. Raises NotFound if there is none, or if it is
        reserved."""
        with self._lock:
            return Job(self, *self._carry_out(verbs.reserve_job(self._dialogue, id)))

    put = _verb(verbs.put)
    delete = _verb(verbs.delete)
    delete_key = _verb(verbs.delete_key)
    move = _verb(verbs.move)
    move_key = _verb(verbs.move_key)
    kick = _verb(verbs.kick)
    kick_job = _verb(verbs.kick_job)
    peek = _verb(verbs.peek)
    peek_key = _verb(verbs.peek_key)
    peek_next = _verb(verbs.peek_next)
    stats = _verb(verbs.stats)
    stats_job = _verb(verbs.stats_job)
    stats_key = _verb(verbs.stats_key)
    stats_tube = _verb(verbs.stats_tube)
    tubes = _verb(verbs.tubes)
    jobs = _verb(verbs.jobs)
    forecast = _verb(verbs.forecast)
    history = _verb(verbs.history)
    pause = _verb(verbs.pause)
    limit = _verb(verbs.limit)
    limits = _verb(verbs.limits)
    put_schedule = _verb(verbs.put_schedule)
    delete_schedule = _verb(verbs.delete_schedule)
    pause_schedule = _verb(verbs.pause_schedule)
    resume_schedule = _verb(verbs.resume_schedule)
    run_schedule = _verb(verbs.run_schedule)
    schedules = _verb(verbs.schedules)
    advance = _verb(verbs.advance)

    # ---- The connection

    def close(self) -> None:
        """Close the connection. What is reserved is ready again. The next command connects anew. A command that waits for
        its answer, in another thread or below a handler of a signal, ends with ConnectionLost."""
        while not self._lock.acquire(timeout=0.05):
            self._interrupt()  # again and again: a command may still be connecting
        try:
            if self._is_busy:
                self._interrupt()
            else:
                self._hang_up()
        finally:
            self._lock.release()

    def _interrupt(self) -> None:
        """Let the command that is under way come to its end."""
        connection = self._socket
        if connection is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)  # without a goodbye of TLS, which has a state

    def _hang_up(self) -> None:
        with self._lock:
            file, connection, self._file, self._socket = self._file, self._socket, None, None
            if file:
                file.close()
            if connection:
                connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, _type: type[BaseException] | None, _value: BaseException | None,
                 _traceback: TracebackType | None) -> None:
        self.close()

    def _connect(self) -> None:
        address = self.address
        context = address.context(self._tls)
        connection = None
        try:
            if address.path:
                connection = socket.socket(socket.AF_UNIX)
                connection.settimeout(self.timeout)
                connection.connect(address.path)
            else:
                connection = socket.create_connection((address.host, address.port), self.timeout)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                keep_alive(connection)
            if context:
                connection = context.wrap_socket(connection, server_hostname=address.host)
        except OSError as error:
            if connection:
                connection.close()
            raise address.unreachable(error) from error
        self._socket, self._file = connection, connection.makefile("rb")
        self._connections += 1
        self._dialogue.begin()
        if self._token:
            try:
                self._exchange(introduce(self._token), self.timeout + 10)
            except JobsError:
                self._hang_up()
                raise

    def _carry_out(self, steps: Steps[Result], lease: int | None = None, wait: float | None = 0) -> Result:
        """Run the steps of a verb. `lease` is the connection that has to be there still."""
        with self._lock:
            if self._is_busy:
                raise RuntimeError("this thread waits for the answer to a command of this client: in a handler of a signal use "
                                   "another client")
            if lease is not None and (self._file is None or lease != self._connections):
                raise LeaseLost("the connection that reserved the job is closed: the server gives it to another worker")
            try:
                self._is_busy = True
                if self._file is None:
                    self._connect()
                return self._exchange(steps, None if wait is None else self.timeout + wait)
            finally:
                self._is_busy = False

    def _forget(self) -> None:
        """The connection is the parent's: a goodbye of TLS would end it there. So is a thread that has the lock."""
        self._lock, self._is_busy = threading.RLock(), False
        if self._socket:
            os.close(self._socket.detach())
        self._socket = self._file = None

    def _exchange(self, steps: Steps[Result], timeout: float | None) -> Result:
        assert self._socket and self._file
        try:
            lines = next(steps)
            while True:
                self._socket.settimeout(timeout)
                self._socket.sendall(b"".join(lines))
                lines = steps.send([self._answer() for _ in lines])
        except StopIteration as ended:
            result: Result = ended.value
            return result
        except (OSError, EOFError) as error:
            self._hang_up()
            raise self.address.broken(error) from error
        except (JobsError, ValueError, TypeError):
            raise  # the connection is as it was
        except BaseException:
            self._hang_up()  # an answer may still come
            raise

    def _answer(self) -> Answer:
        assert self._file
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the server closed it")
        text = line[:-2].decode(errors="replace")
        try:
            size = block_size(text)
        except ValueError:
            self._hang_up()
            raise unexpected(text) from None
        if size is None:
            return Answer(text)
        block = self._file.read(size + 2)
        if len(block) != size + 2:
            raise EOFError("the server closed it")
        return Answer(text, block[:-2])


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _forget_all() -> None:
    for client in list(_clients):
        client._forget()


os.register_at_fork(after_in_child=_forget_all)
