#!/usr/bin/env python3
"""Redis's clock is set, forwards and backwards: what was to come later comes by the new time; nothing is lost or early.

A redis-server has shifted_clock.c before its C library; processes that use the store (store_rig.h: actors) have clocks
that go on. Each step is told by an event, for which there are minutes; what a test would miss comes hours later.
"""
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, __file__.rsplit("/tests/", 1)[0] + "/tests/support")
# pylint: disable=wrong-import-position
from actors import ACTOR, cannot_run

SOURCE = os.path.join(sys.path[0], 'redis', 'shifted_clock.c')
SECOND = 1_000_000  # us
HOUR = 3600 * SECOND
PATIENCE = 120
SHARDS = 16
running = []


class Redis:
    """A server whose clock is ours, and commands to it without a client library."""

    def __init__(self, folder, library):
        self.folder, self.file, self.shift = os.path.realpath(folder), os.path.join(folder, 'shift'), 0
        self.step(0)
        # A port that was free may be taken by now.
        if not any(self.start(library) for _ in range(5)):
            with open(os.path.join(folder, 'log'), encoding='utf-8') as log:
                raise AssertionError('redis-server ends at once: ' + log.read())

    def start(self, library):
        with socket.socket() as one:
            one.bind(('127.0.0.1', 0))
            self.port = one.getsockname()[1]
        self.process = subprocess.Popen(
            ['redis-server', '--port', str(self.port), '--bind', '127.0.0.1', '--dir', self.folder, '--save', '',
             '--logfile', os.path.join(self.folder, 'log')],
            env=dict(os.environ, LD_PRELOAD=library, SHIFT=self.file))
        running.append(self.process)
        until(lambda: self.process.poll() is not None or self.answers(), 'redis-server answers')
        return self.process.poll() is None

    def answers(self):
        """Whether it does, and none that has got the port before it."""
        try:
            return self.ask('CONFIG', 'GET', 'dir') == ['dir', self.folder]
        except (OSError, ValueError):
            return False

    def step(self, us):
        """Set the clock, forwards or backwards."""
        self.shift += us
        # The file is written in place: it is mapped.
        with open(self.file, 'r+b' if os.path.exists(self.file) else 'wb') as file:
            file.write(struct.pack('=q', self.shift))

    def ask(self, *words):
        """A status, or an array of strings."""
        with socket.create_connection(('127.0.0.1', self.port), timeout=30) as one:
            one.sendall((' '.join(words) + '\r\n').encode())
            with one.makefile('r', newline='\r\n') as answer:
                head = answer.readline().rstrip('\r\n')
                if not head.startswith('*'):
                    return [head[1:]]
                return [answer.readline() and answer.readline().rstrip('\r\n') for _ in range(int(head[1:]))]

    def now(self):
        seconds, us = self.ask('TIME')
        return int(seconds) * SECOND + int(us)


class Actor:
    def __init__(self, redis):
        self.process = subprocess.Popen([ACTOR, 'actor', f'redis://127.0.0.1:{redis.port}', 'weekwheel', '1000'],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(self.process)
        assert self.hear() == ['ok']

    def hear(self):
        return self.process.stdout.readline().split()

    def ask(self, *words):
        self.process.stdin.write(' '.join(map(str, words)) + '\n')
        self.process.stdin.flush()
        return self.hear()

    def put(self, delay, body):
        job = int(self.ask('put', 't', delay, body)[0])
        assert job > 0, job
        return job

    def wait(self, seconds=PATIENCE):
        """Id, token, attempt, end of the lease, body."""
        words = self.ask('wait', 't', seconds * 1000)
        assert words[0] == '1', f'no job came: {words}'
        return (*map(int, words[1:5]), words[5])

    def finish(self, job, token):
        return int(self.ask('finish', job, token)[0])

    def expect(self, body, attempt=1):
        job, token, tries, ends, name = self.wait()
        assert (name, tries) == (body, attempt), f'{name}, attempt {tries}, and not {body}, {attempt}'
        return job, token, ends

    def expect_nothing(self):
        assert self.ask('wait', 't', 0) == ['0']

    def kill(self):
        self.process.kill()
        self.process.wait()


def until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f'never: {what}'
        time.sleep(0.02)


def forwards_what_became_due_comes(redis, actor):
    actor.put(HOUR, 'far')
    actor.expect_nothing()
    redis.step(HOUR)
    job, token, _ = actor.expect('far')
    assert actor.finish(job, token) == 0


def backwards_what_is_put_comes_by_the_new_time_and_the_rest_waits(redis, actor):
    actor.put(HOUR, 'later')
    redis.step(-2 * HOUR)
    due = redis.now() + SECOND
    actor.put(SECOND, 'soon')
    job, token, ends = actor.expect('soon')
    assert redis.now() >= due, 'soon was early'
    assert ends >= due, 'its lease began before it was due'
    assert actor.finish(job, token) == 0
    actor.expect_nothing()
    redis.step(3 * HOUR)
    job, token, _ = actor.expect('later')
    assert actor.finish(job, token) == 0


def a_lease_runs_out_by_the_new_time_and_its_token_is_stale(redis, actor):
    actor.put(0, 'held')
    job, token, _ = actor.expect('held')
    redis.step(HOUR)
    again, later, _ = actor.expect('held', 2)
    assert again == job and later > token
    assert actor.finish(job, token) == -9
    # It does not run out the sooner for a clock that goes back.
    redis.step(-HOUR)
    actor.expect_nothing()
    assert actor.finish(job, later) == 0


def tokens_grow_while_time_goes_back(redis, actor):
    highest = {}
    for turn in range(3):
        for i in range(SHARDS):
            actor.put(0, f'{turn}-{i}')
        for _ in range(SHARDS):
            job, token, *_ = actor.wait()
            assert token > highest.get(job % SHARDS, 0), f'token {token} of shard {job % SHARDS} in turn {turn}'
            highest[job % SHARDS] = token
            assert actor.finish(job, token) == 0
        redis.step(-HOUR)
    assert len(highest) == SHARDS, 'not all shards had jobs'


def shards_of_one_that_died_are_taken_over_though_its_time_is_ahead(redis, actor):
    other = Actor(redis)
    until(lambda: actor.ask('stats')[:2] == [str(SHARDS // 2), '2'], 'two share the shards')
    other.kill()
    redis.step(-2 * HOUR)
    until(lambda: actor.ask('stats')[:2] == [str(SHARDS), '1'], 'one has all shards')
    for i in range(SHARDS):
        actor.put(SECOND // 10, f'j{i}')
    for _ in range(SHARDS):
        job, token, *_ = actor.wait()
        assert actor.finish(job, token) == 0


TESTS = [forwards_what_became_due_comes, backwards_what_is_put_comes_by_the_new_time_and_the_rest_waits,
         a_lease_runs_out_by_the_new_time_and_its_token_is_stale, tokens_grow_while_time_goes_back,
         shards_of_one_that_died_are_taken_over_though_its_time_is_ahead]


def run(test, folder, library):
    os.mkdir(folder)
    try:
        redis = Redis(folder, library)
        actor = Actor(redis)
        # When this comes, its worker has begun to wait.
        actor.put(SECOND // 20, 'first')
        assert actor.finish(*actor.expect('first')[:2]) == 0
        test(redis, actor)
    except Exception:  # pylint: disable=broad-except
        print(f'{test.__name__}:')
        traceback.print_exc(limit=-2, file=sys.stdout)
        return False
    finally:
        while running:
            process = running.pop()
            process.kill()
            process.wait()
    return True


def shifted_clock(folder):
    """The library that a server is to have; None after a message."""
    library = os.path.join(folder, 'shifted_clock.so')
    compiler = (os.environ.get('CC') or 'cc').split()
    try:
        subprocess.run([*compiler, '-D_DEFAULT_SOURCE', '-shared', '-fPIC', SOURCE, '-o', library], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f'{SOURCE} cannot be compiled: {error}')
        return None
    return library


def main():
    status = cannot_run(len(TESTS))
    if status is not None:
        return status
    # Servers are not to outlive this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix='weekwheel-clock-') as folder:
        library = shifted_clock(folder)
        results = [library is not None and run(test, os.path.join(folder, test.__name__), library) for test in TESTS]
    print(f'{results.count(True)} passed, {results.count(False)} failed')
    return 1 if False in results else 0


if __name__ == '__main__':
    sys.exit(main())
