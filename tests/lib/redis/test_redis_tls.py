#!/usr/bin/env python3
"""Jobs in Redis over TLS: rediss:// with the certificates of both sides, and what is refused."""
# tier: check
# needs: tests/test_redis_worker
import base64
import json
import os
import shutil
import unittest

from harness import WEEKWHEEL, WEEKWHEELD, Actor, Case, Redis, equal, free_port, lack, main, matches, run

JOBS, BODY = 60, 30_000


def certificate(name, signer=None):
    """Make NAME.pem with a certificate and NAME.key with its key, signed by itself or by another."""
    signed = ("-CA", signer + ".pem", "-CAkey", signer + ".key") if signer else ()
    run(0, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", name + ".key", "-out", name + ".pem",
        *signed)


def opened(url):
    """What a process that opens the store says first."""
    with Actor(url) as actor:
        return actor.process.stdout.readline().strip()


@unittest.skipUnless(shutil.which("openssl"), lack("openssl"))
class Tls(Case):
    def test_both_sides_show_certificates(self):
        for name, signer in (("ca", None), ("server", "ca"), ("client", "ca"), ("stranger", None)):
            certificate(name, signer)
        port = free_port()
        files = [os.path.abspath(name) for name in ("ca.pem", "client.pem", "client.key")]
        tls = ("--tls-port", str(port), "--tls-cert-file", os.path.abspath("server.pem"),
               "--tls-key-file", os.path.abspath("server.key"), "--tls-ca-cert-file", files[0])
        with Redis(*tls) as redis:
            redis.ask("ACL", "SETUSER", "weekwheel", "on", ">secret", "~{weekwheel*", "&weekwheel:*",
                      "+@all", "-@admin", "-@dangerous", "+info")
            url = f"rediss://weekwheel:secret@127.0.0.1:{port}/?ca={files[0]}&cert={files[1]}&key={files[2]}"
            with Actor(url) as actor:
                equal(actor.process.stdout.readline().strip(), "ok")
                actor.say("put", "t", 0, "hello")
                number = actor.process.stdout.readline().strip()
                actor.say("wait", "t", 10000)
                answer = actor.process.stdout.readline().split()
                equal((answer[1], answer[5]), (number, "hello"))
            # Bodies of several records, in one reply.
            lines = "".join(json.dumps({"tube": "big", "body": base64.b64encode(b"%d" % i + b"x" * BODY).decode()}) + "\n" for i in range(JOBS))
            with open("jobs", "w", encoding="ascii") as file:
                file.write(lines)
            run(0, WEEKWHEEL, "import", url, "jobs")
            equal(sorted(base64.b64encode(job["body"].encode()).decode() for job in map(json.loads, run(0, WEEKWHEEL, "export", url).out.splitlines())
                         if job.get("tube") == "big"), sorted(json.loads(line)["body"] for line in lines.splitlines()))
            os.mkfifo("pipe")
            for wrong, why in ((f"rediss://127.0.0.1:{port}/", "TLS: "),
                               (f"rediss://127.0.0.1:{port}/?ca={os.path.abspath('stranger.pem')}", "TLS: "),
                               (f"rediss://127.0.0.1:{port}/?ca={files[0]}", "cannot be reached"),
                               (f"rediss://127.0.0.1:{redis.port}/?ca={files[0]}", "TLS: "),
                               (f"rediss://localhost:{port}/?ca={files[0]}", "TLS: .*mismatch"),
                               (f"rediss://127.0.0.1:{port}/?ca=/none.pem", "the file of authorities /none.pem"),
                               (f"rediss://127.0.0.1:{port}/?ca={os.path.abspath('pipe')}", "/pipe is not a file"),
                               (f"rediss://127.0.0.1:{port}/?ca={files[0]}&cert={files[1]}&key={files[0]}", "the key ")):
                matches(why, run(1, WEEKWHEEL, "export", wrong).err)
            # A file that is wrong is a wrong setting: no other start repairs it.
            said = run(2, WEEKWHEELD, "--store", f"rediss://127.0.0.1:{port}/?ca=/none.pem").err
            matches("the file of authorities /none.pem: No such file or directory", said)
            equal("password" in said, False)
            matches("TLS: ", run(1, WEEKWHEELD, "--store", f"rediss://127.0.0.1:{port}/").err)


main()
