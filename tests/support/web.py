"""Servers with /v1 and a token, and clients of theirs: of its objects, and of its events."""
import http.client
import json
import os
import re
import socket

from harness import PATIENCE, Redis, Server, alone, check, equal

JSON = "application/json"


def token_of(name, *grants):
    """Make a token, and its line in the file that the server reads."""
    made = alone.run(0, "token", "--token-file", name + ".token", name, *grants)
    with open("tokens", "a", encoding="utf-8") as file:
        file.write(made.out)
    os.chmod("tokens", 0o600)
    with open(name + ".token", encoding="utf-8") as file:
        return file.read().strip()


class Web:
    """Speaks HTTP to a server, with a token. One connection, which is kept."""

    def __init__(self, server, token):
        port = int(re.search(r"serving http://[0-9.]+:(\d+)/", server.said).group(1))
        self.http, self.token = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE), token

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.close()

    def begin(self, method, path, body=None, **headers):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        if data is not None:
            headers.setdefault("Content-Type", JSON)
        self.http.request(method, "/v1/" + path, data, headers)

    def end(self):
        answer = self.http.getresponse()
        text = answer.read()
        self.etag = answer.getheader("ETag")
        kind = answer.getheader("Content-Type")
        if answer.status == 204:
            equal(text, b"")
            return 204, None
        equal(kind, "application/problem+json" if answer.status >= 400 else JSON)
        said = json.loads(text)
        if answer.status >= 400:
            equal(said["status"], answer.status)
        return answer.status, said

    def ask(self, method, path, body=None, **headers):
        self.begin(method, path, body, **headers)
        return self.end()

    def good(self, method, path, body=None, **headers):
        status, said = self.ask(method, path, body, **headers)
        check(status < 300, (method, path, status, said))
        return said

    def text(self, path):
        """What is not under /v1."""
        self.http.request("GET", path, headers={"Authorization": "Bearer " + self.token})
        answer = self.http.getresponse()
        equal(answer.status, 200)
        return answer.read().decode()

    def refused(self, status, field, method, path, body=None, **headers):
        got, said = self.ask(method, path, body, **headers)
        equal((got, said.get("field")), (status, field), said)
        return said["detail"]


class Events:
    """Reads the stream of a server."""

    def __init__(self, server, token, query="", last=None, room=None):
        port = int(re.search(r"serving http://[0-9.]+:(\d+)/", server.said).group(1))
        self.socket = socket.socket()
        if room:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        head = ["GET /v1/events%s HTTP/1.1" % query, "Host: 127.0.0.1:%d" % port]
        head += ["Authorization: Bearer " + token] if token else []
        head += ["Last-Event-ID: " + last] if last else []
        self.socket.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
        self.answer = http.client.HTTPResponse(self.socket)
        self.answer.begin()
        self.status, self.last = self.answer.status, last
        if self.status != 200:
            self.problem = json.loads(self.answer.read())
            return
        equal(self.answer.getheader("Content-Type"), "text/event-stream")
        name, self.begun = self.next()
        equal(name, "begin")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.answer.close()
        self.socket.close()

    def next(self):
        """Return the name and the data of the next event, or None at the end."""
        name = data = None
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
            elif line.startswith("id: "):
                self.last = line[4:]
            elif not line and name:
                return name, data
            elif not line and self.answer.isclosed():
                return None

    def names(self, count):
        return [self.next()[0] for _ in range(count)]


class Stores:
    """A case of each kind of store is this and a Case."""

    arguments = ()

    def setUp(self):
        super().setUp()
        self.token = token_of("admin", "admin:*")
        self.mailer = token_of("mailer", "work:mail", "put:results")
        self.reader = token_of("reader", "read:mail")

    def server(self, *more, **env):
        server = Server("--http", "127.0.0.1:0", "--auth-file", "tokens", *self.arguments, *more,
                        WEEKWHEEL_TOKEN=self.token, **env)
        client, token = server.client, self.token

        def login():
            entered = client()
            equal(entered.ask("auth " + token), "OK")
            return entered

        server.client = login
        return server


class ByRedis(Stores):
    def setUp(self):
        super().setUp()
        self.redis = Redis()
        self.addCleanup(self.redis.kill)
        self.arguments = ("--store", self.redis.url)
