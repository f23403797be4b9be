#!/usr/bin/env python3
"""What libraries do by scripts, with the libraries themselves: the locks of redis-py and phpredis, and what Laravel's cache adds."""
# tier: check
import os
import sys
import unittest

from harness import Case, equal, lack, main, need_program, run
from sessiond import Sessiond

SESSION = r"""
ini_set('session.save_handler', 'redis');
ini_set('session.save_path', "tcp://127.0.0.1:$argv[1]?prefix=sess:");
ini_set('redis.session.locking_enabled', '1');
ini_set('redis.session.lock_wait_time', '1000');
ini_set('session.use_cookies', '0');
ini_set('session.cache_limiter', '');
session_id('abc');
for ($i = 0; $i < 3; $i++) {
    if (!session_start())
        exit(1);
    $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;
    session_write_close();
}
$redis = new Redis();
$redis->connect('127.0.0.1', (int)$argv[1]);
echo count($redis->keys('*')), ' ', $redis->get('sess:abc'), "\n";
"""
# As Laravel's RedisStore calls its connection of phpredis: the script, the number of keys, and all words.
ADD = r"""
$redis = new Redis();
$redis->connect('127.0.0.1', (int)$argv[1]);
$add = "return redis.call('exists',KEYS[1])<1 and redis.call('setex',KEYS[1],ARGV[2],ARGV[1])";
foreach ([1, 2] as $try)
    echo json_encode((bool)$redis->eval($add, ['login:timer', '1', '60'], 1)), ' ';
echo $redis->ttl('login:timer'), ' ', $redis->getLastError() ?? 'none', ' ';
echo json_encode($redis->evalSha(sha1('return KEYS[1]'), ['a'], 1)), ' ', $redis->getLastError(), ' ';
echo $redis->script('load', 'return KEYS[1]') === sha1('return KEYS[1]') ? 'loaded ' : 'not ';
echo $redis->evalSha(sha1('return KEYS[1]'), ['a'], 1), "\n";
"""
LOCK = """
import sys
import redis

client = redis.Redis(port=int(sys.argv[1]))
one, two = (client.lock("lock", timeout=1000, blocking=False) for _ in range(2))
assert (one.acquire(), two.acquire()) == (True, False)
assert one.owned() and one.extend(500) and one.reacquire()
one.release()
assert client.exists("lock") == 0
assert two.acquire()
client.set("lock", "another")
try:
    two.release()
    sys.exit("released the lock of another")
except redis.exceptions.LockError:
    pass
add = client.register_script("return redis.call('incrby', KEYS[1], ARGV[1])")
assert (add(keys=["n"], args=[2]), add(keys=["n"], args=[3])) == (2, 5)
client.script_flush()
pipe = client.pipeline()
add(keys=["n"], args=[4], client=pipe)
assert pipe.execute() == [9]
print("well")
"""


class Clients(Case):
    def php(self, text):
        need_program("php")
        if "redis" not in run(0, "php", "-m").out.split():
            raise unittest.SkipTest(lack("php-redis"))
        with open("script.php", "w", encoding="utf-8") as file:
            file.write("<?php\n" + text)
        with Sessiond() as server:
            return run(0, "php", os.path.abspath("script.php"), str(server.port)).out

    def test_phpredis_locks_sessions(self):
        equal(self.php(SESSION), "1 n|i:3;\n")

    def test_laravel_adds_once(self):
        equal(self.php(ADD), "true false 60 none false NOSCRIPT No matching script. Please use EVAL. loaded a\n")

    def test_redis_py_locks(self):
        # A folder of the tests' own has the library's name. Debian's Python has Debian's packages.
        pythons = [python for python in (sys.executable, "/usr/bin/python3")
                   if run(None, python, "-I", "-c", "import redis").status == 0]
        if not pythons:
            raise unittest.SkipTest(lack("python3-redis"))
        with Sessiond() as server:
            equal(run(0, pythons[0], "-I", "-c", LOCK, str(server.port)).out, "well\n")


if __name__ == "__main__":
    main()
