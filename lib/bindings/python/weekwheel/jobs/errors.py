"""What a server of jobs refuses, and what becomes of a connection, as exceptions with the server's word and a remedy."""
from __future__ import annotations

from urllib.parse import unquote

from ..errors import WeekwheelError


class JobsError(WeekwheelError):
    """The base of all that the client of jobs raises. `answer` is the server's line, or empty."""

    answer = ""


class ConnectionLost(JobsError):
    """There is no connection, or it broke. A command may have been carried out; the next one connects again."""


class LeaseLost(JobsError):
    """The job was reserved by a connection that is gone. The server gives it to another worker."""


class Refused(JobsError):
    """The server does not carry out a command."""


class NotFound(Refused):
    """There is no such job or schedule, or another connection has it reserved."""


class Stale(Refused):
    """The job has another version."""


class Reserved(Refused):
    """A worker runs the job."""


class Denied(Refused):
    """The token lacks the right, or the server wants one."""


class TooBig(Refused):
    """The body is larger than the server allows."""


class Full(Refused):
    """The server's memory or disk is full."""


class Draining(Refused):
    """The server takes no new jobs."""


class Unsupported(Refused):
    """The server does not know the command: it may be beanstalkd, or older."""


class BadFormat(Refused):
    """The server refuses the form of the command."""


class ServerFailed(Refused):
    """The server could not read or write its store."""


class DeadlineSoon(JobsError):
    """A job that this client has reserved runs out of time within a second. Finish or touch it, then reserve."""


class BadSchedule(Refused):
    """An expression, a zone or a name of a schedule is wrong. `field` is cron, zone or name, `at` the byte where, `reason` what."""

    field, at, reason = "", 0, ""


class Bury(Exception):
    """A handler of a worker raises this to bury its job: nobody tries again before somebody kicks it."""


_MEANINGS: dict[str, tuple[type[Refused], str]] = {
    "NOT_FOUND": (NotFound, "there is none, or another connection has it reserved"),
    "STALE": (Stale, "it has another version now: look at it again"),
    "RESERVED": (Reserved, "a worker runs it: wait until that ends, or delete it"),
    "DENIED": (Denied, "the server wants a token with the right to do this: pass token=, and look at its --auth-file"),
    "JOB_TOO_BIG": (TooBig, "make the body smaller, or start the server with a larger --max-job-size"),
    "OUT_OF_MEMORY": (Full, "the server or its Redis is out of memory, or its disk is full: its log says which"),
    "DRAINING": (Draining, "the server takes no new jobs: try again after its restart"),
    "UNKNOWN_COMMAND": (Unsupported, "this server does not know the command: it may be beanstalkd, or older"),
    "BAD_FORMAT": (BadFormat, "an argument is out of range, or the server is older; where it delivers over HTTP, a job "
                              "has to be a request"),
    "INTERNAL_ERROR": (ServerFailed, "the server could not read or write its store: see its log"),
    "NOT_IGNORED": (Refused, "a connection has to watch one tube at least"),
    "EXPECTED_CRLF": (BadFormat, "the server missed the end of the body"),
}


def refusal(what: str, answer: str) -> Refused:
    """Make the exception of an answer that no command expects."""
    word, _, rest = answer.partition(" ")
    if word == "BAD_SCHEDULE":
        field, at, reason = (rest + "  ").split(" ", 2)
        bad = BadSchedule(f"{what}: {field} is wrong at byte {at}: {unquote(reason.strip())}")
        bad.field, bad.at, bad.reason, bad.answer = field, int(at or 0), unquote(reason.strip()), answer
        return bad
    kind, remedy = _MEANINGS.get(word, (Refused, "this package does not know the answer"))
    error = kind(f"{what}: {remedy} ({answer})")
    error.answer = answer
    return error
