"""A site of Django whose cache, and the sessions in it, django-redis keeps by redis-py."""
import django
from django.conf import settings
from story import advance, port, restart, same

settings.configure(
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": f"redis://127.0.0.1:{port}/1"}},
    SESSION_ENGINE="django.contrib.sessions.backends.cache", SESSION_COOKIE_AGE=1800, SECRET_KEY="a secret")
django.setup()

# pylint: disable=wrong-import-position
from django.contrib.sessions.backends.cache import SessionStore
from django.core.cache import cache

# The cache.
same(cache.add("a", {"b": [1]}, 100), True)
same(cache.add("a", 2, 100), False)
same(cache.ttl("a"), 100)
same(cache.get("a"), {"b": [1]})
same(cache.touch("a", 1000), True)
same(cache.ttl("a"), 1000)
cache.set_many({"n": 1, "m": 2}, timeout=None)
same(cache.incr("n", 4), 5)
same(cache.get_many(["n", "m", "x"]), {"n": 5, "m": 2})
same(sorted(cache.keys("*")), ["a", "m", "n"])
same(cache.get_or_set("c", lambda: "made", 10), "made")
same(cache.delete_pattern("[mn]"), 2)
same(cache.delete_many(["a", "c"]), 2)

# A session.
session = SessionStore()
session["views"] = 1
session.save()
key = session.session_key


def views():
    return SessionStore(key).get("views", "log in")


def ttl():
    return cache.ttl("django.contrib.sessions.cache" + key)


same((views(), ttl()), (1, 1800))
advance(1000)
same(ttl(), 800)
session["views"] = 2
session.save()
same((views(), ttl()), (2, 1800))
restart()
same(views(), 2)
session.save()
advance(1799)
same(views(), 2)
advance(1)
same(views(), "log in")
again = SessionStore()
again["views"] = 1
again.save()
again.cycle_key()
key = again.session_key
same(views(), 1)
again.flush()
same(views(), "log in")
cache.clear()
same(cache.keys("*"), [])
print("told")
