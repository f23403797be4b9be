#!/usr/bin/env python3
"""Who may do what: what speaks another protocol, tokens and their rights, and where a server listens."""
# tier: check
import hashlib
import os
import re
import select
import signal
import socket

from harness import Case, Client, Redis, Server, check, conversation, equal, main, matches, refused, until


def ends(client):
    """Wait until the server closes the connection. Return all that it said before."""
    while not client.is_closed():
        pass
    return client.kept


class Foreign(Case):
    """A web page can make a browser send bytes to any port of its user's machine."""

    def test_a_request_of_a_browser_is_closed_before_its_body_is_carried_out(self):
        body = "put 0 0 60 4\r\nevil\r\n"
        head = "Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        requests = ["%s / HTTP/1.1\r\nHost: 127.0.0.1\r\n%s" % (method, head)
                    for method in ("POST", "GET", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH")]
        requests.append("FOO / HTTP/1.1\r\nhost: 127.0.0.1\r\n" + head)
        requests.append("POST /%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s" % ("x" * 5000, head))
        with Server() as server, server.client() as a:
            for request in requests:
                for pieces in ((request,), request):  # all at once, and byte for byte
                    with server.client() as browser:
                        try:
                            for piece in pieces:
                                browser.send(piece)
                        except OSError:
                            pass
                        check(ends(browser) in (b"", b"UNKNOWN_COMMAND\r\n"), request)
            equal(a.numbers("stats")["cmd-put"], "0")
            server.stop()
            matches(r"clients that speak HTTP or TLS .* from 127\.0\.0\.1:\d+$", server.said)
            # The log is not filled with them.
            check(server.said.count("speaks HTTP") < len(requests), server.said)

    def test_what_was_put_before_stays(self):
        with Server() as server, server.client() as a:
            a.send("put 0 0 60 6\r\nPOST /\r\nPUT 0 0 60 1\r\nGET / HTTP/1.1\r\nput 0 0 60 1\r\nx\r\n")
            ends(a)
            with server.client() as b:
                equal(b.ask("reserve"), "RESERVED 1 6|POST /")
                equal(b.numbers("stats")["cmd-put"], "1")


def token(name):
    return "the-secret-token-of-" + name


def line(name, grants):
    return "%s sha256:%s %s\n" % (name, hashlib.sha256(token(name).encode()).hexdigest(), grants)


TOKENS = (line("all", "admin:*") + "# the others\n\n" + line("worker", "work:mail,mail.* put:results") +
          line("putter", "put:mail.*") + line("reader", "read:mail") + line("ends", "read:*s,a*b*c"))


def write(text=TOKENS, path="tokens", mode=0o600):
    """Exchange the file, as an editor does."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path + ".new", mode)
    os.rename(path + ".new", path)
    return path


def guarded(*arguments):
    return Server("--auth-file", write(), *arguments)


def login(server, name):
    client = server.client()
    equal(client.ask("auth " + token(name)), "OK")
    return client


def http(server, path, host=None, name=None, field=None):
    """The status and the text of an answer."""
    port = int(re.search(r"serving http://127\.0\.0\.1:(\d+)/", server.said).group(1))
    lines = ["GET %s HTTP/1.0" % path]
    lines += ["Host: " + host] if host is not None else []
    lines += ["Authorization: " + (field or "Bearer " + token(name))] if field or name else []
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    return int(answer.split()[1]), answer


def http_number(server, name):
    text = http(server, "/metrics", name="all")[1]
    return int(re.search("^weekwheeld_" + re.escape(name) + r" (\d+)", text, re.M).group(1))


class Tokens(Case):
    def test_without_a_token_only_auth_and_quit_are_open(self):
        with guarded() as server, server.client() as a:
            for verb in ("use x", "watch x", "ignore x", "reserve", "reserve-with-timeout 0", "delete 1", "release 1 0 0", "bury 1 0",
                         "touch 1", "kick 1", "kick-job 1", "peek 1", "peek-ready", "peek-delayed", "peek-buried", "stats",
                         "stats-job 1", "stats-tube default", "list-tubes", "list-tube-used", "list-tubes-watched",
                         "pause-tube default 1", "reserve-job 1", "move 1 0", "move-key k 0", "delete-key k",
                         "release-job 1 0 0 x", "bury-job 1 0 x", "delete-job 1", "peek-key k", "stats-key k", "list-delayed",
                         "list-delayed id=1", "forecast 1 1", "advance 1", "limit-tube default running=1",
                         "list-limits", "list-schedules", "delete-schedule n", "pause-schedule n", "resume-schedule n",
                         "run-schedule n"):
                equal(a.ask(verb), "DENIED", verb)
            for put in ("put 0 0 60 1\r\nx\r\n", "put 0 0 60 0\r\n\r\n", "put 0 0 60 99999\r\n%s\r\n" % ("x" * 99999),
                        "put-key 0 0 60 1 k\r\nx\r\n", "put-at 0 0 60 1 k\r\nx\r\n",
                        "put-schedule 0 0 60 1 k cron=%40daily\r\nx\r\n"):
                equal(a.ask(put.encode()), "DENIED", put[:30])
            conversation(a, ("nix", "UNKNOWN_COMMAND"), ("delete x", "BAD_FORMAT"), ("auth", "UNKNOWN_COMMAND"),
                         ("auth ", "BAD_FORMAT"), ("auth a b", "BAD_FORMAT"), ("auth " + token("all"), "OK"),
                         (b"put 0 0 60 1\r\nx\r\n", "INSERTED 1"), ("reserve", "RESERVED 1 1|x"))
            a.send("quit\r\n")
            equal(ends(a), b"")

    def test_commands_that_are_sent_along_run_as_who_is_known_then(self):
        with guarded() as server, server.client() as a:
            a.send("put 0 0 60 4\r\nauth\r\nauth %s\r\nput 0 0 60 6\r\nauth x\r\nstats-tube default\r\n" % token("all"))
            equal([a.answer() for _ in range(3)], ["DENIED", "OK", "INSERTED 1"])
            matches("current-jobs-ready: 1$", a.answer())

    def test_rights_are_those_of_a_line(self):
        with guarded() as server, login(server, "all") as a, login(server, "worker") as w, \
                login(server, "putter") as p, login(server, "reader") as r:
            for number, tube in enumerate(("default", "mail", "mail.x", "results")):
                equal(a.put(b"x", tube=tube, delay=9), "INSERTED %d" % (number + 1))
            # Every tube that it watches has to be its.
            conversation(w, ("reserve", "DENIED"), ("watch mail", "WATCHING 2"), ("reserve-with-timeout 0", "DENIED"),
                         ("ignore default", "WATCHING 1"), ("reserve-with-timeout 0", "TIMED_OUT"),
                         ("watch results", "WATCHING 2"), ("reserve", "DENIED"), ("ignore results", "WATCHING 1"),
                         # What there is in tubes of others does not show.
                         ("reserve-job 1", "NOT_FOUND"), ("reserve-job 4", "NOT_FOUND"), ("reserve-job 9", "NOT_FOUND"),
                         ("kick-job 1", "NOT_FOUND"), ("move 1 5", "NOT_FOUND"), ("delete 1", "NOT_FOUND"), ("delete 4", "NOT_FOUND"),
                         ("release 1 0 0", "NOT_FOUND"), ("bury 1 0", "NOT_FOUND"), ("touch 1", "NOT_FOUND"), ("delete 9", "NOT_FOUND"),
                         ("peek 2", "DENIED"), ("list-delayed id=2", "DENIED"), ("stats", "DENIED"),
                         ("reserve-job 2", "RESERVED 2 1|x"))
            # It may look at what it has reserved.
            check(w.ask("peek 2").startswith("FOUND 2") and w.ask("stats-job 2").startswith("OK "), "peek")
            check('"id":2' in w.ask("list-delayed id=2"), "list")
            conversation(w, ("touch 2", "TOUCHED"), ("release 2 0 9", "RELEASED"), ("kick-job 3", "KICKED"), ("move 2 7", "MOVED 3"),
                         ("delete 2", "DELETED"), ("use mail", "USING mail"), (b"put 0 0 9 1\r\nx\r\n", "DENIED"), ("kick 1", "KICKED 0"),
                         ("pause-tube mail 1", "DENIED"), ("use results", "USING results"), (b"put 0 0 9 1\r\nx\r\n", "INSERTED 5"),
                         ("kick 1", "DENIED"), ("delete 5", "NOT_FOUND"))
            # Who puts may take back by the key.
            conversation(p, (b"put 0 0 9 1\r\nx\r\n", "DENIED"), ("use mail.y", "USING mail.y"),
                         (b"put-key 0 9 9 1 k\r\nx\r\n", "INSERTED 6"), ("move-key k 8", "MOVED 2"), ("peek-key k", "DENIED"),
                         ("delete 6", "DENIED"), ("delete-key k", "DELETED"), ("use mail", "USING mail"),
                         (b"put 0 0 9 1\r\nx\r\n", "DENIED"), ("delete-key k", "DENIED"), ("reserve", "DENIED"))
            equal(a.put(b"y", tube="mail", delay=9), "INSERTED 7")
            conversation(r, ("peek 7", "FOUND 7 1|y"), ("peek 1", "NOT_FOUND"), ("stats-job 1", "NOT_FOUND"), ("peek 99", "NOT_FOUND"),
                         ("stats-job 99", "NOT_FOUND"), ("list-delayed id=99", "OK 0|"), ("peek-delayed", "DENIED"), ("use mail", "USING mail"),
                         ("peek-delayed", "FOUND 7 1|y"), ("delete 7", "DENIED"), ("kick-job 7", "DENIED"), ("move 7 1", "DENIED"),
                         ("reserve-job 7", "DENIED"), ("list-tubes", "DENIED"), ("list-delayed", "DENIED"),
                         ("list-delayed tube=mail.x", "DENIED"), ("list-delayed id=1", "OK 0|"), ("forecast 1 1", "DENIED"),
                         ("stats-tube default", "DENIED"), ("pause-tube mail 1", "DENIED"),
                         ("limit-tube mail running=1", "DENIED"), ("list-limits", "DENIED"), ("list-limits tube=other", "DENIED"))
            for verb in ("stats", "stats-tube mail", "list-limits tube=mail", "list-delayed tube=mail", "list-delayed id=7", "forecast 1 1 tube=mail", "stats-job 7"):
                check(r.ask(verb).startswith("OK "), verb)
            conversation(a, ("pause-tube mail 1", "PAUSED"), ("limit-tube mail running=1", "LIMITED"), ("auth " + token("reader"), "OK"), ("pause-tube mail 0", "DENIED"))

    def test_rights_over_a_shared_store(self):
        """There a task looks up the tube of a job, while tokens may be read again."""
        with Redis() as redis, redis.server("--auth-file", write()) as server, login(server, "all") as a, \
                login(server, "reader") as r, login(server, "worker") as w:
            equal(a.put(b"x", tube="mail", delay=99)[:8], "INSERTED")
            mine = a.jobs("list-delayed tube=mail")[0]["id"]
            equal(a.put(b"y", tube="other", delay=99)[:8], "INSERTED")
            others = a.jobs("list-delayed tube=other")[0]["id"]
            conversation(r, ("peek %d" % mine, "FOUND %d 1|x" % mine), ("peek %d" % others, "NOT_FOUND"),
                         ("stats-job %d" % others, "NOT_FOUND"), ("list-delayed id=%d" % others, "OK 0|"), ("delete %d" % mine, "DENIED"))
            # Answers keep their order when some of a list are denied.
            w.send("".join("delete %d\r\n" % number for number in (others, mine, 1 << 60, others)))
            equal([w.line() for _ in range(4)], ["NOT_FOUND", "DELETED", "NOT_FOUND", "NOT_FOUND"])
            w.send("kick-job %d\r\nput 0 0 9 1\r\nx\r\nuse results\r\nput 0 0 9 1\r\nx\r\nmove %d 1\r\n" % (others, others))
            answers = [w.line() for _ in range(5)]
            answers[3] = answers[3][:8]
            equal(answers, ["NOT_FOUND", "DENIED", "USING results", "INSERTED", "NOT_FOUND"])
            # Reading tokens again while tasks look leaves none behind.
            with login(server, "putter") as p:
                for number in range(50):
                    r.send("peek %d\r\n" % others * 20)
                    write(TOKENS.replace("put:mail.*", "put:mail.*,x%d" % number) if number % 2 else TOKENS)
                    server.process.send_signal(signal.SIGHUP)
                ends(p)
            equal([r.line() for _ in range(1000)], ["NOT_FOUND"] * 1000)
            equal(a.ask("stats-job %d" % others)[:2], "OK")

    def test_patterns(self):
        with guarded() as server, login(server, "ends") as a:
            for tube, good in (("s", 1), ("xs", 1), ("sx", 0), ("abc", 1), ("aabbcc", 1), ("axbc", 1), ("ab", 0), ("acb", 0),
                               ("abcd", 0), ("mail", 0), ("a" * 99 + "b" * 50 + "c", 1), ("a" * 200, 0)):
                equal(a.ask("stats-tube " + tube), "NOT_FOUND" if good else "DENIED", tube)

    def test_wrong_tokens_wait_longer_and_longer(self):
        with guarded("--clock", "virtual") as server, login(server, "all") as boss, server.client() as a:
            for number, pause in enumerate((0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 6.4, 6.4)):
                a.send("auth %s\r\nauth %s\r\n" % ("x" * (10 + 20 * number), token("all")))
                # What is sent along waits, too.
                boss.ask("advance %.2f" % (pause - 0.01))
                boss.ask("stats")
                boss.ask("stats")
                a.socket.setblocking(False)
                self.assertRaises(BlockingIOError, a.socket.recv, 1)
                a.socket.settimeout(60)
                boss.ask("advance %.2f" % pause)
                equal([a.line(), a.line()], ["DENIED", "OK"])
            server.stop()
            for number in (1, 2, 4, 8):
                matches(r"a wrong token from 127\.0\.0\.1:\d+, number %d from there" % number, server.said)
            equal(server.said.count("a wrong token"), 4)
            check(token("all") not in server.said and "xxxx" not in server.said, server.said)

    def test_a_guesser_on_many_connections_locks_nobody_out(self):
        with guarded("--clock", "virtual", "--http", "127.0.0.1:0") as server, login(server, "all") as boss:
            guessers = [server.client() for _ in range(7)]
            for client in guessers:
                self.addCleanup(client.close)
                client.send("auth %s\r\n" % ("wrong" * 5))
            until(lambda: http_number(server, "auth_failures_total") == 7, "they are seen")
            # Right tokens that never came from there before get in while the clock stands, and no answer to a wrong one has come.
            for name in ("reader", "worker", "putter"):
                login(server, name).close()
            equal(http(server, "/list?tube=mail", name="reader")[0], 200)
            equal(select.select([client.socket for client in guessers], [], [], 0)[0], [])
            # The answers come one after the other, 12.7 s after the first token at last.
            for seconds, count in ((0.11, 1), (0.2, 2), (0.4, 3), (12.1, 7)):
                boss.ask("advance %s" % seconds)
                until(lambda n=count: len(select.select([client.socket for client in guessers], [], [], 0)[0]) == n, "the answers")
            equal({client.line() for client in guessers}, {"DENIED"})
            # More than can be answered soon are closed.
            crowd = [server.client() for _ in range(20)]
            for client in crowd:
                self.addCleanup(client.close)
                client.send("auth %s\r\n" % ("wrong" * 5))
            check(any(ends(client) == b"" for client in crowd[-1:]), "the last is closed")
            login(server, "reader").close()
            server.stop()
            matches("wrong tokens or passwords come from one address faster than they are answered", server.said)

    def test_lines_before_a_token_are_counted(self):
        for line_ in ("nix", "delete x", "peek 1", "auth a b"):
            with guarded() as server, server.client() as a:
                a.send((line_ + "\r\n") * 100)
                check(ends(a).count(b"\r\n") <= 64, "it is closed")
                server.stop()
                matches("too many lines without a token from 127", server.said)

    def test_a_client_that_says_no_token_is_closed(self):
        with guarded("--clock", "virtual") as server, login(server, "all") as boss, server.client() as a:
            equal(a.ask("use x"), "DENIED")
            boss.ask("advance 31")
            equal(ends(a), b"")
            check(boss.ask("stats").startswith("OK "), "the one with a token stays")

    def test_wrong_tokens_give_no_more_time(self):
        with guarded("--clock", "virtual") as server, login(server, "all") as boss, server.client() as a:
            for _ in range(2):
                a.send("auth wrong-wrong-wrong-wrong\r\n")
                until(lambda: boss.ask("advance 0.01") and select.select([a.socket], [], [], 0)[0], "the answer")
                equal(a.line(), "DENIED")
                boss.ask("advance 14")
            boss.ask("advance 3")
            equal(ends(a), b"")

    def test_the_file_is_read_again(self):
        with guarded() as server, login(server, "all") as a, login(server, "worker") as w, login(server, "reader") as r:
            w.send("watch mail\r\nignore default\r\nreserve\r\n")
            a.until_waiting()
            equal(a.put(b"x", tube="mail.x"), "INSERTED 1")
            # A file that is wrong changes nothing.
            for text, mode in (("nix\n", 0o600), (TOKENS, 0o644), (TOKENS.replace("read:*s", "read:*s "), 0o600)):
                write(text, mode=mode)
                server.process.send_signal(signal.SIGHUP)
                until(lambda: "the tokens stay" in server.process.stderr.readline(), "the message")
                check(r.ask("stats-tube mail").startswith("OK"), "reader")
            write(line("all", "admin:*") + line("worker", "work:other") + line("reader", "read:mail"))
            server.process.send_signal(signal.SIGHUP)
            # Who waited with former rights waits no more.
            equal(ends(w), b"WATCHING 2\r\nWATCHING 1\r\n")
            equal(r.ask("stats-tube mail"), "NOT_FOUND")
            a.put(b"y", tube="mail")
            with server.client() as late:
                equal(late.ask("auth " + token("putter")), "DENIED")
            with login(server, "worker") as again:
                conversation(again, ("watch mail", "WATCHING 2"), ("ignore default", "WATCHING 1"), ("reserve", "DENIED"))

    def test_a_wrong_file_is_refused(self):
        good = line("a", "read:*")
        for text, remedy in (
                ("", "it has no token"), ("# nothing\n", "it has no token"), (good + "x\n", "line 2: after the name stands sha256:"),
                ("a secret read:*\n", "line 1: after the name stands sha256:"), (good.upper(), "line 1: after"),
                ("\n" + line("b", ""), "line 2: it grants nothing"), (line("b", "reed:*"), "line 1: 'reed:*' does not begin with rights"),
                (line("b", "read"), "line 1: 'read' does not"), (line("b", "read,:*"), "line 1: 'read,:*' does not"),
                (line("b", "read:"), "line 1: 'read:' has to end in names of tubes"), (line("b", "read:a,"), "has to end in"),
                (line("b", "read:a?"), "has to end in"), (line("b", "read:" + "a" * 201), "has to end in"),
                (good + good, "line 2: an earlier line has the same token"), (line("a\xe9", "read:*"), "line 1: a name has"),
                (line("a" * 65, "read:*"), "line 1: a name has"), ("\0" + good, "a byte 0")):
            said = refused("--memory", "--auth-file", write(text))
            check("--auth-file 'tokens': expected a file with tokens: " in said and remedy in said, (text, said))
            check("secret" not in said, said)
        for mode in (0o644, 0o604, 0o620, 0o602):
            matches("others may read or write it: \"chmod 600\"", refused("--memory", "--auth-file", write(good, mode=mode)))
        matches("No such file", refused("--memory", "--auth-file", "nix"))
        os.mkfifo("fifo")
        matches("it is not a file", refused("--memory", "--auth-file", "fifo"))
        matches("it is a directory", refused("--memory", "--auth-file", "/"))
        with Server("--auth-file", write(good.replace("\n", "\r\n"), mode=0o640)) as server:
            login(server, "a").close()

    def test_huge_tokens(self):
        with guarded() as server, server.client() as a:
            conversation(a, ("auth " + "x" * 201, "DENIED"), ("auth " + "x" * 2030, "DENIED"), ("auth " + "x" * 5000, "BAD_FORMAT"),
                         ("auth " + token("all"), "OK"))

    def test_a_server_without_tokens_takes_any(self):
        with Server() as server, server.client() as a:
            conversation(a, ("auth x", "OK"), (b"put 0 0 60 1\r\nx\r\n", "INSERTED 1"))


class Http(Case):
    def test_names_of_others_are_refused(self):
        with Server("--http", "127.0.0.1:0", "--http-host", "jobs.example.org", "--http-host", "jobs") as server:
            for host in (None, "localhost", "LocalHost:8080", "localhost.", "127.0.0.1", "127.0.0.1:1", "192.0.2.7:80", "[::1]", "[::1]:5",
                         "jobs.example.org", "Jobs.Example.org:5", "jobs.example.org.", "jobs"):
                for path in ("/metrics", "/healthz", "/list"):
                    equal(http(server, path, host)[0], 200, host)
            for host in ("evil.example", "", "localhost.evil.example", "127.0.0.1.evil.example", "jobs.example", "xjobs", "127.0.0.1:x",
                         "x" * 300, "[localhost", "127.1", "2130706433", "localhost@evil.example"):
                for path in ("/metrics", "/healthz", "/list", "/livez"):
                    status, text = http(server, path, host)
                    equal(status, 421, host)
                    check("--http-host NAME" in text and "weekwheeld_" not in text, text)
        matches("is for --http", refused("--memory", "--http-host", "x"))
        matches("--http-host 'a:1': expected a name without a port", refused("--memory", "--http", "127.0.0.1:0", "--http-host", "a:1"))

    def test_what_http_shows_is_what_a_token_may_read(self):
        with guarded("--http", "127.0.0.1:0", "--clock", "virtual") as server, login(server, "all") as a:
            a.put(b"x", tube="mail", delay=99)
            a.put(b"x", tube="other", delay=99)
            for path in ("/healthz", "/readyz", "/livez"):
                equal(http(server, path)[0], 200)
            for path in ("/metrics", "/list", "/forecast", "/list?tube=mail"):
                for field in (None, "Bearer", "Bearer ", "Bearer wrong", "Basic " + token("all"), token("all"), "Bearer " + "x" * 5000,
                              "Bearer %s x" % token("all")):
                    a.ask("advance 7")
                    status, text = http(server, path, field=field)
                    equal(status, 401, (path, field))
                    check("WWW-Authenticate: Bearer" in text and '"id"' not in text, text)
                a.ask("advance 7")
                equal(http(server, path, name="all")[0], 200)
                equal(http(server, path, field="bearer " + token("all"))[0], 200)
                equal(http(server, path, name="worker")[0], 403)
                equal(http(server, path, name="reader")[0], 200 if "tube=mail" in path else 403)
            for path, status in (("/list?tube=other", 403), ("/forecast?tube=other", 403), ("/list?tube=mail&tube=other", 400), ("/list?id=1", 400)):
                equal(http(server, path, name="reader")[0], status, path)
            equal(http(server, "/list?tube=mail", name="reader")[1].count('"id"'), 1)
            matches(r"weekwheeld_auth_failures_total 1\d$|weekwheeld_auth_failures_total [2-9]$", http(server, "/metrics", name="all")[1].replace("\r", ""))
            server.stop()
            matches("a wrong token from 127.0.0.1", server.said)


    def test_a_guesser_rests(self):
        with guarded("--http", "127.0.0.1:0", "--clock", "virtual") as server, login(server, "all") as a:
            for seconds in (1, 1, 2, 7, 7):
                equal(http(server, "/metrics", field="Bearer wrong-wrong-wrong-wrong")[0], 401)
                status, text = http(server, "/list", field="Bearer wrong-wrong-wrong-wrong")
                equal(status, 429)
                matches("^Retry-After: %d\r$" % seconds, text)
                # Right ones are looked at at once.
                equal([http(server, "/metrics", name=name)[0] for name in ("all", "reader")], [200, 403])
                equal(http(server, "/livez")[0], 200)
                a.ask("advance 20")
            equal(http(server, "/list?tube=mail", name="reader")[0], 200)
            # The job port is the same door.
            with server.client() as guesser:
                guesser.send("auth %s\r\n" % ("wrong" * 5))
                until(lambda: http_number(server, "auth_failures_total") == 11, "it is seen")
                equal(http(server, "/metrics", field="Bearer wrong-wrong-wrong-wrong")[0], 429)


class Listening(Case):
    def test_other_machines_need_tls_and_tokens(self):
        write()
        for arguments, why in ((("--listen", "0.0.0.0:0"), "everybody could use it, unencrypted"),
                               (("--listen", "[::]:0"), "everybody could use it"),
                               (("--listen", "0.0.0.0:0", "--auth-file", "tokens"), "tokens and jobs would pass unencrypted"),
                               (("--listen", "tls:0.0.0.0:0", "--tls-cert", "nix"), "no client needs a token or a certificate"),
                               (("--http", "0.0.0.0:0"), "everybody could use it")):
            said = refused("--memory", *arguments)
            check("other machines can reach" in said and why in said and "--insecure" in said, said)
        with Server("--listen", "0.0.0.0:0", "--insecure") as server:
            server.stop()
            matches("warning: other machines can reach 0.0.0.0", server.said)

    def test_a_unix_socket_has_a_mode_and_a_group(self):
        path = os.path.join(self.folder, "socket")
        with Server("--unix", path):
            equal(os.stat(path).st_mode & 0o777, 0o600)
        with Server("--unix", path, "--socket-mode", "0660", "--socket-group", "root" if os.getuid() == 0 else str(os.getgid())):
            equal(os.stat(path).st_mode & 0o777, 0o660)
        if os.getuid() == 0:
            with Server("--unix", path, "--socket-group", "daemon"):
                check(os.stat(path).st_gid != 0, "the group")
        matches("there is no such group", refused("--memory", "--unix", path, "--socket-group", "nix", status=1))
        for arguments in (("--socket-mode", "0660"), ("--socket-group", "root")):
            matches("is for --unix PATH", refused("--memory", *arguments))
        for mode in ("9", "1777", "66", "rw", "00660"):
            matches("--socket-mode '%s': expected three octal digits" % mode,
                    refused("--memory", "--unix", path, "--socket-mode", mode))

    def test_a_unix_socket_asks_for_tokens(self):
        path = os.path.join(self.folder, "socket")
        with guarded("--unix", path), socket.socket(socket.AF_UNIX) as plain:
            plain.connect(path)
            with Client(plain) as a:
                conversation(a, ("stats", "DENIED"), ("auth wrong-wrong-wrong-wrong", "DENIED"), ("auth " + token("reader"), "OK"))


main()
