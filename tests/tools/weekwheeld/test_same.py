#!/usr/bin/env python3
"""beanstalkd and weekwheeld are told the same and must answer the same, byte by byte, except what has to differ.

BEANSTALKD names another program. WW_SAME sets how many random commands are sent, 3,000 by default.
"""
# tier: check, no-sanitizers
import os
import random
import re
import select
import signal
import socket
from concurrent.futures import ThreadPoolExecutor

from harness import PATIENCE, Beanstalkd, Case, Server, main, seed

# Numbers of a process, of a machine's speed, or of how beanstalkd stores.
DIFFERENT = r"^(pid|version|rusage-[us]time|uptime|id|binlog-[a-z-]+|age|time-left|pause-time-left|file): .*$"


class Talk:
    """Clients by their names, and all that they said and heard."""

    def __init__(self, server):
        self.server, self.clients, self.said = server, {}, []

    def client(self, name):
        if name not in self.clients:
            self.clients[name] = self.server.client()
        return self.clients[name]

    def tell(self, name, line):
        """Send a command without waiting for the answer."""
        data = (line if isinstance(line, bytes) else line.encode()) + b"\r\n"
        self.client(name).send(data)
        self.said.append("%s says %r" % (name, data if len(data) < 300 else data[:300]))

    def hear(self, name, times=1):
        for _ in range(times):
            try:
                answer = self.client(name).answer()
            except (EOFError, ConnectionError):
                answer = "(closed)"
            head, bar, block = answer.partition("|")
            if head.startswith("OK "):
                block = re.sub(r"^oldest-ready: .*\n", "", block, flags=re.M)  # only weekwheeld has it
                head, block = "OK", re.sub(DIFFERENT, r"\1: *", block, flags=re.M)
            self.said.append("%s hears %r" % (name, head + bar + block))
        return answer

    def hear_one_of(self, names):
        """One of them hears, whichever it is: weekwheeld serves waiting clients in their order, beanstalkd does not."""
        ready = select.select([self.client(name).socket for name in names], [], [], PATIENCE)[0]
        assert len(ready) == 1, ready
        name = next(name for name in names if self.client(name).socket is ready[0])
        self.said.append("somebody hears %r" % self.client(name).answer())

    def hear_at_the_end_of(self, name, holder):
        """Hear when the holder's lease has ended. On a busy machine beanstalkd may forget it until its holder speaks."""
        while not select.select([self.client(name).socket], [], [], 2)[0]:
            self.client(holder).send(b"wake\r\n")
            assert self.client(holder).answer() == "UNKNOWN_COMMAND"
        self.hear(name)

    def ask(self, name, *lines):
        for line in lines:
            self.tell(name, line)
            self.hear(name)

    def ask_alone(self, line):
        """Ask on a connection of its own, since the number of answers is unknown."""
        client = self.server.client()
        with client:
            client.send(line.encode() + b"\r\n")
            client.socket.shutdown(socket.SHUT_WR)
            try:
                while True:
                    client.more()
            except (EOFError, ConnectionError):
                pass
        self.said.append("%r is answered %r" % (line, client.kept))

    def wait_for(self, name, count):
        """Wait until that many clients wait for a job. What this asks is not part of the story."""
        self.client(name).until_waiting(count)

    def end(self):
        for client in self.clients.values():
            client.close()


def same(story, *arguments):
    """Tell a story to both servers. The first difference is a failure."""
    def heard_by(kind):
        with kind(*arguments) as server:
            talk = Talk(server)
            try:
                story(talk)
            finally:
                talk.end()
            return talk.said

    with ThreadPoolExecutor() as both:
        heard = list(both.map(heard_by, (Beanstalkd, Server)))
    for number, (theirs, ours) in enumerate(zip(*heard)):
        assert theirs == ours, "after %s:\n  beanstalkd: %s\n  weekwheeld: %s" % (
            "; ".join(heard[0][max(number - 6, 0):number]), theirs, ours)
    assert len(heard[0]) == len(heard[1])


def random_command(draw, last):
    """A command whose answer does not depend on the time. `last` is about how many jobs were put.

    There are no pauses: beanstalkd forgets the pause and the counts of a tube that nobody uses, unlike weekwheeld.
    """
    number = draw.randrange(max(1, last - 20), last + 2)
    tube = draw.choice(("default", "t", "u", "v-1"))
    priority = draw.choice((0, 1, 5, 1023, 1024, 4294967295))
    return draw.choice((
        "put %d %d 1000 3\r\nabc" % (priority, draw.choice((0, 0, 0, 5000, 6000))), "put %d 0 1000 0\r\n" % priority,
        "reserve-with-timeout 0", "reserve-with-timeout 0", "reserve-job %d" % number, "delete %d" % number,
        "release %d %d %d" % (number, priority, draw.choice((0, 0, 7000))), "bury %d %d" % (number, priority),
        "touch %d" % number, "kick %d" % draw.randrange(4), "kick-job %d" % number, "peek %d" % number, "peek-ready",
        "peek-delayed", "peek-buried", "use " + tube, "watch " + tube, "ignore " + tube, "stats-job %d" % number,
        "stats-tube " + tube, "list-tubes-watched", "list-tube-used", "stats"))


class SameAsBeanstalkd(Case):
    def test_a_job_lives(self):
        def story(talk):
            talk.ask("a", "put 5 0 60 5\r\nhello", "stats-job 1", "peek 1", "peek-ready", "peek-delayed", "peek-buried",
                     "reserve", "stats-job 1", "peek-ready", "touch 1", "release 1 7 100", "stats-job 1", "peek-delayed",
                     "kick 5", "stats-job 1", "reserve-job 1", "stats-job 1", "bury 1 9", "stats-job 1", "peek-buried",
                     "kick-job 1", "kick-job 1", "kick 1", "stats-job 1", "delete 1", "delete 1", "stats-job 1", "peek 1",
                     "reserve-with-timeout 0", "stats-tube default", "stats")
        same(story)

    def test_put(self):
        def story(talk):
            talk.ask("a", "put 0 0 0 0\r\n", "stats-job 1", "put 4294967295 4294967295 4294967295 1\r\nx", "stats-job 2",
                     b"put 1024 0 1 6\r\n\0\r\n\xff\r\n", "stats-job 3", "peek 3", "reserve", "put 1023 0 10 3\r\n\r\n\r",
                     "stats-tube default", "list-tubes", b"put 0 0 10 65535\r\n" + b"x" * 65535, "peek 5",
                     b"put 0 0 10 65536\r\n" + b"quit\r\n" * 10922 + b"quit", "stats-tube default")
        same(story)

    def test_the_order_of_ready_jobs(self):
        def story(talk):
            for number, priority in enumerate((5, 3, 5, 4294967295, 0, 3, 1024, 1023)):
                talk.ask("a", "put %d 0 60 1\r\n%d" % (priority, number))
            for _ in range(9):
                talk.ask("a", "peek-ready", "reserve-with-timeout 0", "stats-tube default")
            talk.ask("a", "release 3 5 0", "release 1 5 0", "release 8 0 0", "reserve", "reserve", "reserve")
        same(story)

    def test_wrong_commands(self):
        def story(talk):
            for line in ("", " ", "nix", "PUT 0 0 0 0", "put", "put 1", "put 1 1", "put 1 1 1", "put a 0 0 0", "put 0 a 0 0",
                         "put 0 0 a 0", "put 0 0 0 a", "put -1 0 0 0", "put 0 -1 0 0", "put 0 0 -1 0", "put 0 0 0 -1",
                         "put 4294967296 0 0 0", "put 0 0 0 0 0", "put  0 0 0 0\r\n", "put 0  0 0 0\r\n", "put 0 0 0 0 ",
                         "reserve 1", "reserve ", "reserve-with-timeout", "reserve-with-timeout -1", "reserve-job", "reserve-job x", "reserve-job 0", "reserve-job 1 1",
                         "delete", "delete x", "delete 1x", "delete -1", "delete +1", "delete  1", "delete 1 ", "delete 0",
                         "delete 18446744073709551615", "delete 18446744073709551616", "release", "release 1", "release 1 1",
                         "release 1 1 x", "release 1 x 1", "release x 1 1", "release 1 1 1 1", "bury", "bury 1", "bury 1 x",
                         "bury x 1", "touch", "touch x", "touch 1", "kick", "kick x", "kick 0",
                         "kick-job", "kick-job x", "kick-job 0", "peek", "peek x", "peek 0", "peek 1 ", "peek-ready 1",
                         "peek-ready ", "peek-delayed x", "peek-buried x", "peek-nix", "use", "use ", "use -x", "use a b",
                         "use a ", "use a\tb", "use \xe9", "use a,b", "use +/;.$_()", "use " + "x" * 200, "use " + "x" * 201,
                         "watch", "watch -x", "watch a b", "watch " + "y" * 200, "watch " + "y" * 201, "ignore", "ignore -x",
                         "ignore nix", "ignore " + "y" * 201, "stats-job", "stats-job x", "stats-job 0", "stats-job 9",
                         "stats-tube", "stats-tube -x", "stats-tube nix", "stats x", "stats ", "list-tubes x", "list-tubes ",
                         "list-tube-used x", "list-tubes-watched x", "list-tube", "pause-tube", "pause-tube default",
                         "pause-tube default x", "pause-tube default -1", "pause-tube nix 1", "pause-tube -x 1", "quit x",
                         "x" * 221, "x" * 222, "x" * 1000, "delete " + "0" * 214 + "1",
                         "statsx", "reservex", "deletex 1", "use", "watc x"):
                talk.ask_alone(line)
        same(story)

    def test_where_beanstalkd_is_more_lenient(self):
        """beanstalkd ignores what follows a number, and does not answer a line that is one byte too long."""
        with Server() as server, server.client() as client:
            for line in ("reserve-with-timeout x", "reserve-with-timeout 0 ", "kick -1", "kick 1 1", "x" * 223):
                answer = client.ask(line)
                assert answer == "BAD_FORMAT", (line, answer)

    def test_bodies_that_do_not_end(self):
        def story(talk):
            talk.ask("a", b"put 0 0 60 2\r\nabcd", "list-tube-used", b"put 0 0 60 4\r\nab", "list-tube-used")
            talk.tell("a", b"put 0 0 60 5\r\n12345xy\r\nlist-tube-used")
            talk.hear("a", 2)
        same(story)

    def test_tubes(self):
        def story(talk):
            talk.ask("a", "list-tube-used", "use t", "list-tube-used", "list-tubes", "watch u", "watch u", "watch v",
                     "list-tubes-watched", "stats-tube u", "ignore default", "list-tubes-watched", "ignore nix", "ignore v",
                     "ignore u", "list-tubes-watched", "list-tubes", "stats-tube nix", "stats-tube v", "stats-tube t",
                     "use default", "stats-tube t", "put 0 0 60 1\r\nx", "use w", "stats-tube default", "stats")
            talk.ask("b", "list-tubes", "use t", "put 0 0 60 1\r\ny", "use default", "stats-tube t", "watch t", "watch u",
                     "reserve", "reserve", "list-tubes", "delete 2", "ignore t", "stats-tube t", "list-tubes")
        same(story)

    def test_another_clients_job(self):
        def story(talk):
            talk.ask("a", "put 9 0 60 1\r\nx", "reserve")
            talk.ask("b", "delete 1", "release 1 0 0", "bury 1 0", "touch 1", "reserve-job 1", "kick-job 1", "peek 1",
                     "stats-job 1", "stats-tube default")
            talk.tell("b", "reserve")
            talk.wait_for("c", 1)
            talk.client("a").close()
            talk.hear("b")
            talk.ask("b", "stats-job 1")
            # Only weekwheeld counts this as a release.
            talk.said[-1] = talk.said[-1].replace("releases: 1", "releases: 0")
        same(story)

    def test_those_who_wait(self):
        def story(talk):
            for number, name in enumerate("pqrs"):
                talk.ask(name, "watch t")
                talk.tell(name, "reserve")
                talk.wait_for("a", number + 1)
            talk.ask("a", "stats-tube t", "stats-tube default")
            for number in range(4):
                talk.ask("a", "use t" if number % 2 else "use default", "put %d 0 60 1\r\nx" % (9 - number))
                talk.hear_one_of("pqrs")
            talk.ask("a", "stats-tube t", "stats-tube default", "stats")
            # How often wait_for asked depends on the time.
            talk.said[-1] = re.sub(r"cmd-stats: \d+", "cmd-stats: *", talk.said[-1])
        same(story)

    def test_a_side_is_closed(self):
        def story(talk):
            talk.tell("a", "reserve")
            talk.wait_for("b", 1)
            talk.client("a").socket.shutdown(socket.SHUT_WR)
            talk.hear("a")
            talk.ask("b", "put 0 0 60 1\r\nx", "peek-ready")
            talk.tell("b", "quit")
            talk.hear("b")
        same(story)

    def test_time(self):
        """Real seconds, as few as possible."""
        def story(talk):
            talk.ask("a", "put 0 1 1 1\r\nx", "reserve-with-timeout 0")
            talk.ask("a", "reserve-with-timeout 30", "stats-job 1", "reserve-with-timeout 0", "touch 1")
            # Without a timeout: beanstalkd may answer TIMED_OUT at once to a client that waits for another's lease.
            talk.tell("b", "reserve")
            talk.hear_at_the_end_of("b", "a")
            talk.ask("b", "stats-job 1")
            talk.ask("a", "delete 1", "release 1 0 0", "touch 1", "bury 1 0")
            talk.ask("b", "put 0 0 60 1\r\ny")
            talk.ask("a", "reserve")
            talk.ask("b", "delete 1", "stats-tube default")
            talk.ask("c", "reserve-with-timeout 1", "stats")
        same(story)

    def test_a_lease_is_about_to_end_while_its_holder_waits(self):
        def story(talk):
            talk.ask("a", "put 0 0 2 1\r\nx", "reserve", "reserve-with-timeout 20", "delete 1")
        same(story)

    def test_bury_and_kick(self):
        def story(talk):
            for number in range(6):
                talk.ask("a", "put %d %d 60 1\r\nx" % (6 - number, number % 2 * 1000))
            for _ in range(3):
                talk.ask("a", "reserve")
            talk.ask("a", "bury 3 8", "bury 5 7", "bury 1 9", "peek-buried", "stats-tube default", "kick 2", "peek-buried",
                     "peek-ready", "stats-tube default", "stats-job 3", "stats-job 1", "kick 5", "peek-delayed",
                     "stats-tube default", "kick 2", "peek-delayed", "kick-job 6", "kick-job 2", "stats-job 2", "kick 9",
                     "use t", "kick 1", "stats-job 6", "delete 6", "reserve-job 2", "release 2 1 500", "delete 2",
                     "stats-tube default")
        same(story)

    def test_reserve_job(self):
        def story(talk):
            talk.ask("a", "put 0 0 60 1\r\nr", "put 0 100 60 1\r\nd", "put 0 0 60 1\r\nb", "reserve-job 3", "bury 3 0",
                     "reserve-job 3", "reserve-job 2", "reserve-job 1", "reserve-job 1", "reserve-job 4", "release 2 0 5",
                     "stats-job 1", "stats-job 2", "stats-job 3", "stats-tube default", "stats", "delete 1", "delete 2", "delete 3")
        same(story)

    def test_pause(self):
        def story(talk):
            talk.ask("a", "use p", "watch p", "pause-tube p 1000", "put 0 0 60 1\r\nx", "reserve-with-timeout 0", "stats-tube p",
                     "peek-ready", "pause-tube p 0", "stats-tube p", "reserve-with-timeout 0", "pause-tube p 1")
            talk.ask("a", "release 1 0 0", "reserve-with-timeout 30", "delete 1", "stats-tube p", "pause-tube default 4294967295",
                     "stats-tube default", "pause-tube default 4294967296", "pause-tube nix 0")
        same(story)

    def test_pipelined(self):
        def story(talk):
            talk.tell("a", b"".join(b"put %d 0 60 3\r\n%03d\r\n" % (number % 7, number) for number in range(500)) +
                      b"reserve\r\n" * 500 + b"".join(b"delete %d\r\n" % (number + 1) for number in range(500)) + b"stats")
            talk.hear("a", 1501)
        same(story)

    def test_draining(self):
        def story(talk):
            talk.ask("a", "put 0 0 60 1\r\nx")
            talk.server.process.send_signal(signal.SIGUSR1)
            talk.client("a").until_stats("draining", "true")
            talk.ask("a", "put 0 0 60 4\r\nquit", b"put 0 0 60 1\r\nabc", "put 0 0 60 70000\r\n" + "x" * 70000, "reserve",
                     "delete 1")
        same(story)

    def test_random_commands(self):
        number = seed()

        def story(talk):
            draw, last = random.Random(number), 0
            for _ in range(int(os.environ.get("WW_SAME") or 3000)):
                command = random_command(draw, last)
                last += command.startswith("put")
                talk.ask(draw.choice("abc"), command)
                talk.said[-1] = re.sub(r"(total-jobs|cmd-delete): \d+", r"\1: *", talk.said[-1])
        same(story)


main()
