"""What the tests of packages for other languages share: files of theirs, a token, and a server that speaks TLS."""
import contextlib
import hashlib
import os
import re

from harness import Server, run

TOKEN = "token-of-a-test-with-some-length"


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(name, 0o600)


def write_grants(*rights):
    """Let the token do this at a server whose --auth-file is "tokens"."""
    write("tokens", " ".join(["site", "sha256:" + hashlib.sha256(TOKEN.encode()).hexdigest(), *rights]) + "\n")


def listens(server, where):
    """Wait until the server says that it listens at another address, too."""
    while not (found := re.search(where, server.said)):
        server.said += server.process.stderr.readline()
    return found


@contextlib.contextmanager
def tls_server():
    """A server and its address. Its certificate, which is its own authority, is in ca.pem."""
    run(0, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "ca.pem")
    with Server("--listen", "tls:127.0.0.1:0", "--tls-cert", "ca.pem", "--tls-key", "key.pem") as server:
        yield "tls:localhost:" + listens(server, r"listening on tls:127\.0\.0\.1:(\d+)")[1]
