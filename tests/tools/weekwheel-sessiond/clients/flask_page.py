"""The site of Flask that docs/sessions-for-a-site.md shows, in page.py: see test_sessiond_clients.py."""
from page import app
from story import advance, restart, same

user = app.test_client()


def visit():
    return user.get("/").text


same(visit(), "visit 1\n")
advance(1799)
same(visit(), "visit 2\n")
restart()
advance(1799)
same(visit(), "visit 3\n")
advance(1800)
same(visit(), "visit 1\n")
print("told")
