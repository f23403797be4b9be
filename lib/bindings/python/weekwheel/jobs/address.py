"""Where a server is, with which certificates, and which token it wants: from arguments or the environment, as the
program weekwheel takes them."""
from __future__ import annotations

import dataclasses
import os
import re
import socket
import ssl
from typing import Protocol

from .errors import ConnectionLost


class Connection(Protocol):
    """A socket of Python's, or what asyncio has in its place."""

    def setsockopt(self, level: int, option: int, value: int, /) -> None:
        """Set an option."""


@dataclasses.dataclass(frozen=True)
class Address:
    """HOST:PORT, [IPV6]:PORT, tls:HOST:PORT or unix:PATH."""
    text: str
    host: str = ""
    port: int = 0
    path: str = ""
    is_tls: bool = False

    @classmethod
    def of(cls, text: str | None) -> Address:
        """Read an address. None: that of the environment variable WEEKWHEEL_SERVER, or 127.0.0.1:11300."""
        text = text or os.environ.get("WEEKWHEEL_SERVER") or "127.0.0.1:11300"
        if text.startswith("unix:"):
            return cls(text, path=text[len("unix:"):])
        found = re.fullmatch(r"(tls:)?(?:\[([^]]+)\]|([^:]+)):(\d{1,5})", text)
        if not found:
            raise ValueError(f"{text!r} is not an address: HOST:PORT, [IPV6]:PORT, tls:HOST:PORT or unix:PATH")
        return cls(text, host=found[2] or found[3], port=int(found[4]), is_tls=bool(found[1]))

    def context(self, given: ssl.SSLContext | None) -> ssl.SSLContext | None:
        """What TLS needs, or None. Without a context of the caller's: WEEKWHEEL_TLS_CA, _CERT and _KEY."""
        if not self.is_tls or given:
            return given if self.is_tls else None
        context = ssl.create_default_context(cafile=os.environ.get("WEEKWHEEL_TLS_CA"))
        if certificate := os.environ.get("WEEKWHEEL_TLS_CERT"):
            context.load_cert_chain(certificate, os.environ.get("WEEKWHEEL_TLS_KEY"))
        return context

    def unreachable(self, error: Exception) -> ConnectionLost:
        """The exception of a connection that cannot be made."""
        return ConnectionLost(f"there is no connection to {self.text}: {self._why(error)}. Start weekwheeld there, or "
                              "name another address")

    @staticmethod
    def _why(error: object) -> str:
        return str(error) or "no answer came in time"  # asyncio's TimeoutError says nothing

    def broken(self, error: object) -> ConnectionLost:
        """The exception of a connection that broke during a command."""
        return ConnectionLost(f"the connection to {self.text} broke: {self._why(error)}. The command may have been carried "
                              "out; jobs that were reserved are ready again")


def keep_alive(connection: Connection) -> None:
    """A worker waits for hours. Without this it would not notice that the machine is gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)


def token_of(given: str | None) -> str | None:
    """The token, or that of the environment."""
    given = given if given is not None else os.environ.get("WEEKWHEEL_TOKEN")
    if given is not None and not re.fullmatch(r"[!-~]{16,200}", given):
        raise ValueError("a token is 16 to 200 printable characters without a space")
    return given
