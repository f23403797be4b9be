"""The client for asyncio, and its worker."""
from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import socket
import ssl
from types import TracebackType
from typing import Any, Callable, Concatenate, Coroutine, Iterable, ParamSpec, TypeVar, overload

from .._handle import Handle
from .._time import Seconds, nanoseconds
from . import verbs
from .address import Address, keep_alive, token_of
from .client import Reserved, describe
from .errors import Bury, ConnectionLost, DeadlineSoon, Full, JobsError, LeaseLost, ServerFailed
from .protocol import Answer, Body, Dialogue, Object, Steps, block_size, introduce, reserve, unexpected
from .worker import FIRST_PAUSE, LONGEST_PAUSE, logger

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
# Bytes of a line.
LINE_MAX = 1 << 16


def _verb(steps: Callable[Concatenate[Dialogue, Arguments], Steps[Result]]
          ) -> Callable[Concatenate[AsyncClient, Arguments], Coroutine[Any, Any, Result]]:
    """Make a method of a verb."""
    @functools.wraps(steps)
    async def method(self: AsyncClient, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        return await self._carry_out(steps(self._dialogue, *arguments, **options))
    return method


class AsyncJob(Reserved):
    """A job that its client has reserved, as Job is."""

    client: AsyncClient

    async def delete(self) -> None:
        """The job is done."""
        await self._do(verbs.delete(self.client._dialogue, self.id), True)

    async def release(self, *, delay: Seconds | None = None, priority: int | None = None,
                      error: str | None = None) -> bool:
        """Give the job back, as Job.release does."""
        return await self._do(
            verbs.release(self.client._dialogue, self.id, delay=delay, priority=priority, error=error), True)

    async def _failed(self, error: str, attempts: int) -> None:
        await self._do(verbs.failed(self.client._dialogue, self.id, error, attempts), True)

    async def bury(self, *, priority: int | None = None, error: str | None = None) -> None:
        """Put the job aside, with a reason, until somebody kicks it."""
        await self._do(verbs.bury(self.client._dialogue, self.id, priority=priority, error=error), True)

    async def touch(self) -> None:
        """Begin the time to run anew."""
        await self._do(verbs.touch(self.client._dialogue, self.id))

    async def report(self, text: Body) -> None:
        """Say something of this run, which its history keeps: at most 4096 bytes."""
        await self._do(verbs.report(self.client._dialogue, self.id, text))

    async def stats(self) -> Object:
        """The job's numbers."""
        return await self._do(verbs.stats_job(self.client._dialogue, self.id))

    async def _do(self, steps: Steps[Result], finishes: bool = False) -> Result:
        result = await self.client._carry_out(steps, self._connection)
        self.is_finished = self.is_finished or finishes
        return result

    async def __aenter__(self) -> AsyncJob:
        return self

    async def __aexit__(self, _type: type[BaseException] | None, value: BaseException | None,
                        _traceback: TracebackType | None) -> None:
        if self.is_finished:
            return
        if value is None:
            await self.delete()
            return
        try:
            await self.release(error=describe(value))
        except JobsError as error:  # the block's own exception matters more
            value.add_note(f"job {self.id} was not released: {error}")


class AsyncClient(Handle):
    """Client for asyncio: the same arguments and methods, each of which is awaited.

    Tasks may share a client, and wait for each other: one that waits for a job needs its own. A task that is cancelled
    during a command closes the connection, since an answer may still come. In another event loop, when that of before has
    ended, it connects anew.
    """

    def __init__(self, address: str | None = None, *, tube: str = "default", token: str | None = None,
                 tls: ssl.SSLContext | None = None, timeout: float = 10.0, code: int | None = None) -> None:
        self.address = Address.of(address)
        self.timeout = timeout
        self._dialogue = Dialogue(tube, code)
        self._token = token_of(token)
        self._tls = tls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._connections = 0

    def another(self) -> AsyncClient:
        """A client with the same arguments and a connection of its own."""
        return AsyncClient(self.address.text, tube=self._dialogue.tube, token=self._token, tls=self._tls,
                           timeout=self.timeout, code=self._dialogue.code)

    @overload
    async def reserve(self, timeout: None = None, *, tubes: Iterable[str] | None = None) -> AsyncJob: ...

    @overload
    async def reserve(self, timeout: Seconds, *, tubes: Iterable[str] | None = None) -> AsyncJob | None: ...

    async def reserve(self, timeout: Seconds | None = None, *, tubes: Iterable[str] | None = None) -> AsyncJob | None:
        """Take the next job of the tubes, as Client.reserve does."""
        wait = None if timeout is None else nanoseconds(timeout) / 1e9 + 1
        found = await self._carry_out(reserve(self._dialogue, timeout, tubes), wait=wait)
        return AsyncJob(self, *found) if found else None

    async def reserve_job(self, id: int) -> AsyncJob:
        """Take the job of an id, as Client.reserve_job does."""
        return AsyncJob(self, *await self._carry_out(verbs.reserve_job(self._dialogue, id)))

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

    async def close(self) -> None:
        """Close the connection. What is reserved is ready again. The next command connects anew."""
        self._enter()
        streams, self._streams = self._streams, None
        if streams:
            streams[1].close()
            try:
                await streams[1].wait_closed()
            except (OSError, ssl.SSLError):
                pass  # it is closed

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, _type: type[BaseException] | None, _value: BaseException | None,
                        _traceback: TracebackType | None) -> None:
        await self.close()

    def _enter(self) -> None:
        """Forget what belongs to a loop that has ended."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None and self._loop.is_running():
            raise RuntimeError("another event loop uses this client: client.another() makes one for this loop")
        if self._streams:
            transport = self._streams[1].transport
            with contextlib.suppress(OSError, TypeError):
                transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(RuntimeError):
                transport.abort()  # in a loop that is closed this does nothing: the object closes the descriptor
        self._loop, self._lock, self._streams = loop, asyncio.Lock(), None

    def _drop(self) -> None:
        if self._streams:
            self._streams[1].transport.abort()
        self._streams = None

    async def _connect(self) -> None:
        address = self.address
        context = address.context(self._tls)
        try:
            async with asyncio.timeout(self.timeout):
                if address.path:
                    self._streams = await asyncio.open_unix_connection(address.path, limit=LINE_MAX)
                else:
                    self._streams = await asyncio.open_connection(
                        address.host, address.port, ssl=context, limit=LINE_MAX,
                        server_hostname=address.host if context else None)
                    keep_alive(self._streams[1].get_extra_info("socket"))
        except OSError as error:
            raise address.unreachable(error) from error
        self._connections += 1
        self._dialogue.begin()
        if self._token:
            try:
                await self._exchange(introduce(self._token), self.timeout + 10)
            except JobsError:
                self._drop()
                raise

    async def _carry_out(self, steps: Steps[Result], lease: int | None = None, wait: float | None = 0) -> Result:
        self._enter()
        async with self._lock:
            if lease is not None and (self._streams is None or lease != self._connections):
                raise LeaseLost("the connection that reserved the job is closed: the server gives it to another worker")
            if self._streams is None:
                await self._connect()
            return await self._exchange(steps, None if wait is None else self.timeout + wait)

    async def _exchange(self, steps: Steps[Result], timeout: float | None) -> Result:
        assert self._streams
        reader, writer = self._streams
        try:
            lines = next(steps)
            while True:
                async with asyncio.timeout(timeout):
                    writer.writelines(lines)
                    await writer.drain()
                    answers = [await self._answer(reader) for _ in lines]
                lines = steps.send(answers)
        except StopIteration as ended:
            result: Result = ended.value
            return result
        except (OSError, EOFError) as error:
            self._drop()
            raise self.address.broken("the server closed it" if isinstance(error, EOFError) else error) from error
        except (JobsError, ValueError, TypeError):
            raise  # the connection is as it was
        except BaseException:
            self._drop()  # an answer may still come
            raise

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        try:
            line = (await reader.readuntil(b"\r\n"))[:-2].decode(errors="replace")
            size = block_size(line)
        except (asyncio.LimitOverrunError, ValueError):
            self._drop()
            raise unexpected("a long line") from None
        return Answer(line) if size is None else Answer(line, (await reader.readexactly(size + 2))[:-2])


class AsyncWorker:
    """Worker for asyncio: calls handler(job) for each job of the tubes, and awaits it if it is a coroutine function, up to
    `concurrency` at a time, each with a connection of its own. A cancelled run releases the jobs at hand."""

    def __init__(self, client: AsyncClient, handler: Callable[[AsyncJob], object], *,
                 tubes: Iterable[str] | None = None, concurrency: int = 1, attempts: int = 10) -> None:
        if not callable(handler):
            raise TypeError(f"the handler {handler!r} cannot be called")
        if concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}: one job at a time at least")
        self.client = client
        self.handler = handler
        self.tubes = None if tubes is None else list(tubes)
        self.concurrency = concurrency
        self.attempts = attempts
        self._stopped = False
        self._waiting: set[asyncio.Task[Any]] = set()

    def stop(self) -> None:
        """Let run return after the jobs at hand. Call it in the loop's thread, as loop.add_signal_handler does."""
        self._stopped = True
        for task in self._waiting:
            task.cancel()

    async def run(self, *, drain: bool = False) -> int:
        """Work until stop is called, or, with `drain`, until no job is ready. Return how many jobs were done."""
        clients = [self.client, *(self.client.another() for _ in range(self.concurrency - 1))]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._work(client, drain)) for client in clients]
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None  # what ended the first one ends all
        finally:
            for client in clients[1:]:
                await client.close()
        return sum(task.result() for task in tasks)

    async def _work(self, client: AsyncClient, drain: bool) -> int:
        done, pause = 0, FIRST_PAUSE
        while not self._stopped:
            try:
                job = await self._until_stopped(client.reserve(0 if drain else None, tubes=self.tubes))
                pause = FIRST_PAUSE
            except DeadlineSoon:
                continue
            except (ConnectionLost, Full, ServerFailed) as error:
                logger.warning("%s; trying again in %g s", error, pause)
                await self._until_stopped(asyncio.sleep(pause))
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            if job is None:
                if drain:
                    break
                continue
            done += await self._do(job)
        return done

    async def _until_stopped(self, wait: Coroutine[Any, Any, Result]) -> Result | None:
        """Await what stop cuts short. The result is then None."""
        task = asyncio.ensure_future(wait)
        self._waiting.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if self._stopped:
                return None
            task.cancel()
            if task.done() and not task.cancelled() and not task.exception() and isinstance(job := task.result(), AsyncJob):
                await job.release(delay=0)  # it came in the moment of the cancellation
            raise
        finally:
            self._waiting.discard(task)

    async def _do(self, job: AsyncJob) -> bool:
        """Await the handler, and say how it ended. Return whether the job is done."""
        try:
            try:
                result = self.handler(job)
                if inspect.isawaitable(result):
                    await result
            except Bury as reason:
                if not job.is_finished:
                    await job.bury(error=str(reason))
                return False
            except Exception as error:
                logger.warning("job %d has failed", job.id, exc_info=error)
                if not job.is_finished:
                    await job._failed(describe(error), self.attempts)
                return False
            except BaseException as error:
                if not job.is_finished:
                    await job.release(error=describe(error))
                raise
            if not job.is_finished:
                await job.delete()
            return True
        except JobsError as error:
            logger.warning("job %d: the server does not know how it ended, and delivers it again: %s", job.id, error)
            return False
