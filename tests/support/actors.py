"""The program that scripts here start processes of (store_rig.h: actors), and what there is to do without it."""
import os
import shutil

BUILD = os.environ.get('B', 'build')
ACTOR = os.path.join(BUILD, 'tests', 'test_redis_worker')


def cannot_run(tests):
    """Where no test can run, say why, and how many tests these are; returns the status to exit with, or None."""
    reason = None
    if not shutil.which('redis-server'):
        reason = 'redis-server is not installed'
    elif not os.path.exists(os.path.join(BUILD, 'lib', 'libweekwheel_redis.a')):
        reason = 'this build has no jobs in Redis'
    if reason:
        print(f'skipped: {reason}')
        print(f'0 passed, 0 failed, {tests} skipped')
        return 77
    if not os.path.exists(ACTOR):
        print(f'There is no {ACTOR}, which make check builds.')
        print(f'0 passed, {tests} failed')
        return 1
    return None
