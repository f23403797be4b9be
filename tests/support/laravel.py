"""What tests of Laravel share: the lines of config/ that docs/from-laravel.md shows, on the ports of a test."""
import os
import re
import subprocess
import unittest

from harness import ROOT, environment, lack, need_program

PAGE = os.path.join(ROOT, "docs", "from-laravel.md")
SUPPORT = os.path.join(ROOT, "tests", "support")


def need_packages(**packages):
    """Skip without Debian's packages, each of which has a file below PHP's folder of libraries."""
    need_program("php")
    for package, file in packages.items():
        if not os.path.exists(os.path.join("/usr/share/php", file)):
            raise unittest.SkipTest(lack(package.replace("_", "-")))


def need_laravel():
    need_packages(**{f"php_illuminate_{part.lower()}": f"Illuminate/{part}/autoload.php"
                     for part in ("Queue", "Bus", "Events", "Cache", "Redis", "Session")}, php_pda_pheanstalk="Pheanstalk/autoload.php")


def configure(**ports):
    """Write the lines of the page into files, with other ports."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    for name, lines in re.findall(r"^In `config/(\w+)\.php`.*\n\n```php\n((?:.*\n)*?)```", text, re.M):
        for old, new in ports.items():
            lines = re.sub(rf"'port' => {old[1:]}\b", f"'port' => {new}", lines)
        with open(f"config_{name}.php", "w", encoding="utf-8") as file:
            file.write(f"<?php\nreturn [\n{lines}];\n")


def php(script, *words, dsn="", **more):
    return subprocess.Popen(["php", script, *words], env=environment(SUPPORT=SUPPORT, DSN=dsn), text=True, **more)
