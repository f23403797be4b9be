"""beanstalkd's protocol and weekwheeld's own verbs, without any socket.

A verb is a generator. It yields the lines to send and gets as many answers. Client and AsyncClient carry it out, each in
its way, so that every verb is written once.
"""
from __future__ import annotations

import base64
import dataclasses
import datetime
import json
import operator
import re
from typing import Any, Generator, Iterable, Literal, Mapping, TypeVar, Union
from urllib.parse import quote, unquote

from .._time import Seconds, nanoseconds
from .errors import DeadlineSoon, JobsError, Unsupported, refusal

Result = TypeVar("Result")
Mode = Literal["replace", "if-absent", "keep-earlier", "keep-later"]
Missed = Literal["once", "all", "skip"]
Expired = Literal["drop", "bury"]
Overlap = Literal["allow", "skip", "wait"]
State = Literal["delayed", "ready", "reserved", "buried", "ended"]
When = Union[int, float, datetime.datetime]
"""A time of the wall clock: seconds since 1970, UTC, or a datetime."""
Object = dict[str, Any]
"""An object as the server lists it, with its names; man weekwheeld has them."""
Body = Union[bytes, str]
Delivery = tuple[int, bytes, dict[str, str]]
"""The id, the body and the headers of a job."""

TUBE = re.compile(r"[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]{0,199}")
# Bytes of a line without its end: of beanstalkd's put, and of weekwheeld's own verbs.
LINE_MAX, OWN_LINE_MAX = 222, 2046
# Of an answer with one of these words a block follows, whose length is this word of it.
BLOCKS = {"OK": 1, "RESERVED": 2, "FOUND": 2}
# A job's headers, which are lines before its body.
HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: (?:[!-~](?:[ -~]*[!-~])?)?")


@dataclasses.dataclass(frozen=True)
class Answer:
    """A line of the server, and the block behind it."""
    line: str
    block: bytes = b""

    @property
    def words(self) -> list[str]:
        """The words of the line."""
        return self.line.split(" ")

    @property
    def job(self) -> Delivery:
        """The job that it is about. Its headers, if it has some, are the first bytes of the block."""
        words = self.words
        size = int(words[3]) if len(words) > 3 else 0
        lines = self.block[:size].decode("latin-1").splitlines()
        return int(words[1]), self.block[size:], dict(line.split(": ", 1) for line in lines)


Steps = Generator[list[bytes], list[Answer], Result]


@dataclasses.dataclass(frozen=True)
class Put:
    """What became of a put."""
    id: int
    outcome: Literal["inserted", "replaced", "kept", "ended", "buried"]
    """kept: the job that has the key stays. ended: that job has ended, and its key is not free yet. In neither case was
    anything put. buried: the server had no memory for its queue."""
    version: int | None = None
    """The job's version, where the server sends it."""

    @property
    def is_put(self) -> bool:
        """Whether the body is in the store now."""
        return self.outcome not in ("kept", "ended")


class Dialogue:
    """What a connection knows: the tube in use, the tubes watched, and whether the server has verbs of its own."""

    def __init__(self, tube: str, code: int | None = None) -> None:
        if code is not None and not 0 <= code < 1 << 31:
            raise ValueError(f"the code {code} is not from 0 to {(1 << 31) - 1}")
        self.tube = checked(tube)
        self.code = code
        self.begin()

    def begin(self) -> None:
        """A connection is new."""
        self.used = "default"
        self.watched = ["default"]
        self.has_own: bool | None = None
        self.takes_headers = False


def block_size(line: str) -> int | None:
    """The length of the block that follows a line, or None."""
    words = line.split(" ")
    return int(words[BLOCKS[words[0]]]) if words[0] in BLOCKS and len(words) > 1 else None


# ---- Words


def checked(tube: str) -> str:
    """Refuse what is not a name of a tube before it is sent: what comes behind it would go to another tube."""
    if not TUBE.fullmatch(tube):
        raise ValueError(f"{tube!r} is not a name of a tube: 1 to 200 of A-Z a-z 0-9 - + / ; . $ _ ( ), without - in front")
    return tube


def encoded(text: Body) -> str:
    """A key or a name, percent-encoded. - alone would be none."""
    given = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else data(text)
    return quote(given, safe="") if given != b"-" else "%2D"


def encoded_reason(error: str | None) -> str:
    """A reason for people, of which the server keeps 255 bytes."""
    given = (error or "").encode("utf-8", "backslashreplace").replace(b"\0", b" ")
    return quote(given[:255], safe="") if given != b"-" else "%2D"


def seconds(time: Seconds) -> str:
    """Seconds as the server reads them."""
    whole, fraction = divmod(nanoseconds(time), 10**9)
    return f"{whole}.{fraction:09}".rstrip("0") if fraction else str(whole)


def moment(time: When) -> str:
    """A time of the wall clock as the server reads it."""
    if isinstance(time, datetime.datetime):
        since = time.astimezone(datetime.timezone.utc) - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return seconds(since)
    return seconds(time)


def whole(time: Seconds) -> int:
    """Whole seconds, rounded up, for beanstalkd's own verbs."""
    return -(-nanoseconds(time) // 10**9)


def rank(priority: int) -> int:
    """A priority. beanstalkd takes the body behind a wrong one for commands."""
    if not 0 <= operator.index(priority) < 2**32:
        raise ValueError(f"the priority {priority} is out of range: 0 is the most urgent one, {2**32 - 1} the least")
    return operator.index(priority)


def command(line: str) -> bytes:
    """A line as it is sent. One that a server would read otherwise, and one too long for it, is refused before it is sent:
    what comes behind it, such as a body, would be taken for commands."""
    if not re.fullmatch(r"[ -~]*", line):
        raise ValueError(f"{line!r} has a character that no command has: is each number a number, and each word a word?")
    most = LINE_MAX if line.startswith("put ") else OWN_LINE_MAX
    if len(line) > most:
        raise ValueError(f"{line[:40]}... has {len(line)} bytes, and a server reads {most}: make the key, the group and the "
                         "like shorter, which have at most 200 bytes")
    return line.encode() + b"\r\n"


def data(body: Body) -> bytes:
    """A body as bytes."""
    if isinstance(body, str):
        return body.encode()
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError(f"a body is text or bytes, not {type(body).__name__}: json.dumps() makes text of an object")
    return bytes(body)


def header_lines(headers: Mapping[str, str] | None) -> bytes:
    """Headers as they stand before the body."""
    lines = [f"{name}: {value}" for name, value in (headers or {}).items()]
    for line in lines:
        if not HEADER.fullmatch(line):
            raise ValueError(f"the header {line!r}: its name is a token of HTTP, and its value visible ASCII")
    return "".join(f"{name.lower()}: {value}\n" for name, value in (headers or {}).items()).encode()


def options(**given: Any) -> str:
    """Options that are given, as words in front of which is a space. Names have _ for -, and one of Python's own at
    their end."""
    return "".join(f" {name.rstrip('_').replace('_', '-')}={value}" for name, value in given.items() if value is not None)


def span(time: Seconds | None) -> str | None:
    """Seconds, or nothing."""
    return None if time is None else seconds(time)


def name(text: Body | None) -> str | None:
    """Percent-encoded, or nothing."""
    return None if text is None else encoded(text)


# ---- Steps


def ask(dialogue: Dialogue, what: str, line: str, expected: Iterable[str], *, tube: str | None = None,
        uses: bool = False, body: bytes | None = None) -> Steps[Answer]:
    """Send a line and its body, and give the answer if it begins with an expected word. `uses`: the command is about the
    tube in use, which is `tube` or the client's own."""
    sent = command(line)
    if body is not None and not line.startswith("put ") and dialogue.has_own is None:
        # A server that does not know the verb would take the body for commands.
        found = (yield [b"stats-key weekwheel\r\n"])[0].words[0]
        dialogue.has_own = found not in ("UNKNOWN_COMMAND", "BAD_FORMAT")
    if body is not None and not line.startswith("put ") and not dialogue.has_own:
        raise Unsupported(f"{what}: this server has no verbs of weekwheeld's own: it may be beanstalkd, or older")
    wanted = checked(dialogue.tube if tube is None else tube) if uses else dialogue.used
    if wanted != dialogue.used:
        # If the server refuses that, the command must not be carried out in another tube.
        used = (yield [b"use %s\r\n" % wanted.encode()])[0]
        if used.words[0] != "USING":
            raise refusal("use " + wanted, used.line)
        dialogue.used = wanted
    answer = (yield [sent + (b"" if body is None else body + b"\r\n")])[0]
    if answer.words[0] not in expected:
        raise refusal(what, answer.line)
    return answer


def numbers(answer: Answer) -> Object:
    """A block of YAML, as stats have it."""
    lines = (line.partition(": ") for line in answer.block.decode(errors="replace").splitlines() if ": " in line)
    return {key: value.strip('"') if key in ("name", "tube") else _value(value) for key, _, value in lines}


def _value(text: str) -> int | float | str:
    if re.fullmatch(r"\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"\d+\.\d+", text) else text.strip('"')


def objects(answer: Answer) -> tuple[list[Object], int | None]:
    """A block of JSON, one object per line, and the number with which to go on. Bodies and reports become bytes. Names become
    text, as str has file names: what is not UTF-8 in them is kept."""
    found: list[Object] = [json.loads(line) for line in answer.block.decode().splitlines()]
    after = found.pop()["next"] if found and set(found[-1]) == {"next"} else None
    for one in found:
        for member in ("body", "report"):
            if isinstance(one.get(member), str):
                one[member] = base64.b64decode(one[member])
        for member in ("key", "group", "name"):
            if isinstance(one.get(member), str):
                one[member] = unquote(one[member], errors="surrogateescape")
    return found, after


def everything(dialogue: Dialogue, what: str, line: str, limit: int | None) -> Steps[list[Object]]:
    """All pages of a list, or its first `limit` objects."""
    found: list[Object] = []
    after: int | None = None
    while limit is None or len(found) < limit:
        page = 1000 if limit is None else min(1000, limit - len(found))
        answer = yield from ask(dialogue, what, line + options(limit=page, after=after), ("OK",))
        more, after = objects(answer)
        found += more
        if after is None:
            break
    return found


def reserve(dialogue: Dialogue, timeout: Seconds | None, tubes: Iterable[str] | None) -> Steps[Delivery | None]:
    """Take the next job of the tubes, or None if there was none in time."""
    wanted = [dialogue.tube] if tubes is None else list(dict.fromkeys(tubes))
    if not wanted:
        raise ValueError("reserve: name a tube at least")
    checked_tubes = [checked(tube) for tube in wanted]
    yield from want_headers(dialogue)
    lines = [f"watch {tube}\r\n".encode() for tube in checked_tubes if tube not in dialogue.watched]
    lines += [f"ignore {tube}\r\n".encode() for tube in dialogue.watched if tube not in wanted]
    lines.append(b"reserve\r\n" if timeout is None else b"reserve-with-timeout %d\r\n" % whole(timeout))
    answers = yield lines
    for line, answer in zip(lines, answers[:-1]):
        if answer.words[0] != "WATCHING":
            raise refusal(line.decode().strip(), answer.line)
    dialogue.watched = wanted
    answer = answers[-1]
    if answer.words[0] == "TIMED_OUT":
        return None
    if answer.words[0] == "DEADLINE_SOON":
        raise DeadlineSoon("a job that this client has reserved runs out of time: finish or touch it (DEADLINE_SOON)")
    if answer.words[0] != "RESERVED":
        raise refusal("reserve", answer.line)
    return answer.job


def want_headers(dialogue: Dialogue) -> Steps[None]:
    """Let jobs come with their headers. beanstalkd and older servers do not know that, and have none."""
    if not dialogue.takes_headers:
        yield [b"headers\r\n"]
        yield from say_code(dialogue)
    dialogue.takes_headers = True


def say_code(dialogue: Dialogue) -> Steps[None]:
    """Take no job of a later code: a server that does not know this gets no reserve."""
    if dialogue.code is not None:
        line = f"code {dialogue.code}"
        answer = (yield [line.encode() + b"\r\n"])[0]
        if answer.line != "CODE":
            raise refusal(line, answer.line)


def same_priority(dialogue: Dialogue, id: int, priority: int | None) -> Steps[int]:
    """The priority that a job has, unless another is given."""
    if priority is not None:
        return priority
    return int(numbers((yield from ask(dialogue, f"job {id}", f"stats-job {id}", ("OK",))))["pri"])


def introduce(token: str) -> Steps[None]:
    """Say the token of a new connection."""
    answer = (yield [f"auth {token}\r\n".encode()])[0]
    if answer.line != "OK":
        raise refusal("the token", answer.line)


def unexpected(line: str) -> JobsError:
    """The server speaks another protocol."""
    return JobsError(f"this is no server of jobs: it says {line[:60]!r}")
