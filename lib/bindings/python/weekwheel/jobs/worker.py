"""A worker for threads: takes jobs, and calls a function for each."""
from __future__ import annotations

import logging
import threading
from typing import Callable, Iterable

from .._time import Seconds
from .client import Client, Job, describe
from .errors import Bury, ConnectionLost, DeadlineSoon, Full, JobsError, ServerFailed

logger = logging.getLogger("weekwheel.jobs")

# Seconds between attempts to connect again: each is twice as long as the one before.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0


class Worker:
    """Calls handler(job) for each job of the tubes, one after the other.

    When the handler returns, the job is deleted. When it raises Bury, the job is buried, with what it says as the reason.
    When it raises another exception, the job is released for its own backoff, or for a second that doubles with each
    delivery, with the exception as the reason, which the logger "weekwheel.jobs" gets, too. One without a limit of its own is buried
    after `attempts` deliveries (0: never), as "weekwheel work" does. What the handler has deleted, released or buried
    itself stays so. When the connection breaks, the worker connects again.

    A worker does not extend the job's time to run: a handler that takes longer calls job.touch(), or another worker gets
    the job, too.

    `poll` is how long a reserve waits, in whole seconds, and so how late a stop may take effect.
    """

    def __init__(self, client: Client, handler: Callable[[Job], object], *, tubes: Iterable[str] | None = None,
                 poll: Seconds = 1, attempts: int = 10) -> None:
        if not callable(handler):
            raise TypeError(f"the handler {handler!r} cannot be called")
        self.client = client
        self.handler = handler
        self.tubes = None if tubes is None else list(tubes)
        self.poll = poll
        self.attempts = attempts
        self._stop = threading.Event()

    def stop(self) -> None:
        """Let run return after the job at hand. Any thread and any signal handler may call this."""
        self._stop.set()

    def run(self, *, drain: bool = False) -> int:
        """Work until stop is called, or, with `drain`, until no job is ready. Return how many jobs were done."""
        done, pause = 0, FIRST_PAUSE
        while not self._stop.is_set():
            try:
                job = self.client.reserve(0 if drain else self.poll, tubes=self.tubes)
                pause = FIRST_PAUSE
            except DeadlineSoon:
                continue
            except (ConnectionLost, Full, ServerFailed) as error:
                logger.warning("%s; trying again in %g s", error, pause)
                self._stop.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            if job is None:
                if drain:
                    break
                continue
            done += self._do(job)
        return done

    def _do(self, job: Job) -> bool:
        """Call the handler, and say how it ended. Return whether the job is done."""
        try:
            try:
                self.handler(job)
            except Bury as reason:
                self._unless_finished(job, lambda: job.bury(error=str(reason)))
                return False
            except Exception as error:
                logger.warning("job %d has failed", job.id, exc_info=error)
                self._unless_finished(job, lambda: job._failed(describe(error), self.attempts))
                return False
            except BaseException as error:
                self._unless_finished(job, lambda: job.release(error=describe(error)))
                raise
            self._unless_finished(job, job.delete)
            return True
        except JobsError as error:
            logger.warning("job %d: the server does not know how it ended, and delivers it again: %s", job.id, error)
            return False

    @staticmethod
    def _unless_finished(job: Job, end: Callable[[], object]) -> None:
        if not job.is_finished:
            end()
