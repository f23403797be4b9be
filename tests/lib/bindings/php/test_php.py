#!/usr/bin/env python3
"""The package for PHP: each verb beside servers, what becomes of lost connections, its example and its form."""
# tier: long, no-sanitizers (other tests send the server as much)
import glob
import hashlib
import json
import os
import re

from harness import BUILD, ROOT, Case, Server, equal, main, matches, need_program, run

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(ROOT, "lib", "bindings", "php")
TOKEN = "token-of-a-test-with-some-length"


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(name, 0o600)


def certificate():
    run(0, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "ca.pem")
    return ("--listen", "tls:127.0.0.1:0", "--tls-cert", "ca.pem", "--tls-key", "key.pem")


class Php(Case):
    def setUp(self):
        need_program("php")
        super().setUp()

    def test_jobs(self):
        write("tokens", "site sha256:" + hashlib.sha256(TOKEN.encode()).hexdigest() + " put,work,read:mail\n")
        with Server("--clock", "virtual", "--unix", "socket") as server, Server("--auth-file", "tokens") as tokened, \
                Server(*certificate()) as tls:
            while not (port := re.search(r"listening on tls:127\.0\.0\.1:(\d+)", tls.said)):
                tls.said += tls.process.stderr.readline()
            ended = run(None, "php", os.path.join(HERE, "jobs.php"), PACKAGE=PACKAGE, SERVER=server.address, TOKENED=tokened.address, TOKEN=TOKEN,
                       TLS=f"tls:localhost:{port[1]}", SOCKET="socket", OPENAPI=os.path.join(BUILD, "gen", "openapi.json"))
        assert ended.status == 0, ended
        matches(r"^passed test_", ended.out)

    def test_the_example_of_the_readme(self):
        need_program("composer")
        with open(os.path.join(PACKAGE, "README.md"), encoding="utf-8") as file:
            readme = file.read()
        commands = re.search(r"^```sh\n(.*?)^```", readme, re.M | re.S)[1].replace("../weekwheel/lib/bindings/php", PACKAGE)
        program, said = re.search(r"^```php\n(.*?)^```\n\nIt prints:\n\n```\n(.*?)^```", readme, re.M | re.S).groups()
        write("composer.json", '{"repositories": {"packagist.org": false}}')
        run(0, "sh", "-e", "-c", commands, COMPOSER_HOME=os.path.join(self.folder, "home"), COMPOSER_ALLOW_SUPERUSER="1",
            COMPOSER_DISABLE_NETWORK="1", COMPOSER_NO_INTERACTION="1")
        with Server() as server:
            write("site.php", program.replace("127.0.0.1:11300", server.address))
            equal(run(0, "php", "site.php").out, said)

    def test_its_form(self):
        for file in glob.glob(os.path.join(PACKAGE, "**", "*.php"), recursive=True):
            run(0, "php", "-l", file)
            with open(file, encoding="utf-8") as text:
                matches(r"\A<\?php\n// [A-Z].*\.\n\ndeclare\(strict_types=1\);\n", text.read(), file)
        with open(os.path.join(ROOT, "include", "weekwheel", "version.h"), encoding="utf-8") as file, \
                open(os.path.join(PACKAGE, "composer.json"), encoding="utf-8") as package:
            matches(f'#define WW_VERSION "{re.escape(json.load(package)["version"])}"', file.read())


if __name__ == "__main__":
    main()
