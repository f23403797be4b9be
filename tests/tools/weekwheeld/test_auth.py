#!/usr/bin/env python3
"""Who may do what: what speaks another protocol, tokens and their rights, and where a server listens."""
import os
import sys

sys.path.insert(0, __file__.rsplit("/tests/", 1)[0] + "/tests/support")
from weekwheel import Case, Server, check, equal, main, matches


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


main()
