"""A conversation by redis-py with the server on the port that is the argument: what clients of it do in sites."""
import sys
import time

import redis

client = redis.Redis(port=int(sys.argv[1]), decode_responses=True, db=2)
assert client.set("a", "b", ex=100) and client.ttl("a") == 100
with client.pipeline() as pipe:
    pipe.watch("a")
    pipe.multi()
    pipe.incr("n").get("a").expire("n", 50)
    assert pipe.execute() == [1, "b", True]
    pipe.watch("n")
    client.set("n", "5")
    pipe.multi()
    pipe.incr("n")
    try:
        pipe.execute()
        raise AssertionError("n has changed")
    except redis.WatchError:
        pass
assert sorted(client.scan_iter()) == ["a", "n"]
channel = client.pubsub()
channel.subscribe("news")
while not channel.get_message():
    time.sleep(0.001)
assert client.publish("news", "x") == 1
while not (message := channel.get_message()):
    time.sleep(0.001)
assert message["data"] == "x"
assert client.info()["redis_version"].startswith("7.")
assert client.command_count() > 60 and "get" in client.command()
client.close()
