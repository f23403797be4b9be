"""Chromium for tests of pages. WW_SCREENSHOTS=FOLDER keeps pictures."""
import base64
import json
import os
import re
import shutil
import subprocess
import unittest
import urllib.error
import urllib.request

from harness import PATIENCE, free_port, until

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """Chromium, by the protocol of its driver (W3C WebDriver)."""

    def __init__(self, *arguments):
        for program in ("chromium", "chromedriver"):
            if not shutil.which(program):
                raise unittest.SkipTest("needs Chromium and its driver: install chromium and chromium-driver")
        self.url = "http://127.0.0.1:%d" % free_port()
        # Its profile lies in the working folder, which is removed.
        self.driver = subprocess.Popen(["chromedriver", "--port=" + self.url.rsplit(":", 1)[1]],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env={**os.environ, "HOME": os.getcwd(), "TMPDIR": os.getcwd()})
        until(self.is_up, "the driver answers")
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                            "--no-proxy-server", *arguments]}
        wanted = {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}}
        try:
            self.session = self.ask("POST", "/session", wanted)["sessionId"]
        except AssertionError as error:
            self.driver.kill()
            self.driver.wait()
            # A container may forbid what a browser needs.
            raise unittest.SkipTest("Chromium does not start here: " + str(error)[:300]) from error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ask("DELETE", "/session/" + self.session)
        self.driver.terminate()
        self.driver.wait()

    def is_up(self):
        try:
            return self.ask("GET", "/status")["ready"]
        except OSError:
            return False

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.loads(answer.read())["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error

    def tell(self, command, **body):
        return self.ask("POST", "/session/%s/%s" % (self.session, command), body)

    def run(self, script, *arguments):
        return self.tell("execute/sync", script=script, args=list(arguments))

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def until_text(self, selector, pattern):
        until(lambda: re.search(pattern, self.text(selector)), "%s has %s" % (selector, pattern), 0.05)

    def find(self, selector):
        return self.tell("element", using="css selector", value=selector)[ELEMENT]

    def click(self, selector):
        """In one step: the page may draw anew at any time."""
        self.run("document.querySelector(arguments[0]).click()", selector)

    def type(self, selector, text):
        self.tell("element/%s/value" % self.find(selector), text=text)

    def has_question(self):
        try:
            return bool(self.ask("GET", "/session/%s/alert/text" % self.session))
        except AssertionError:
            return False

    def agree(self):
        """To what the page asks."""
        self.tell("alert/accept")

    def errors(self):
        return [entry["message"] for entry in self.tell("se/log", type="browser") if entry["level"] == "SEVERE"]

    def picture(self, name):
        folder = os.environ.get("WW_SCREENSHOTS")
        if folder:
            with open(os.path.join(folder, name + ".png"), "wb") as file:
                file.write(base64.b64decode(self.ask("GET", "/session/%s/screenshot" % self.session)))
