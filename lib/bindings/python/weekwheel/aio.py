"""A driver for an event loop of asyncio: its descriptor wakes the loop, and callbacks run in the loop's thread."""
from __future__ import annotations

import asyncio
import inspect
import os
from typing import Any

from ._time import Seconds, nanoseconds, whole
from .errors import ECLOSED, WheelError
from .timers import THREADLESS, Clock, Driver, ErrorHandler, Timer

# Callbacks in a turn of the loop: others on it wait no longer than these take.
BUDGET = 256


class LoopDriver(Driver):
    """A driver without threads, for the running event loop.

    Callbacks may be functions, which the loop's thread calls, or coroutine functions, of which a task is made. What they
    raise goes to the loop's exception handler, unless `on_error` is given. With `on_error`, what a task raises goes
    there, too. KeyboardInterrupt and SystemExit leave the loop, as from its own callbacks. Make it, use it and close it in
    the loop's thread. Closing it cancels no task that has begun, and ends each sleep with Closed.
    """

    _flags = THREADLESS

    def __init__(self, *, loop: asyncio.AbstractEventLoop | None = None, clock: Clock | None = None,
                 tick: Seconds = 0.001, shards: int = 1, on_error: ErrorHandler | None = None) -> None:
        self.loop = loop or asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sleeps: set[asyncio.Future[None]] = set()
        self._escaped: list[BaseException] = []
        super().__init__(clock=clock, tick=tick, shards=shards, on_error=on_error or self._tell)
        self.fd = self._call("ww_driver_fd")
        self.loop.add_reader(self.fd, self.dispatch)

    def dispatch(self, budget: int = BUDGET) -> int:
        """Call the callbacks of due timers. Return how many. The loop does this by itself."""
        return self._call_and_tell("ww_driver_dispatch", whole("budget", budget, 0, 2**32 - 1))

    def _call_and_tell(self, name: str, *arguments: Any) -> int:
        try:
            return super()._call_and_tell(name, *arguments)
        finally:
            if self._escaped:
                escaped, self._escaped = self._escaped, []
                raise escaped[0]

    async def sleep(self, delay: Seconds) -> None:
        """Wait as asyncio.sleep does, on the driver's clock: a test that moves a virtual clock need not wait."""
        nanoseconds(delay)
        done = self.loop.create_future()
        timer = self.schedule(delay, _finish, done)
        self._sleeps.add(done)
        try:
            await done
        finally:
            self._sleeps.discard(done)
            timer.cancel()

    def _run(self, timer: Timer) -> None:
        context = timer._context.copy()
        result = context.run(timer.callback, *timer.arguments)
        if inspect.iscoroutine(result):
            task = context.run(self.loop.create_task, result)
            self._tasks.add(task)
            task.add_done_callback(lambda task: self._ended(task, timer))

    def _ended(self, task: asyncio.Task[Any], timer: Timer) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, (KeyboardInterrupt, SystemExit)):  # the loop lets these out itself
            self._failed(error, timer)

    def _failed(self, error: BaseException, timer: Timer) -> None:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            self._escaped.append(error)  # let out when no frame of the library lies on the stack
        else:
            super()._failed(error, timer)

    def _tell(self, error: BaseException, timer: Timer) -> None:
        self.loop.call_exception_handler(
            {"message": f"the callback {timer.callback!r} of a timer has failed", "exception": error})

    def close(self) -> None:
        """Take the driver off the loop, then close it as Driver.close does. Waits for nothing."""
        # A child of a fork shares the loop's epoll with its parent: what it takes off is off there, too.
        if self._address is not None and not self.loop.is_closed() and os.getpid() == self._process:
            self.loop.remove_reader(self.fd)
            for done in self._sleeps:
                if not done.done():
                    done.set_exception(WheelError.of(ECLOSED, "the driver was closed during the sleep"))
        super().close()


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
