"""What the tests of weekwheeld's page have in common."""
import re

from harness import Server, equal, matches
from web import token_of

EVIL = "<img src=x onerror=document.title='evil'>"


class Paged:
    """A case of the page is this and a Case."""

    def server(self, **others):
        """With a token that may do everything, and others with these grants."""
        self.token = token_of("admin", "admin:*")
        self.tokens = {name: token_of(name, *grants) for name, grants in others.items()}
        return Server("--http", "127.0.0.1:0", "--auth-file", "tokens", WEEKWHEEL_TOKEN=self.token)

    def client(self, server):
        client = server.client()
        equal(client.ask("auth " + self.token), "OK")
        return client

    def open(self, browser, server):
        url = re.search(r"serving (http://[0-9.:]+)/", server.said).group(1)
        browser.tell("url", url=url + "/")
        browser.until_text("#state", "token")
        browser.type("#token", self.token)
        browser.click("#login button")
        browser.until_text("#state", "ready, ")

    def fill(self, client):
        """Jobs over the week, and one that is buried for a hostile reason."""
        for tube, step in (("mail", 20), ("invoice", 900), ("report", 7200)):
            client.ask("use " + tube)
            for n in range(80):
                client.put(b"%d" % n, delay=1 + n * step)
        client.ask("use mail")
        client.send("put-key 0 0 60 %d %s\r\n%s\r\n" % (len(EVIL), "key%3Cb%3E", EVIL))
        number = client.line().split()[1]
        matches("RESERVED", client.ask("reserve-job " + number))
        client.send("put-schedule 100 0 60 1 weekly cron=30%209%20%2A%20%2A%20fri%232 zone=America%2FNew_York\r\nx\r\n")
        equal(client.line()[:9], "SCHEDULED")
        reason = "".join("%%%02x" % byte for byte in EVIL.encode())
        equal(client.ask("bury-job %s 0 %s" % (number, reason)), "BURIED")
        return number
