"""Random commands at weekwheel-sessiond, and what may be there after it was killed or lost its power.

A key belongs to one client, so it has one history: versions, each with when it was sent and when it was acknowledged.
What a server finds on its disk must be a version that is not older than the last one which had to be kept.
"""
import time

from sessiond import encoded

CLIENTS, KEYS = 5, 40
PART = 16           # a deadline may be later by this part of the TTL after a crash
SLACK = 4           # ms: times are rounded to ms, and each server takes the wall clock anew
# Scripts: one that sets two keys, and one that is ended by its time.
TWINS = """
local words = {}
for _, word in ipairs(KEYS) do words[#words + 1] = word end
for _, word in ipairs(ARGV) do words[#words + 1] = word end
for i = 1, 2 do redis.call('set', words[i], words[3], 'PX', words[4]) end
return 'OK'
"""
# It copies little: a transaction that copies too much ends as by an error, and what it did before stays, as in Redis.
UNDONE = ("redis.call('del', KEYS[2]) redis.call('set', KEYS[1], ARGV[1]) "
          "for i = 1, 100 do redis.call('append', KEYS[1], 'x') end while true do end")
FAR = (100, 1000, 30000, 7 * 24 * 3600)


def wall_ms():
    return time.time() * 1000


class Version:
    """A key's content from a command on: a value with its deadline (ms, the earliest and the latest), or nothing."""

    def __init__(self, value=None, ttl=None, before=None):
        self.value, self.ttl = value, ttl
        self.before = before    # a rename keeps the deadline of this one
        self.is_old = before is not None and before.is_old  # of a server that was killed
        self.sent, self.acknowledged = wall_ms(), None
        self.sent_at, self.heard_at = time.monotonic_ns(), None

    @staticmethod
    def nothing():
        """What a key had before all."""
        version = Version()
        version.sent_at = 0
        return version

    def acknowledge(self):
        self.acknowledged, self.heard_at = wall_ms(), time.monotonic_ns()

    def expiry(self):
        """The earliest and the latest moment, of the wall clock."""
        if self.ttl is None:
            return None
        if self.before:
            return self.before.expiry()
        return self.sent + self.ttl, (self.acknowledged or wall_ms()) + self.ttl


class Load:
    """Clients that send batches. `versions` has the history of each key."""

    def __init__(self, chance, has_scripts=False):
        self.chance, self.count, self.has_scripts = chance, 0, has_scripts
        self.versions = {}
        self.clients, self.waiting = [], []
        self.fitting, self.unsure = {}, set()

    def connect(self, server):
        self.clients = [server.client() for _ in range(CLIENTS)]

    def add(self, key, version):
        self.versions.setdefault(key, [Version.nothing()]).append(version)
        return version

    def last(self, key):
        return self.versions.get(key, [Version.nothing()])[-1]

    def value(self):
        self.count += 1
        return b"%d " % self.count + b"v" * self.chance.choice((0, 20, 100, 100, 3000, 70000 * (self.count % 40 == 0)))

    def draw(self, number):
        """A command of a client: its bytes, how many answers it has, and the versions that the last one acknowledges."""
        chance = self.chance
        key, other = (b"c%d-%d" % (number, chance.randrange(KEYS)) for _ in range(2))
        what = chance.choice(("set", "set", "touch", "touch", "touch", "erase", "rename", "twins", "persist", "short"))
        before = self.last(key)
        if what in ("touch", "persist", "rename") and (before.value is None or key in self.unsure):
            what = "set"
        self.unsure.discard(key)
        ttl = chance.choice(FAR) * 1000
        if what == "set":
            version = self.add(key, Version(self.value(), ttl))
            return encoded("SET", key, version.value, "PX", ttl), 1, [version]
        if what == "touch":
            if before.ttl and chance.random() < 0.8:
                ttl = before.ttl
            return encoded("PEXPIRE", key, ttl), 1, [self.add(key, Version(before.value, ttl))]
        if what == "persist":
            return encoded("PERSIST", key), 1, [self.add(key, Version(before.value))]
        if what == "erase":
            return encoded("DEL", key), 1, [self.add(key, Version())]
        if what == "rename":
            if key == other:
                return encoded("PING"), 1, []
            moved = Version(before.value, before.ttl, before)
            return encoded("RENAME", key, other), 1, [self.add(key, Version()), self.add(other, moved)]
        if what == "short":
            name = b"c%d-short" % number
            version = self.add(name, Version(self.value(), 30))
            return encoded("SET", name, version.value, "PX", 30), 1, [version]
        twins = [b"c%d-twin-%d" % (number, i) for i in (1, 2)]
        value = self.value()
        if self.has_scripts and chance.random() < 0.1:
            return encoded("EVAL", UNDONE, 2, *twins, "undone"), 1, []
        versions = [self.add(twin, Version(value, ttl)) for twin in twins]
        if self.has_scripts:
            # The server learns of a key that is not declared when the other one is set already.
            return encoded("EVAL", TWINS, chance.choice((0, 1, 2)), *twins, value, ttl), 1, versions
        words = [encoded("SET", twin, value, "PX", ttl) for twin in twins]
        return encoded("MULTI") + b"".join(words) + encoded("EXEC"), 4, versions

    def send(self, most=30):
        """A batch of each client, before any answer is read."""
        for number, client in enumerate(self.clients):
            batch = [self.draw(number) for _ in range(self.chance.choice((1, 1, 3, 10, most)))]
            self.waiting.append((client, [(answers, versions) for _, answers, versions in batch]))
            client.send(b"".join(command for command, _, _ in batch))

    def hear(self):
        """Read all answers. Returns whether the server gave them all."""
        waiting, self.waiting = self.waiting, []
        whole = True
        for client, batch in waiting:
            try:
                for answers, versions in batch:
                    for _ in range(answers):
                        answer = client.answer()
                        assert not answer.startswith(b"-") or b"took too long" in answer, answer
                    for version in versions:
                        version.acknowledge()
            except OSError:
                whole = False
        return whole

    def round(self):
        self.send()
        assert self.hear(), "the server closed a connection"

    def leave(self):
        for client in self.clients:
            client.__exit__()
        self.clients = []

    def judge(self, client, stable_at, is_exact=False):
        """What is wrong with what a server has, if all that was acknowledged until stable_at (monotonic ns) is kept.

        `narrow` then takes what was found for what all goes on from."""
        self.fitting = {}
        wrong, found = [], {}
        for key, versions in self.versions.items():
            began = wall_ms()
            client.send(encoded("GET", key) + encoded("PTTL", key))
            value, left = client.answer(), int(client.answer()[1:-2])
            found[key] = None if left == -2 else value.split(b"\r\n", 1)[1][:-2]
            wrong += self.judge_key(key, versions, found[key], left, (began, wall_ms()), stable_at, is_exact)
        for number in range(CLIENTS):
            one, two = (found.get(b"c%d-twin-%d" % (number, i)) for i in (1, 2))
            if one != two:
                wrong.append(f"half of a transaction: {one!r:.30} and {two!r:.30}")
        return wrong

    def judge_key(self, key, versions, value, left, asked, stable_at, is_exact):
        kept = [i for i, version in enumerate(versions) if version.heard_at and version.heard_at <= stable_at]
        possible = versions[kept[-1] if kept else 0:]
        self.fitting[key] = [version for version in possible if self.fits(version, value, left, asked, is_exact)]
        if self.fitting[key]:
            return []
        return [f"{key.decode()} has {value!r:.30}, {left} ms left, where there may be " +
                " or ".join(f"{version.value!r:.30}" + (" for {:.0f} to {:.0f} ms".format(
                    *(moment - asked[0] for moment in version.expiry())) if version.ttl else "") for version in possible[:4])]

    def fits(self, version, value, left, asked, is_exact):
        began, ended = asked
        expiry = version.expiry()
        if value is None:
            return version.value is None or (expiry is not None and expiry[0] <= ended)
        if value != version.value:
            return False
        if expiry is None:
            return left == -1
        grace = 0 if is_exact and not version.is_old else version.ttl // PART
        return left >= 0 and expiry[0] - SLACK <= ended + left and began + left <= expiry[1] + grace + SLACK

    def narrow(self):
        for key, fitting in self.fitting.items():
            for version in fitting:
                version.heard_at, version.is_old = None, True
                version.acknowledged = version.acknowledged or wall_ms()
            fitting[0].heard_at = time.monotonic_ns()
            self.versions[key] = fitting
            if len(fitting) > 1:
                self.unsure.add(key)
