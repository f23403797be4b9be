#!/usr/bin/env python3
"""Jobs that weekwheeld delivers as HTTP requests to a receiver of the tests, from memory and from Redis."""
# tier: check, waits
import hashlib
import hmac
import http.server
import threading

from harness import PATIENCE, Case, Redis, Server, conversation, equal, main, matches, until
from web import Web, token_of


class Receiver(http.server.ThreadingHTTPServer):
    """Keeps the requests that it gets. Answers 204, or the statuses in `plan` for the path, the last one for ever."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server_port
        self.got, self.plan = [], {}
        self.go = threading.Event()  # what /slow waits for
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.go.set()
        self.shutdown()
        self.server_close()

    def wait(self, count):
        until(lambda: len(self.got) >= count, "%d requests came" % count)
        return self.got


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.got.append((self.command, self.path, dict(self.headers), body))
        if self.path == "/slow":
            self.server.go.wait(PATIENCE)
        plan = self.server.plan.get(self.path) or [204]
        self.send_response(plan.pop(0) if len(plan) > 1 else plan[0])
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_POST

    def log_message(self, *_):
        pass


def request(url, body=b"", method="POST", headers=""):
    return ("%s %s\n%s\n" % (method, url, headers)).encode() + body


def pushing(*arguments, redis=None, networks="loopback", **more):
    arguments = ("--push", "push,other", "--push-networks", networks) + arguments
    return redis.server(*arguments, **more) if redis else Server(*arguments, **more)


def with_each_store(test):
    def both(_):
        test(None)
        with Redis() as redis:
            test(redis)
    return both


def delivered(redis):
    with Receiver() as receiver, pushing(redis=redis) as server, server.client() as a:
        a.ask("use push")
        for number in range(20):
            assert a.put(request(receiver.url + "/hook?n=%d" % number, b"body %d" % number, "PUT",
                                 "X-Shop: %d\n" % number)).startswith("INSERTED ")
        got = receiver.wait(20)
        equal(sorted((method, path, headers["X-Shop"], body) for method, path, headers, body in got),
              sorted(("PUT", "/hook?n=%d" % number, str(number), b"body %d" % number) for number in range(20)))
        equal({headers["Weekwheel-Tube"] for _, _, headers, _ in got}, {"push"})
        a.until_stats("push-finished", 20)
        equal(a.all_jobs(), [])
        # Clients reserve the jobs of other tubes.
        a.put(b"not a request", tube="default")
        assert a.ask("reserve").endswith("|not a request")


def tried_again(redis):
    with Receiver() as receiver, pushing("--http", "127.0.0.1:0", redis=redis) as server, server.client() as a:
        receiver.plan = {"/flaky": [503, 204], "/down": [500], "/gone": [410]}
        a.ask("use push")
        for path in ("/flaky", "/down", "/gone"):
            text = request(receiver.url + path)
            answer = a.ask(b"put-key 0 0 60 %d %s attempts=2 backoff=0.05\r\n%s\r\n" % (len(text), path[1:].encode(), text))
            assert answer.startswith("INSERTED "), answer
        a.until_stats("current-jobs-buried", 2, "stats-tube push")
        until(lambda: a.ask("peek-key flaky") == "NOT_FOUND", "one has come through")
        equal(sorted(path for _, path, _, _ in receiver.got), ["/down", "/down", "/flaky", "/flaky", "/gone"])
        errors = {job["key"]: job["error"] for job in a.jobs("list-delayed state=buried")}
        equal(errors, {"down": "HTTP 500", "gone": "HTTP 410"})
        numbers = a.numbers("stats")
        equal([numbers["push-" + name] for name in ("finished", "buried")], ["1", "2"])
        for name, count in (("delivered", 5), ("done", 1), ("failed", 2), ("buried", 2)):
            line = 'weekwheeld_tube_%s_total{tube="push"} %d' % (name, count)
            until(lambda line=line: line in server.metrics(), line)
        server.stop()
        for key, count, error in (("down", 2, "HTTP 500"), ("gone", 1, "HTTP 410")):
            matches(r"of the tube push, key '%s' is buried \(deliveries: %d\): %s" % (key, count, error), server.said)


def keeps_limits(redis):
    with Receiver() as receiver, pushing(redis=redis) as server, server.client() as a:
        conversation(a, ("use push", "USING push"), ("limit-tube push running=2", "LIMITED"))
        for _ in range(5):
            assert a.put(request(receiver.url + "/slow")).startswith("INSERTED ")
        receiver.wait(2)
        a.until_stats("current-jobs-held", 3, "stats-tube push")
        equal(a.numbers("stats-tube push")["current-jobs-reserved"], "2")
        equal(len(receiver.got), 2)
        receiver.go.set()
        a.until_stats("push-finished", 5)
        equal(len(receiver.got), 5)
        # One at a time of each group, which take turns.
        receiver.go.clear()
        conversation(a, ("limit-tube push", "LIMITED"), ("limit-tube push running=1 each=yes", "LIMITED"))
        for group in "aaab":
            text = request(receiver.url + "/slow", group.encode())
            assert a.ask(b"put-key 0 0 60 %d - group=%s\r\n%s\r\n" % (len(text), group.encode(), text)).startswith("INSERTED ")
        receiver.wait(7)
        a.until_stats("current-jobs-held", 2, "stats-tube push")
        equal(sorted(body for _, _, _, body in receiver.got[5:]), [b"a", b"b"])
        receiver.go.set()
        a.until_stats("push-finished", 9)


def refuses_other_bodies(redis):
    with Receiver() as receiver, pushing("--http", "127.0.0.1:0", redis=redis) as server, server.client() as a:
        conversation(a, ("use other", "USING other"))
        for body in (b"", b"hello", b"POST ftp://example.org/\n\n", b"POST http://example.org/\nHost: x\n\n", b"\0"):
            equal(a.put(body), "BAD_FORMAT")
            equal(a.ask(b"put-key 0 0 60 %d k\r\n%s\r\n" % (len(body), body)), "BAD_FORMAT")
        assert a.put(request(receiver.url + "/")).startswith("INSERTED ")
        receiver.wait(1)
        equal(a.numbers("stats")["push-bodies-refused"], "10")
        assert "weekwheeld_push_bodies_refused_total 10" in server.metrics()


def can_connect(server):
    try:
        server.client().close()
    except OSError:
        return False
    return True


class Pushes(Case):
    test_delivered = with_each_store(delivered)
    test_failures_are_tried_again_and_buried = with_each_store(tried_again)
    test_limits_are_kept = with_each_store(keeps_limits)
    test_a_body_that_is_no_request_is_refused = with_each_store(refuses_other_bodies)

    def test_a_private_address_is_refused(self):
        with Receiver() as receiver, pushing(networks="192.0.2.0/24") as server, server.client() as a:
            a.put(request(receiver.url + "/"), tube="push")
            a.until_stats("current-jobs-buried", 1, "stats-tube push")
            equal((receiver.got, a.numbers("stats")["push-addresses-refused"]), ([], "1"))
            equal([job["error"] for job in a.jobs("list-delayed state=buried")],
                  ["the address 127.0.0.1 may not be called, since it is not public: weekwheeld --push-networks loopback allows it"])

    def test_a_host_that_does_not_answer_rests_and_delays_no_others(self):
        with Receiver() as receiver, pushing("--push-rest-after", "2", "--http", "127.0.0.1:0") as server, server.client() as a:
            for _ in range(50):
                a.put(request("http://127.0.0.2:1/"), tube="push")
            a.put(request(receiver.url + "/"), tube="push")
            receiver.wait(1)
            a.until_stats("push-hosts-resting", 1)
            assert "weekwheeld_push_rests_total 1" in server.metrics()
            assert int(a.numbers("stats")["push-rested"]) > 0
            server.stop()
            equal(server.said.count("The host 127.0.0.2, port 1, rests after 2 requests in a row without an answer"), 1)

    def test_signed(self):
        path = "secret"
        with open(path, "w") as file:
            file.write("secret\n")
        for arguments, env in ((("--push-secret-file", path), {}), ((), {"WEEKWHEELD_PUSH_SECRET": "secret"})):
            with Receiver() as receiver, pushing(*arguments, **env) as server, server.client() as a:
                a.put(request(receiver.url + "/x", b"hello"), tube="push")
                _, _, headers, body = receiver.wait(1)[0]
                signed = "\n".join((headers["Weekwheel-Timestamp"], headers["Weekwheel-Job-Id"], headers["Weekwheel-Token"], "POST",
                                    receiver.url + "/x", body.decode()))
                equal(headers["Weekwheel-Signature"], "v1=" + hmac.new(b"secret", signed.encode(), hashlib.sha256).hexdigest())

    def test_a_server_that_ends_waits_for_requests_under_way(self):
        data = "jobs"
        with Receiver() as receiver:
            with pushing("--data", data) as server:
                with server.client() as a:
                    a.put(request(receiver.url + "/slow"), tube="push")
                receiver.wait(1)
                ends = threading.Thread(target=server.stop)
                ends.start()
                until(lambda: not can_connect(server), "it ends")
                receiver.go.set()
                ends.join()
                equal(server.process.returncode, 0)
            with Server("--data", data) as server, server.client() as a:
                equal(a.all_jobs(), [])
            # The job of a request that takes too long is kept.
            receiver.go.clear()
            with pushing("--data", data, "--push-grace", "0") as server:
                with server.client() as a:
                    a.put(request(receiver.url + "/slow"), tube="push")
                receiver.wait(2)
                equal(server.stop(), 0)
            with Server("--data", data) as server, server.client() as a:
                equal(len(a.all_jobs()), 1)

    def test_two_servers_push_each_job_once(self):
        jobs = 200
        with Receiver() as receiver, Redis() as redis, pushing(redis=redis) as one, pushing(redis=redis) as two:
            with one.client() as a, two.client() as b:
                for number in range(jobs):
                    client = (a, b)[number % 2]
                    assert client.put(request(receiver.url + "/%d" % number), tube="push").startswith("INSERTED ")
                until(lambda: sum(int(client.numbers("stats")["push-finished"]) for client in (a, b)) == jobs, "all are finished")
            equal(sorted(int(path[1:]) for _, path, _, _ in receiver.got), list(range(jobs)))

    def test_a_job_that_a_server_without_push_took_is_buried_with_the_reason(self):
        """Only a server with --push knows which tubes are pushed. A job that another took is checked when due."""
        with Receiver() as receiver, Redis() as redis, redis.server() as other, pushing(redis=redis) as server:
            with other.client() as a, server.client() as b:
                a.ask("use push")
                reasons = {b"": "line 1: there is nothing", b"hello": "line 1: there is no URL",
                           b"POST ftp://example.org/\n\n": "line 1: the URL does not begin with http:// or https://",
                           request(receiver.url + "/", headers="Host: x\n"): "line 2: this header is not the job's to set"}
                for body, reason in reasons.items():
                    answer = a.put(body)
                    assert answer.startswith("INSERTED "), answer
                    number = answer.split()[1]
                    until(lambda number=number: [job for job in b.jobs("list-delayed id=" + number) if job["state"] == "buried"],
                          "it is buried")
                    equal([job["error"] for job in b.jobs("list-delayed id=" + number)],
                          ['no request, as "weekwheel put --url" composes it: ' + reason])
                equal(receiver.got, [])

    def test_redis_killed_and_back(self):
        with Receiver() as receiver, Redis() as redis, pushing("--redis-timeout", "0.5", redis=redis) as server:
            with server.client() as a:
                a.put(request(receiver.url + "/slow"), tube="push")
                receiver.wait(1)
                redis.kill()
                # The result waits until Redis is back.
                receiver.go.set()
                redis.start()
                until(lambda: "\npush-finished: 1\n" in a.ask("stats"), "it is finished")
                until(lambda: a.ask("list-delayed") == "OK 0|", "no job is left")
                equal(len(receiver.got), 1)

    def test_the_program_composes_requests(self):
        with Receiver() as receiver, pushing() as server, server.client() as a:
            def put(status, *arguments, text=""):
                return server.program.run(status, "put", "--tube", "push", *arguments, stdin=text.encode())

            for arguments, text in ((("--url", receiver.url + "/a", "--header", "X-A: 1", "-H", "X-B:  2 ", "-H", "X-C=3=4", "hello"), ""),
                                    (("--url", receiver.url + "/b", "--method", "GET"), ""),
                                    (("--url", receiver.url + "/c", "--method", "PUT", "-"), "from\n\nstdin"),
                                    (("--url", receiver.url + "/d", "--lines"), "1\n2\n")):
                equal(put(0, *arguments, text=text).err, "")
            got = sorted((path, method, body) for method, path, _, body in receiver.wait(5))
            equal(got, [("/a", "POST", b"hello"), ("/b", "GET", b""), ("/c", "PUT", b"from\n\nstdin"), ("/d", "POST", b"1"),
                        ("/d", "POST", b"2")])
            headers = [headers for _, path, headers, _ in receiver.got if path == "/a"][0]
            equal((headers["X-A"], headers["X-B"], headers["X-C"]), ("1", "2", "3=4"))
            for arguments, option, reason in (
                    (("--url", "ftp://example.org/"), "--url 'ftp://example.org/'", "does not begin with http:// or https://"),
                    (("--url", "example.org"), "--url 'example.org'", "does not begin with http:// or https://"),
                    (("--url", "http://ada:secret@example.org/"), "--url 'http://ada:", "use a header Authorization"),
                    (("--url", "http://example.org/a b"), "--url 'http://example.org/a b'", "must be written as %XX"),
                    (("--url", "http://example.org:99999/"), "--url 'http://example.org:99999/'", "port is above 65535"),
                    (("--url", "http://example.org/#a"), "--url 'http://example.org/#a'", "fragment"),
                    (("--url", ""), "--url ''", "there is no URL"),
                    (("--url", receiver.url, "-H", "Host: x"), "--header 'Host: x'", "not the job's to set"),
                    (("--url", receiver.url, "-H", "X-A: 1", "-H", "a b: c"), "--header 'a b: c'", "such as Content-Type"),
                    (("--url", receiver.url, "-H", "X-A: 1\nX-B: 2"), "--header 'X-A: 1?X-B: 2'", "cannot be sent"),
                    (("--url", receiver.url, "-H", "nothing"), "--header 'nothing'", "'Name: value'"),
                    (("--method", "PUT", "x"), "--method", "--url is missing"),
                    (("-H", "a b: c", "x"), "--header 'a b: c'", "visible ASCII"),
                    (("--url", receiver.url, "--method", "HEAD", "x"), "--method 'HEAD'", "no body"),
                    (("--url", receiver.url, "--method", "A B"), "--method 'A B'", "a word such as PUT"),
                    (("--url", receiver.url, "--method", "CONNECT"), "--method 'CONNECT'", "not CONNECT")):
                said = put(2, *arguments).err
                assert option in said and reason in said, (arguments, said)
            assert "has to be a request" in put(1, "no request").err
            equal(a.numbers("stats")["push-bodies-refused"], "1")

    def test_headers_of_the_job_are_sent(self):
        with Receiver() as receiver, pushing() as server, server.client() as a:
            def put(headers, of_request="X-Own: 1\n"):
                body = request(receiver.url + "/h", b"body", headers=of_request).decode()
                return a.ask("put-key 0 0 60 %d - headers=%d\r\n%s%s" % (len(headers + body), len(headers), headers, body))

            a.ask("use push")
            for bad in ("host: evil", "content-length: 1", "content_length: 1", "transfer-encoding: chunked", "connection: close",
                        "expect: x", "proxy-authorization: x", "weekwheel-token: 1"):
                equal(put(bad + "\n"), "BAD_FORMAT", bad)
            equal(a.numbers("stats")["push-bodies-refused"], "8")
            assert put("x-own: 2\ntraceparent: 00-1-2-01\nempty: \ncontent-type: a/b\n").startswith("INSERTED")
            _, _, headers, body = receiver.wait(1)[0]
            equal([headers.get(name) for name in ("X-Own", "traceparent", "empty", "Content-Type", "x-own")],
                  ["1", "00-1-2-01", "", None, None])
            equal((headers["content-type"], headers["Host"], body), ("a/b", receiver.url[7:], b"body"))

    def test_http_names_the_member_that_is_at_fault(self):
        good = request("http://example.org/").decode()
        token = token_of("admin", "admin:*")
        with pushing("--http", "127.0.0.1:0", "--auth-file", "tokens", WEEKWHEEL_TOKEN=token) as server, Web(server, token) as web:
            web.refused(422, "headers", "POST", "jobs", {"tube": "push", "body": good, "headers": {"host": "evil"}})
            web.refused(422, "body", "POST", "jobs", {"tube": "push", "body": "x", "headers": {"host": "evil"}})
            web.refused(422, "body", "PUT", "tubes/push/schedules/s", {"cron": "0 3 * * *", "body": "x"})


main()
