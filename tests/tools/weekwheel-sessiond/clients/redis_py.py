"""A site's sessions by redis-py."""
import redis
from story import advance, port, restart, same

client = redis.Redis(port=port, decode_responses=True, db=2)
listener = redis.Redis(port=port, decode_responses=True).pubsub(ignore_subscribe_messages=True)


def heard():
    """The next message of a channel."""
    while not (message := listener.get_message(timeout=1)):
        pass
    return message["channel"], message["data"]


# Log in, touch, change.
same(client.set("sess:1", "cart", ex=1800, nx=True), True)
same(client.set("sess:1", "other", ex=1800, nx=True), None)
advance(1000)
same(client.ttl("sess:1"), 800)
same(client.expire("sess:1", 1800, gt=True), True)
same(client.getex("sess:1", px=1700000), "cart")
same(client.set("sess:1", "cart, book", keepttl=True, get=True), "cart")
same((client.pttl("sess:1"), client.get("sess:1")), (1700000, "cart, book"))
with client.pipeline() as pipe:
    pipe.watch("sess:1")
    pipe.multi()
    pipe.incr("n").get("sess:1").expire("n", 50)
    same(pipe.execute(), [1, "cart, book", True])
    pipe.watch("n")
    client.set("n", "5")
    pipe.multi()
    pipe.incr("n")
    try:
        pipe.execute()
        raise AssertionError("n has changed")
    except redis.WatchError:
        pass
same(sorted(client.scan_iter(match="*s*", count=1)), ["sess:1"])
same(client.mset({"a": 1, "b": 2}), True)
same(client.mget("a", "b", "c"), ["1", "2", None])

# The server starts again, and clients come back by themselves, with their subscriptions.
listener.subscribe("news", "__keyevent@2__:expired")
restart()
same(client.get("sess:1"), "cart, book")
while client.publish("news", "x") == 0:
    try:
        listener.get_message()
    except redis.ConnectionError:
        pass
same(heard(), ("news", "x"))

# It ends, which a channel tells.
same(client.config_set("notify-keyspace-events", "Ex"), True)
same(client.expire("sess:1", 1800), True)
advance(1799)
same(client.exists("sess:1"), 1)
advance(1)
same(client.get("sess:1"), None)
same(heard(), ("__keyevent@2__:expired", "sess:1"))

assert client.info()["redis_version"].startswith("7.")
assert client.command_count() > 60 and "get" in client.command()
try:
    client.hget("a", "b")
    raise AssertionError("there are no hashes")
except redis.ResponseError as error:
    assert "HGET" in str(error)
same(client.flushdb(), True)
same(client.dbsize(), 0)
client.close()
print("told")
