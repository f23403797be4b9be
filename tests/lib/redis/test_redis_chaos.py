#!/usr/bin/env python3
"""Chaos: jobs in Redis while everything that may break does.

Producers put jobs; workers are killed, stopped for longer than their leases and resumed, and have clocks of their own;
connections are cut; Redis is killed and started again with what it wrote. At the end:

- every job whose put was acknowledged has been executed;
- none was leased before its due time by Redis's clock;
- a job was leased twice only where the first lease had run out, and then with a higher token;
- behind a fence, no effect of a lower token follows one of a higher one, and nothing that was finished comes again.

WW_SEED is the seed, WW_CHAOS_SECONDS how long it goes on (30), WW_CHAOS_NODES 1 or 3 (a cluster; 1).
"""
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, __file__.rsplit("/tests/", 1)[0] + "/tests/support")
# pylint: disable=wrong-import-position
from actors import ACTOR, cannot_run

SEED = int(os.environ.get('WW_SEED') or random.SystemRandom().getrandbits(32))
SECONDS = float(os.environ.get('WW_CHAOS_SECONDS', '30'))
NODES = int(os.environ.get('WW_CHAOS_NODES', '1'))
WORKERS, PRODUCERS = 5, 2
RUN = 1_000_000  # us of a lease
PATIENCE = 180
chance = random.Random(SEED)


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


class Redis:
    """A server, and commands to it without a client library."""

    def __init__(self, folder, cluster):
        self.folder, self.cluster, self.port = folder, cluster, free_port()
        self.bus = free_port()
        os.mkdir(folder)
        self.start()

    def start(self):
        words = ['redis-server', '--port', str(self.port), '--bind', '127.0.0.1', '--dir', self.folder, '--save', '',
                 '--appendonly', 'yes', '--appendfsync', 'always', '--logfile', self.folder + '/log']
        if self.cluster:
            words += ['--cluster-enabled', 'yes', '--cluster-port', str(self.bus), '--cluster-node-timeout', '2000']
        self.process = subprocess.Popen(words)
        until(self.answers, 'redis-server answers')

    def answers(self):
        assert self.process.poll() is None, f'redis-server ended at once: port {self.port}'
        # Another one may have got the port.
        return f'process_id:{self.process.pid}\r\n' in (self.try_ask('INFO', 'server') or '')

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, *words):
        with socket.create_connection(('127.0.0.1', self.port), timeout=30) as one:
            one.sendall((' '.join(map(str, words)) + '\r\n').encode())
            with one.makefile('r', newline='\r\n') as answer:
                head = answer.readline().rstrip('\r\n')
                if head.startswith('$'):
                    return answer.read(int(head[1:]))
                return head

    def try_ask(self, *words):
        try:
            return self.ask(*words)
        except OSError:
            return None


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f'never: {what}')
        time.sleep(0.02)


def make_cluster(servers):
    for i, server in enumerate(servers):
        server.ask('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
        server.ask('CLUSTER', 'ADDSLOTSRANGE', 16384 * i // len(servers), 16384 * (i + 1) // len(servers) - 1)
        servers[0].ask('CLUSTER', 'MEET', '127.0.0.1', server.port, server.bus)
    for server in servers:
        until(lambda s=server: 'cluster_state:ok' in s.ask('CLUSTER', 'INFO'), 'the cluster is there')
        until(lambda s=server: f'cluster_known_nodes:{len(servers)}' in s.ask('CLUSTER', 'INFO'), 'all have met')


class Journal:
    """Lines of all actors in the order in which they were read, which is that of the effects."""

    def __init__(self):
        self.lock = threading.Lock()
        self.due, self.acknowledged, self.leases, self.finished = {}, {}, {}, {}
        self.highest, self.effects, self.refused, self.wrong = {}, {}, 0, []

    def read(self, line):
        words = line.split()
        with self.lock:
            if len(words) == 3 and words[0] == 'T':
                self.due[words[1]] = int(words[2])
            elif len(words) == 3 and words[0] == 'P':
                self.acknowledged[words[1]] = int(words[2])
            elif len(words) == 6 and words[0] == 'J':
                self.delivered(words[5], int(words[2]), int(words[3]), int(words[4]))
            elif len(words) == 4 and words[0] == 'F' and words[3] == '0':
                self.finished[int(words[1]), int(words[2])] = True

    def delivered(self, body, token, attempt, ends):
        self.leases.setdefault(body, []).append((token, attempt, ends))
        if token < self.highest.get(body, 0):
            self.refused += 1
            return
        self.highest[body] = token
        self.effects[body] = self.effects.get(body, 0) + 1

    def missing(self):
        with self.lock:
            return [body for body in self.acknowledged if body not in self.effects]

    def judge(self):
        doubles = 0
        for body, leases in self.leases.items():
            leases.sort()
            # A worker's line may have been read before that of who put the job; a line that was cut off says nothing.
            taken = leases[0][2] - RUN
            if body in self.due and taken < self.due[body]:
                self.wrong.append(f'{body} was early by {self.due[body] - taken} us')
            for (token, attempt, ends), (later, later_attempt, later_ends) in zip(leases, leases[1:]):
                doubles += 1
                if later == token:
                    self.wrong.append(f'{body}: the token {token} twice')
                if later_ends - RUN < ends:
                    self.wrong.append(f'{body} was leased again {ends - later_ends + RUN} us before its lease ran out')
                if later_attempt <= attempt:
                    self.wrong.append(f'{body}: attempt {later_attempt} after attempt {attempt}')
                if (self.acknowledged.get(body), token) in self.finished:
                    self.wrong.append(f'{body} came again after it was finished')
        self.wrong += [f'{body} was acknowledged and never executed' for body in self.missing()]
        return doubles


class Actor:
    def __init__(self, journal, url, order, shift=0):
        environment = dict(os.environ, ACTOR_HOLD_US='8000')
        if shift:
            environment['ACTOR_SHIFT_S'] = str(shift)
        self.journal, self.stopped = journal, False
        self.process = subprocess.Popen([ACTOR, 'actor', url, 'weekwheel', '1000'], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)
        self.process.stdin.write(order + '\n')
        self.process.stdin.flush()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            # The last one may be cut off.
            if line.endswith('\n'):
                self.journal.read(line)

    def signal(self, number):
        self.process.send_signal(number)
        self.stopped = number == signal.SIGSTOP

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()


class Chaos:
    def __init__(self, folder):
        self.servers = [Redis(f'{folder}/{i}', NODES > 1) for i in range(NODES)]
        if NODES > 1:
            make_cluster(self.servers)
        self.url = f'redis://127.0.0.1:{self.servers[0].port}'
        self.journal = Journal()
        self.counts = {}
        # Names of producers tell those that came after others apart.
        self.names = 0
        self.workers = [self.new_worker() for _ in range(WORKERS)]
        self.producers = [self.new_producer() for _ in range(PRODUCERS)]

    def new_worker(self):
        return Actor(self.journal, self.url, 'work t', chance.choice([0, 0, -300, 420]))

    def new_producer(self):
        self.names += 1
        return Actor(self.journal, self.url, f'produce t p{self.names} {RUN // 1000} {chance.choice([0, 50000, 2000000])}')

    # What may happen

    def kill_worker(self):
        i = chance.randrange(WORKERS)
        self.workers[i].kill()
        self.workers[i] = self.new_worker()

    def kill_producer(self):
        i = chance.randrange(PRODUCERS)
        self.producers[i].kill()
        self.producers[i] = self.new_producer()

    def stop_worker(self):
        chance.choice(self.workers).signal(signal.SIGSTOP)

    def resume_workers(self):
        for worker in self.workers:
            if worker.stopped:
                worker.signal(signal.SIGCONT)

    def cut_connections(self):
        chance.choice(self.servers).try_ask('CLIENT', 'KILL', 'TYPE', chance.choice(['normal', 'pubsub']))

    def kill_redis(self):
        server = chance.choice(self.servers)
        server.kill()
        time.sleep(chance.random() * 0.5)
        server.start()

    def go(self):
        happenings = [self.kill_worker] * 4 + [self.kill_producer] + [self.stop_worker] * 3 + [self.resume_workers] * 2 + \
            [self.cut_connections] * 3 + [self.kill_redis]
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            happening = chance.choice(happenings)
            happening()
            self.counts[happening.__name__] = self.counts.get(happening.__name__, 0) + 1
            time.sleep(chance.random() * 0.6)
        for producer in self.producers:
            producer.kill()
        self.resume_workers()
        # What is left is done, whoever had it.
        until(lambda: not self.journal.missing(), 'all that was acknowledged is done')

    def end(self):
        for worker in self.workers:
            worker.kill()
        for producer in self.producers:
            producer.kill()
        for server in self.servers:
            server.kill()


def main():
    status = cannot_run(1)
    if status is not None:
        return status
    print(f'test_redis_chaos: seed {SEED}', flush=True)
    # Servers are not to outlive this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix='weekwheel-chaos-') as folder:
        chaos = Chaos(folder)
        try:
            chaos.go()
        except AssertionError as error:
            chaos.journal.wrong.append(str(error))
        finally:
            chaos.end()
    journal = chaos.journal
    doubles = journal.judge()
    print(f'{len(journal.acknowledged)} jobs, {sum(map(len, journal.leases.values()))} leases, {doubles} of them again, '
          f'{journal.refused} effects refused; ' + ', '.join(f'{n} {name}' for name, n in sorted(chaos.counts.items())))
    for sentence in journal.wrong[:20]:
        print(sentence)
    if len(journal.acknowledged) == 0:
        journal.wrong.append('nothing was put')
        print(journal.wrong[-1])
    print(f'{int(not journal.wrong)} passed, {int(bool(journal.wrong))} failed')
    return 1 if journal.wrong else 0


if __name__ == '__main__':
    sys.exit(main())
