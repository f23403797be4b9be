"""A client of the job server weekwheeld, or of beanstalkd: for threads and for asyncio, with workers.

It needs no library. Client has the verbs, Job what is done with a job that is reserved.
"""
from .aio import AsyncClient, AsyncJob, AsyncWorker
from .client import Client, Job
from .errors import (BadFormat, BadSchedule, Bury, ConnectionLost, DeadlineSoon, Denied, Draining, Full, JobsError,
                     LeaseLost, NotFound, Refused, Reserved, ServerFailed, Stale, TooBig, Unsupported)
from .protocol import Put
from .worker import Worker

__all__ = ["AsyncClient", "AsyncJob", "AsyncWorker", "BadFormat", "BadSchedule", "Bury", "Client", "ConnectionLost",
           "DeadlineSoon", "Denied", "Draining", "Full", "Job", "JobsError", "LeaseLost", "NotFound", "Put", "Refused",
           "Reserved", "ServerFailed", "Stale", "TooBig", "Unsupported", "Worker"]
