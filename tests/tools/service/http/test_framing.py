#!/usr/bin/env python3
"""Requests that RFC 9112 forbids or that a proxy may read differently, at both servers: one answer, and the connection ends."""
# tier: check
import re
import socket

from sessiond import Sessiond
from harness import PATIENCE, Case, Server, equal, main

HOST = "Host: 127.0.0.1\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"
PATHS = ("/livez", "/v1/stats")


def head(*fields, method="GET", path=None, version="1.1", host=HOST):
    """A function that makes it for a path."""
    return lambda at: "%s %s HTTP/%s\r\n%s%s\r\n" % (method, path or at, version, host, "".join(fields))


def with_body(body, *fields, method="GET"):
    made = head(*fields, method=method)
    return lambda at: made(at) + body


# What is refused with 400, after which the connection ends.
REFUSED = {
    "a length and chunks": with_body("0\r\n\r\n", "Content-Length: 5\r\n", CHUNKED),
    "chunks and a length": with_body("0\r\n\r\n", CHUNKED, "Content-Length: 0\r\n"),
    "a length and chunks of a body": with_body("0\r\n\r\n", "Content-Length: 5\r\n", CHUNKED, method="POST"),
    "two lengths": with_body("hello", "Content-Length: 0\r\n", "content-length: 5\r\n"),
    "the same length twice": head("Content-Length: 0\r\n", "Content-Length: 0\r\n"),
    "a list of lengths": head("Content-Length: 0, 0\r\n"),
    "a length with a sign": head("Content-Length: +0\r\n"),
    "a negative length": head("Content-Length: -1\r\n"),
    "an empty length": head("Content-Length: \r\n"),
    "a length in hexadecimal": head("Content-Length: 0x0\r\n"),
    "an unknown coding": head("Transfer-Encoding: gzip\r\n"),
    "an unknown coding before chunks": with_body("0\r\n\r\n", "Transfer-Encoding: gzip, chunked\r\n"),
    "chunks twice": with_body("0\r\n\r\n", "Transfer-Encoding: chunked, chunked\r\n"),
    "almost chunks": with_body("0\r\n\r\n", "Transfer-Encoding: xchunked\r\n"),
    "chunks and identity": with_body("0\r\n\r\n", CHUNKED, "Transfer-Encoding: identity\r\n"),
    "chunks of 1.0": lambda at: head(CHUNKED, version="1.0")(at) + "0\r\n\r\n",
    "a field that goes on before its first": head(host=" X: a\r\n" + HOST),
    "chunks in the next line": with_body("0\r\n\r\n", "Transfer-Encoding:\r\n chunked\r\n"),
    "a length that goes on": with_body("hello", "Content-Length:\r\n\t5\r\n"),
    "chunks in a line that goes on": with_body("0\r\n\r\n", "X: a\r\n Transfer-Encoding: chunked\r\n"),
    "a space before the colon": with_body("hello", "Content-Length : 5\r\n"),
    "a name with a space": head("X Y: a\r\n"),
    "no colon": head("X\r\n"),
    "a carriage return in a value": head("X: a\rTransfer-Encoding: chunked\r\n"),
    "a NUL in a name": head("X\0Y: a\r\n"),
    "a NUL in a value": head("X: a\0b\r\n"),
    "a NUL in a coding": with_body("0\r\n\r\n", "Transfer-Encoding: chunked\0, gzip\r\n"),
    "a NUL in a length": with_body("hello", "Content-Length: 5\0009\r\n"),
    "a NUL in the host": head(host="Host: localhost\0.evil.example\r\n"),
    "a NUL in the path": lambda at: head(path=at + "\0/x")(at),
    "a NUL before all": lambda at: "\0" + head()(at),
    "a NUL in a second head": lambda at: "\r\n" + head("\0: x\r\n")(at),
    "a field without a name": head(": x\r\n"),
    "fields behind one without a name": head(":\r\nGET /readyz HTTP/1.1\r\nHost: localhost\r\n"),
    "a length behind a field without a name": with_body("hello", ": x\r\n", "Content-Length: 5\r\n"),
    "a field without a name behind an end in LF": head("X: a\n: b\r\n"),
    "a field that goes on": head("X: a\r\n b\r\n"),
    "a length that goes on behind its end": with_body("hello", "Content-Length: 5\r\n\tX\r\n"),
    "a line that is a carriage return": head("\rX: a\r\n"),
    "no host": head(host=""),
    "a host twice": head(HOST),
    "two hosts": head("Host: evil.example\r\n"),
    "a host twice of 1.0": head(HOST, version="1.0"),
    "a space in the path": lambda at: head(path=at + " /x")(at),
    "no slash": head(path="livez"),
    "a URL of another scheme": head(path="ftp://127.0.0.1/livez"),
    "a URL without a host": head(path="http:///livez"),
    "an authority": head(method="CONNECT", path="127.0.0.1:80"),
    "no version": lambda at: "GET %s\r\n" % at,
    "another version": head(version="1.12"),
}
for name, size in (("hexadecimal", "0x5"), ("signed", "+5"), ("negative", "-5"), ("indented", " 5"), ("padded", "5 "), ("empty", "")):
    REFUSED["a chunk of a size that is " + name] = with_body(size + "\r\nhello\r\n0\r\n\r\n", CHUNKED)
REFUSED["a chunk without an end"] = with_body("5\r\nhelloXX0\r\n\r\n", CHUNKED)

# Other answers, after which the connection ends.
ENDED = {
    "a line that is too long": (head(path="/" + 70000 * "a"), 414),
    "a field that is too long": (head("X: " + 70000 * "a" + "\r\n"), 431),
    "a length beyond all numbers": (head("Content-Length: 99999999999999999999\r\n"), 413),
    "another major version": (head(version="2.0"), 505),
}


class Framing(Case):
    def each(self):
        for kind in (Server, Sessiond):
            with kind("--http", "127.0.0.1:0") as server:
                yield int(re.search(r"serving http://127\.0\.0\.1:(\d+)/", server.said)[1])

    def statuses(self, port, text, ends=True):
        """Those of all answers to it and to what follows. The connection ends by itself, or with the last answer."""
        follows = "GET /readyz HTTP/1.1\r\n" + HOST + ("" if ends else "Connection: close\r\n") + "\r\n"
        said = b""
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
            try:
                client.sendall((text + follows).encode("latin-1"))
                while came := client.recv(65536):
                    said += came
            except ConnectionError:
                pass  # it was closed before all of this had been read
        return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d+) ", said)]

    def refused(self, port, text):
        """The only status; libmicrohttpd says it twice of a length that it does not read."""
        got = set(self.statuses(port, text))
        return got.pop() if len(got) == 1 else got

    def test_what_is_refused(self):
        for port in self.each():
            for path in PATHS:
                for what, make in REFUSED.items():
                    equal((what, path, self.refused(port, make(path))), (what, path, 400))

    def test_what_ends_the_connection(self):
        for port in self.each():
            for what, (make, status) in ENDED.items():
                equal((what, self.refused(port, make("/livez"))), (what, status))

    def test_nothing_follows_chunks(self):
        """Lines of chunks that end in LF alone are read differently."""
        for port in self.each():
            for body in ("5\r\nhello\r\n0\r\n\r\n", "5\nhello\n0\n\n", "5;a=\nhello\r\n0\r\n\r\n"):
                for path in PATHS:
                    got = self.statuses(port, with_body(body, CHUNKED)(path))
                    equal((body, path, len(got), got[0] in (400, 405)), (body, path, 1, True))

    def test_what_is_refused_behind_others(self):
        """The requests before it are answered first, and their bodies may have anything in them."""
        body = "\n: x\r\n\0\r\n\r\n"
        for port in self.each():
            for path in PATHS:
                first = head()(path) + with_body(body, "Content-Length: %d\r\n" % len(body))(path)
                for wrong in (": x\r\n", "X: \0\r\n"):
                    got = self.statuses(port, first + head(wrong)(path))
                    equal((path, wrong, len(got), got[0], got[-1]), (path, wrong, 3, 200, 400))

    def test_what_is_served(self):
        for port in self.each():
            for path in PATHS:
                for made, status in ((head(), 200), (head(version="1.0", host="", path=path), 200), (head(host="HOST:\tlocalhost:80\r\n"), 200),
                                     (head(path="http://127.0.0.1" + path, host="Host: evil.example\r\n"), 200),
                                     (head(path="HTTP://localhost:80" + path), 200),
                                     (head(path="http://evil.example" + path), 421), (head(host="Host: evil.example\r\n"), 421),
                                     (lambda at: "\r\n" + head()(at), 200), (head("X: a\r\n", "X: b\r\n"), 200)):
                    keeps = "1.0" not in made(path)
                    got = self.statuses(port, made(path), ends=not keeps)
                    # A server may close the connection of one that names another host.
                    equal(got, [status, 200] if keeps and (status == 200 or len(got) > 1) else [status])
            equal(self.statuses(port, head(path="http://127.0.0.1")(""), ends=False), [200, 200])
            equal(self.statuses(port, head(method="OPTIONS", path="*")(""))[0], 405)


main()
