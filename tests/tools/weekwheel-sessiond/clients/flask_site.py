"""A site of Flask whose sessions Flask-Session keeps by redis-py."""
import datetime

import flask
import flask_session
import redis
from story import advance, port, restart, same

site = flask.Flask("site")
client = redis.Redis(port=port)
site.config.update(SESSION_TYPE="redis", SESSION_REDIS=client,
                   PERMANENT_SESSION_LIFETIME=datetime.timedelta(minutes=30))
flask_session.Session(site)


@site.route("/login")
def login():
    flask.session["views"] = 1
    return "1"


@site.route("/count")
def count():
    flask.session["views"] += 1
    return str(flask.session["views"])


@site.route("/logout")
def logout():
    flask.session.clear()
    return "bye"


@site.route("/")
def start():
    return str(flask.session.get("views", "log in"))


user = site.test_client()


def page(path):
    return user.get(path).text


def ttl():
    return client.ttl(client.keys("session:*")[0])


same(page("/"), "log in")
same(page("/login"), "1")
same(ttl(), 1800)
advance(1000)
same(ttl(), 800)
same(page("/count"), "2")
same(ttl(), 1800)
restart()
same(page("/count"), "3")
advance(1799)
same(page("/"), "3")
same(page("/count"), "4")
advance(1800)
same(page("/"), "log in")
same(page("/login"), "1")
same(page("/logout"), "bye")
same(page("/"), "log in")
same(client.flushdb(), True)
print("told")
