#!/usr/bin/env python3
"""weekwheel import --from bullmq://, celery://, laravel:// and resque://: what these libraries keep in Redis becomes jobs.

The hashes and scores of BullMQ are those that BullMQ 5.81 wrote and 6.7 writes, the messages of Celery those of Celery 5.2 with kombu 5.2.
Those of Laravel and resque-scheduler follow their sources.
"""
# tier: check
import base64
import json
import re
import signal
import socket
import threading

from harness import PATIENCE, Case, Redis, Relay, Server, check, equal, main, matches, objects, until

FAR = 4000000000
# How jobs are removed.
REMOVE = b"*7\r\n$4\r\nEVAL"


def message(task, eta, queue="celery", priority=0):
    """As kombu writes it."""
    return json.dumps({"body": "W1siYWRhIl0sIHt9LCB7fV0=", "content-encoding": "utf-8", "content-type": "application/json",
                       "headers": {"lang": "py", "task": "app.mail", "id": task, "eta": eta, "expires": None, "retries": 0},
                       "properties": {"correlation_id": task, "delivery_mode": 2, "priority": priority, "body_encoding": "base64",
                                      "delivery_info": {"exchange": "", "routing_key": queue}, "delivery_tag": "tag-" + task}})


class Library(Case):
    def setUp(self):
        super().setUp()
        self.redis = self.enter(Redis())
        self.server = self.enter(Server())
        self.address = f"127.0.0.1:{self.redis.port}"

    def move(self, status, library, *arguments, address=None):
        ended = self.server.program.run(status, "import", "--from", f"{library}://{address or self.address}", "--json", *arguments)
        return objects(ended.out)[0], ended.err

    def jobs(self):
        with self.server.client() as client:
            return sorted(client.all_jobs(), key=lambda job: job["id"])

    def told(self):
        """What matters of each job."""
        return sorted((job["tube"], job["state"], job["due"] if job["state"] == "delayed" else "", job["priority"], base64.b64decode(job["body"]).decode())
                      for job in self.jobs())

    def bullmq(self, name, at, data='{"to":"ada"}', queue="mail", **fields):
        score = at * 1000 * 4096 + 7
        words = {"name": "welcome", "data": data, "opts": '{"delay":1,"attempts":0}', "timestamp": "1", "delay": "1", "priority": "0", **fields}
        self.redis.ask("HSET", f"bull:{queue}:{name}", *(word for pair in words.items() for word in pair))
        self.redis.ask("ZADD", f"bull:{queue}:delayed", "%d" % score, name)

    def resque(self, at, queue, *arguments):
        item = json.dumps({"class": "Mail", "args": arguments, "queue": queue}, separators=(",", ":"))
        self.redis.ask("RPUSH", f"resque:delayed:{at}", item)
        self.redis.ask("SADD", f"resque:timestamps:{item}", f"delayed:{at}")
        self.redis.ask("ZADD", "resque:delayed_queue_schedule", at, at)
        return item

    def test_bullmq(self):
        self.bullmq("1", FAR)
        self.bullmq("own/ä", FAR + 0.25, priority="5", queue="low", deid="once")
        self.redis.ask("SET", "bull:low:de:once", "own/ä")
        self.redis.ask("ZADD", "bull:mail:delayed", 1, "gone")
        self.bullmq("child", FAR, parentKey="bull:mail:9")
        self.bullmq("parent", FAR)
        self.redis.ask("HSET", "bull:mail:parent:processed", "a", "1")
        self.bullmq("no json", FAR, data="{")
        self.bullmq("repeat:night:4000", 4, rjk="night")
        dry = self.server.program.run(1, "import", "--from", "bullmq://" + self.address, "--dry-run")
        equal(sorted(dry.out.splitlines()), ["bull:low:delayed: 1 job", "bull:mail:delayed: 2 jobs, and 4 that would stay"])
        equal(self.jobs(), [])
        counts, err = self.move(1, "bullmq")
        equal([counts[name] for name in ("read", "put", "deleted", "left", "left_out")], [3, 3, 3, 4, 4], err)
        for reason in ("its hash is missing", "its parent in a flow waits", "results of its children", "no JSON"):
            equal(len(re.findall(reason + ".*it stays there", err)), 1, err)
        equal(self.told(), [
            ("low", "delayed", f"{FAR}.25", 1029, '{"id":"own\\/ä","name":"welcome","data":{"to":"ada"},"opts":{"delay":1,"attempts":0}}'),
            ("mail", "delayed", f"{FAR}", 1024, '{"id":"1","name":"welcome","data":{"to":"ada"},"opts":{"delay":1,"attempts":0}}'),
            ("mail", "ready", "", 1024, '{"id":"repeat:night:4000","name":"welcome","data":{"to":"ada"},"opts":{"delay":1,"attempts":0}}')])
        equal(sorted(self.redis.ask("KEYS", "bull:*")),
              ["bull:mail:child", "bull:mail:delayed", "bull:mail:no json", "bull:mail:parent", "bull:mail:parent:processed"])
        equal(self.move(1, "bullmq", "--tube", "all")[0]["put"], 0)

    def test_attempts_of_bullmq(self):
        """It tries a job once unless that has more attempts, and waits before the next one as its backoff says."""
        day = 86400000
        cases = {
            "none": ({}, {}, (1, 0, 3600)), "0": ({"attempts": 0}, {}, (1, 0, 3600)), "1": ({"attempts": 1}, {}, (1, 0, 3600)),
            "3": ({"attempts": 3}, {}, (3, 0, 3600)), "two made": ({"attempts": 5}, {"atm": "2"}, (3, 0, 3600)),
            "one made": ({"attempts": 5}, {"attemptsMade": "1"}, (4, 0, 3600)), "all made": ({"attempts": 5}, {"atm": "7"}, (1, 0, 3600)),
            "doubles": ({"attempts": 3, "backoff": {"type": "exponential", "delay": 1500}}, {}, (3, 1.5, 30000000)),
            "long": ({"attempts": 3, "backoff": {"type": "exponential", "delay": day}}, {}, (3, 86400, 30000000)),
            "fixed": ({"attempts": 3, "backoff": {"type": "fixed", "delay": day}}, {}, (3, 86400, 86400)),
            "number": ({"attempts": 3, "backoff": 1500}, {}, (3, 1.5, 1.5)),
            "own": ({"attempts": 3, "backoff": {"type": "own", "delay": 1500}}, {}, (3, 0, 3600)),
            "null": ({"attempts": None, "backoff": None}, {}, (1, 0, 3600)),
            "large": ({"attempts": 1e300, "backoff": 1e300}, {}, (1000000, 30000000, 30000000))}
        for name, (opts, fields, _) in cases.items():
            self.bullmq(name, FAR, opts=json.dumps(opts), **fields)
        counts, err = self.move(0, "bullmq")
        equal((counts["put"], err), (len(cases), ""))
        equal({json.loads(base64.b64decode(job["body"]))["id"]: (job["attempts"], job["backoff"], job["backoff_max"]) for job in self.jobs()},
              {name: limits for name, (_, _, limits) in cases.items()})

    def scheduler(self, name, at, **fields):
        """With its next job, as BullMQ keeps them."""
        self.redis.ask("ZADD", "bull:mail:repeat", "%d" % (at * 1000), name)
        words = {"name": "report", "data": '{"a":1}', "opts": '{"priority":3}', "ic": "1", **fields}
        self.redis.ask("HSET", f"bull:mail:repeat:{name}", *(word for pair in words.items() for word in pair))
        self.bullmq("repeat:%s:%d" % (name, at * 1000), at, rjk=name, priority="3")

    def schedules(self):
        return {entry["name"]: entry for entry in objects(self.server.program.run(0, "schedule", "list", "--json").out)}

    def test_job_schedulers_of_bullmq_become_schedules(self):
        """Each with its next job, which is one already: the schedule begins behind that."""
        self.scheduler("night/1", FAR, pattern="0 15 3 * * *", tz="Europe/Berlin", endDate="4100000000500", opts='{"attempts":3,"backoff":2000}')
        self.scheduler("hour", FAR + 0.25, every="3600000")
        odd = {"limit of runs": {"pattern": "0 3 * * *", "tz": "UTC", "limit": "5"}, "it has no tz": {"pattern": "0 3 * * *"},
               "by parts of seconds": {"every": "1500"}, "its hash is missing": {}, "valid hour": {"pattern": "0 99 * * *", "tz": "UTC"},
               "no JSON": {"every": "1000", "data": "{"}}
        for reason, fields in odd.items():
            self.scheduler(reason.replace(" ", "-"), FAR, **fields)
        counts, err = self.move(1, "bullmq")
        equal([counts[name] for name in ("put", "schedules", "deleted", "left", "left_out")], [2, 2, 4, 6, 6], err)
        for reason in odd:
            equal(len(re.findall(f"the member .{reason.replace(' ', '-')}. of .bull:mail:repeat.*{reason}.*it stays there", err)), 1, err)
        found = self.schedules()
        equal({name: (entry["cron"], entry["zone"], entry["tube"]) for name, entry in found.items()},
              {"bullmq-mail-night/1": ("0 15 3 * * *", "Europe/Berlin", "mail"), "bullmq-mail-hour": ("@every 3600s", "UTC", "mail")})
        equal([(found["bullmq-mail-" + name]["attempts"], found["bullmq-mail-" + name]["backoff"]) for name in ("night/1", "hour")], [(3, 2), (1, 0)])
        equal((found["bullmq-mail-hour"]["next"], found["bullmq-mail-hour"]["priority"]), ("2096-10-02T08:06:40.250Z", 1027), found)
        equal(sorted(job["key"][:20] for job in self.jobs() if job["state"] == "delayed"), ["bullmq-repeat%3Ahour", "bullmq-repeat%3Anigh"])
        equal(self.redis.ask("ZCARD", "bull:mail:repeat"), 6)
        equal(self.redis.ask("ZCARD", "bull:mail:delayed"), 6)
        # Redis does not know the zone of workers.
        _, err = self.move(1, "bullmq", "--tz", "Nowhere")
        matches("the member .it-has-no-tz.*there is no such zone here.*it stays there", err)
        equal(self.move(1, "bullmq", "--tz", "Europe/Berlin")[0]["schedules"], 1)
        equal(self.schedules()["bullmq-mail-it-has-no-tz"]["zone"], "Europe/Berlin")

    def test_a_job_scheduler_goes_on_while_it_moves(self):
        """BullMQ's worker has run its next job, so it is moved once more as it is then."""
        self.scheduler("hour", FAR, every="3600000")
        with Relay(self.redis.port, REMOVE, lambda: self.redis.ask("ZADD", "bull:mail:repeat", (FAR + 3600) * 1000, "hour")) as relay:
            counts, err = self.move(0, "bullmq", address=relay.address)
        equal([counts[name] for name in ("schedules", "returned")], [2, 1], err)
        equal(self.schedules()["bullmq-mail-hour"]["next"], "2096-10-02T09:06:40.000Z")

    def test_another_prefix(self):
        self.redis.ask("ZADD", "{my}:mail:delayed", FAR * 1000 * 4096, "1")
        self.redis.ask("HSET", "{my}:mail:1", "name", "x", "data", "1", "opts", "{}")
        equal(self.move(0, "bullmq")[0]["put"], 0)
        for more, found in (("", "no jobs: look for them in another database, or under another prefix"), ("/0/%7Bmy%7D", "{my}:mail:delayed: 1 job")):
            equal(self.server.program.run(0, "import", "--from", "bullmq://" + self.address + more, "--dry-run").out, found + "\n")
        equal(self.move(0, "bullmq", address=self.address + "/0/%7Bmy%7D")[0]["put"], 1)

    def test_data_that_change_meanwhile_move_as_they_are_then(self):
        self.bullmq("1", FAR, data="1")
        with Relay(self.redis.port, REMOVE, lambda: self.redis.ask("HSET", "bull:mail:1", "data", "2")) as relay:
            counts, _ = self.move(0, "bullmq", address=relay.address)
        equal([counts[name] for name in ("put", "deleted", "returned")], [2, 1, 1])
        matches('"data":2,', self.told()[0][4])

    def test_laravel(self):
        payload = '{"uuid":"b7-1","displayName":"App\\\\Jobs\\\\Mail","job":"Illuminate\\\\Queue\\\\CallQueuedHandler@call","data":{"n":1.0},"id":"x","attempts":0}'
        self.redis.ask("ZADD", "site_database_queues:mail:delayed", FAR, payload, FAR + 1, "no payload", "inf", "is never due")
        self.redis.ask("ZADD", "queues:{low}:delayed", 5, payload)
        counts, err = self.move(1, "laravel")
        equal([counts[name] for name in ("put", "deleted", "left")], [2, 2, 1])
        matches("no payload of Laravel.*it stays there", err)
        equal(self.told(), [("low", "ready", "", 1024, payload), ("mail", "delayed", f"{FAR}", 1024, payload)])
        equal(self.redis.ask("KEYS", "*"), ["site_database_queues:mail:delayed"])

    def test_resque(self):
        """The same job may be there several times, in one second, too."""
        twice = [self.resque(FAR, "mail", "twice") for _ in range(2)][0]
        self.resque(FAR + 1, "mail", "twice")
        other = self.resque(FAR, "low", "x")
        self.redis.ask("RPUSH", f"resque:delayed:{FAR + 2}", "no json", json.dumps({"class": "Mail"}))
        self.redis.ask("HSET", "resque:delayed:last_enqueued_at", "x", "y")
        counts, err = self.move(1, "resque")
        equal([counts[name] for name in ("put", "deleted", "left")], [4, 4, 2])
        for reason in ("no object of JSON", "the queue '' is not a name of a tube: choose one with --tube"):
            matches(reason, err)
        due = [("low", "delayed", f"{FAR}", 1024, other)] + [("mail", "delayed", f"{FAR + more}", 1024, twice) for more in (0, 0, 1)]
        equal(self.told(), sorted(due))
        equal(self.redis.ask("KEYS", "resque:timestamps:*"), [])
        equal(self.redis.ask("ZCARD", "resque:delayed_queue_schedule"), 0)
        # Another of them comes later: it is one more, whatever has moved before.
        self.resque(FAR, "mail", "twice")
        equal(self.move(1, "resque")[0]["put"], 1)
        equal(len(self.jobs()), 5)

    def test_one_of_two_alike_is_taken_by_resque(self):
        for _ in range(2):
            item = self.resque(FAR, "mail", "twice")
        with Relay(self.redis.port, REMOVE, lambda: self.redis.ask("LPOP", f"resque:delayed:{FAR}")) as relay:
            counts, _ = self.move(0, "resque", address=relay.address)
        equal([counts[name] for name in ("put", "deleted", "returned")], [2, 1, 1])
        equal(self.resque(FAR, "mail", "twice"), item)
        # The key of the job that was taken back is ended, and this one has another.
        with Relay(self.redis.port, REMOVE, lambda: None, port_here=int(relay.address.split(":")[1])):
            equal(self.move(0, "resque", address=relay.address)[0]["put"], 1)
        equal(len(self.jobs()), 2)

    def celery(self):
        late = message("a", "2096-10-02T07:06:40.250000+00:00")
        low = message("b", "2096-10-02T09:06:40+02:00", queue="low", priority=6)
        self.redis.ask("LPUSH", "celery", message("now", None), late, "no message")
        self.redis.ask("LPUSH", "low\x06\x166", low)
        return late, low

    def test_celery_in_its_lists(self):
        late, low = self.celery()
        self.redis.ask("LPUSH", "celery", message("odd", "soon, T"))
        counts, err = self.move(1, "celery")
        equal([counts[name] for name in ("put", "deleted", "left", "left_out")], [2, 2, 1, 1], err)
        matches("its time cannot be read", err)
        equal(self.told(), [("celery", "delayed", f"{FAR}.25", 1024, late), ("low", "delayed", f"{FAR}", 1030, low)])
        equal(self.redis.ask("LLEN", "celery"), 3)

    def test_what_celerys_workers_hold_moves_once_they_are_stopped(self):
        late = message("a", "2096-10-02T07:06:40.250000+00:00", queue="key")
        self.redis.ask("SADD", "_kombu.binding.exchange", "key\x06\x16\x06\x16queue", "else\x06\x16\x06\x16other")
        for tag, text in (("a", late), ("run", message("run", None))):
            self.redis.ask("HSET", "unacked", "tag-" + tag, f'[{text}, "exchange", "key"]')
            self.redis.ask("ZADD", "unacked_index", 1, "tag-" + tag)
        with socket.create_connection(("127.0.0.1", self.redis.port)) as worker:
            worker.sendall(b"BRPOP celery 0\r\n")
            until(lambda: " cmd=brpop " in self.redis.ask("CLIENT", "LIST"), "a worker waits")
            counts, err = self.move(1, "celery")
            equal([counts[name] for name in ("put", "left", "reserved")], [0, 0, 1])
            matches("1 job is left, which workers of the source run", err)
            # It is not one of another database.
            for key in ("unacked", "unacked_index", "_kombu.binding.exchange"):
                self.redis.ask("COPY", key, key, "DB", 1)
            equal(self.move(0, "celery", address=self.address + "/1")[0]["put"], 1)
        until(lambda: " cmd=brpop " not in self.redis.ask("CLIENT", "LIST"), "it has gone")
        counts, _ = self.move(0, "celery")
        equal((counts["kept"], counts["deleted"]), (1, 1))
        equal(self.told(), [("queue", "delayed", f"{FAR}.25", 1024, late)])
        equal((self.redis.ask("HKEYS", "unacked"), self.redis.ask("ZRANGE", "unacked_index", 0, -1)), (["tag-run"], ["tag-run"]))

    def test_what_was_put_when_it_was_killed_is_not_put_again(self):
        for number in range(150):
            self.bullmq(f"b{number}", FAR + number % 7)
            self.redis.ask("ZADD", "queues:mail:delayed", FAR, json.dumps({"uuid": f"l{number}", "job": "x"}))
            self.resque(FAR + number % 40, "mail", "alike")
            self.redis.ask("LPUSH", "celery", message(f"c{number}", "2096-10-02T07:06:40+00:00"))
        for library in ("bullmq", "laravel", "resque", "celery"):
            before = len(self.jobs())
            started, killed = [], threading.Event()

            def kill():
                started[0].kill()
                started[0].wait()
                killed.set()
                return "stop"

            with Relay(self.redis.port, REMOVE, kill) as relay:
                started.append(self.server.program.start("import", "--from", f"{library}://{relay.address}"))
                check(killed.wait(PATIENCE), "it was killed")
                started[0].communicate()
                address = relay.address
            put = len(self.jobs()) - before
            check(put > 0, "some were put")
            # By the name that the source had before.
            with Relay(self.redis.port, REMOVE, lambda: None, port_here=int(address.split(":")[1])):
                counts, err = self.move(0, library, address=address)
            equal((library, counts["put"], counts["kept"], counts["deleted"]), (library, 150 - put, put, 150), err)
            equal(len(self.jobs()), before + 150)

    def test_follow(self):
        follow = self.server.program.start("import", "--from", "bullmq://" + self.address, "--follow", "--json")
        for number in range(5):
            self.bullmq(f"{number}", FAR, queue=f"q{number}")
            until(lambda: not self.redis.ask("KEYS", "bull:*"), "it has moved")
        follow.send_signal(signal.SIGTERM)
        out, err = follow.communicate(timeout=PATIENCE)
        equal((follow.returncode, objects(out)[0]["put"]), (0, 5), err)

    def test_odd_members_of_bullmq_stop_no_other(self):
        """Not even those that make a script fail."""
        self.bullmq("1", FAR, priority="99999999999999999999")
        self.bullmq("at no time", FAR, priority="-5")
        self.redis.ask("ZADD", "bull:mail:delayed", "-inf", "at no time", 1, "delayed", "inf", "is never due")
        self.scheduler("never", FAR, every="abc")
        self.scheduler("ends", FAR, every="1000", endDate="zz")
        self.redis.ask("ZADD", "bull:mail:report", 1, "of another program")
        counts, err = self.move(1, "bullmq")
        equal([counts[name] for name in ("put", "deleted", "left", "left_out")], [2, 2, 3, 3], err)
        equal(len(re.findall("cannot be read: mend or remove it; it stays there", err)), 3, err)
        equal([job[:4] for job in self.told()], [("mail", "delayed", f"{FAR}", 4294967295), ("mail", "ready", "", 1024)])
        check("of another program" not in err, err)

    def test_odd_messages_of_celery_stop_no_other(self):
        """Nor is another one removed in their place."""
        self.redis.ask("RPUSH", "celery", message("waits", "2100-01-01T00:00:00Z"))
        self.redis.ask("SET", "_kombu.binding.odd", "no set")
        victim = json.loads(message("victim", "2100-01-01T00:00:00Z"))
        del victim["headers"]["eta"]
        for tag, text, exchange in (("tag-none", message("none", "2100-01-01T00:00:00Z").replace("delivery_tag", "d"), ""),
                                    ("tag-other", message("other", "2100-01-01T00:00:00Z").replace("tag-other", "tag-victim"), ""),
                                    ("tag-odd", message("odd", "2100-01-01T00:00:00Z"), "odd"), ("tag-victim", json.dumps(victim), "")):
            self.redis.ask("HSET", "unacked", tag, json.dumps([json.loads(text), exchange, "celery"]))
            self.redis.ask("ZADD", "unacked_index", 1, tag)
        counts, err = self.move(1, "celery")
        equal([counts[name] for name in ("put", "deleted", "returned", "left", "left_out")], [1, 1, 0, 3, 3], err)
        equal(len(re.findall("delivery_tag is not its field", err)), 2, err)
        equal(sorted(self.redis.ask("HKEYS", "unacked")), ["tag-none", "tag-odd", "tag-other", "tag-victim"])

    def test_an_import_ends_beside_keys_of_others(self):
        """Their names are like those of a library, and they hold none of its jobs."""
        self.resque(FAR, "mail", 1)
        self.redis.ask("RPUSH", "resque:delayed:mine", "x")
        self.redis.ask("RPUSH", "resque:delayed:", "x")
        self.redis.ask("ZADD", "queues::delayed", 1, "x")
        equal([self.move(0, library)[0]["left"] for library in ("resque", "laravel")], [0, 0])
        equal(len(self.jobs()), 1)

    def test_errors(self):
        for url, pattern in (("celery://", "expected celery://HOST:PORT, .../DB or .../DB/PREFIX: the host is missing"),
                             ("laravel://127.0.0.1:1", "is Redis running")):
            matches(pattern, self.server.program.run(1, "import", "--from", url).err)


if __name__ == "__main__":
    main()
