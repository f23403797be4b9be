"""A pool of sessions of PostgreSQL in transaction mode, as pgbouncer is one: a client has a session for the length of a
transaction, and the next transaction, of this client or another, may get another session.

It speaks as much of the protocol as statements need, alone or with arguments. As pgbouncer's, it resets nothing between two
clients, and tells each of them a process of its own.
"""
import contextlib
import os
import queue
import random
import socket
import struct
import threading

from harness import close_listener

REQUESTS = {80877103: b"N", 80877104: b"N"}  # for TLS, and for GSSAPI: there is none
IDLE = b"I"


class Wire:
    """A connection, message by message."""

    def __init__(self, connection):
        self.socket, self.file = connection, connection.makefile("rb")
        if connection.family == socket.AF_INET:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        self.file.close()
        self.socket.close()

    def bytes(self, count):
        got = self.file.read(count)
        if len(got) < count:
            raise EOFError
        return got

    def body(self):
        return self.bytes(struct.unpack("!I", self.bytes(4))[0] - 4)

    def message(self):
        kind = self.bytes(1)
        return kind, self.body()

    def send(self, kind, body):
        self.socket.sendall(kind + struct.pack("!I", len(body) + 4) + body)

    def pass_answer(self, to):
        """What it answers to a statement goes on. Returns the state of its transaction."""
        kind = None
        while kind != b"Z":
            kind, body = self.message()
            to.send(kind, body)
        return body


class Pool:
    """It has so many sessions, of one user and database."""

    def __init__(self, postgres, sessions, user="postgres", database="postgres"):
        self.greeting, self.free, self.all = [], queue.Queue(), []
        self.user, self.database, self.path = user, database, os.path.join(postgres.folder, ".s.PGSQL.5432")
        for _ in range(sessions):
            self.begin_session()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://{user}@127.0.0.1:{self.listener.getsockname()[1]}/{database}?sslmode=disable"
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        close_listener(self.listener)
        for session in self.all:
            session.socket.shutdown(socket.SHUT_RDWR)

    def begin_session(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.path)
        session = Wire(connection)
        words = f"user\0{self.user}\0database\0{self.database}\0client_encoding\0UTF8\0\0".encode()
        session.send(b"", struct.pack("!I", 196608) + words)
        self.greeting, kind = [], None
        while kind != b"Z":
            kind, body = session.message()
            assert kind != b"E", body
            if kind == b"S":
                self.greeting.append(body)
        self.all.append(session)
        self.free.put(session)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(Wire(self.listener.accept()[0]),), daemon=True).start()

    def serve(self, client):
        session = None
        with contextlib.suppress(EOFError, OSError):
            self.greet(client)
            while (message := client.message())[0] != b"X":
                session = session or self.free.get()
                session.send(*message)
                # A statement, or the end of several messages that make one.
                if message[0] in b"QS" and session.pass_answer(client) == IDLE:
                    self.free.put(session)
                    session = None
        if session:  # it left in a transaction
            session.close()
            self.all.remove(session)
            self.begin_session()
        client.close()

    def greet(self, client):
        while (code := struct.unpack("!I", (body := client.body())[:4])[0]) in REQUESTS:
            client.socket.sendall(REQUESTS[code])
        assert code == 196608, body
        client.send(b"R", struct.pack("!I", 0))
        for parameter in self.greeting:
            client.send(b"S", parameter)
        client.send(b"K", struct.pack("!II", random.randrange(1 << 31), 7))
        client.send(b"Z", IDLE)
