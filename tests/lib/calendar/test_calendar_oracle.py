#!/usr/bin/env python3
"""Calendars against an oracle: random expressions, zones and times from 1970 to 2100, half of them where clocks change.

The oracle tries every local time that an expression allows and asks zoneinfo what moments it has. It reads no expression:
the fields are drawn as sets, and as the text that means them. Where there is croniter (package python3-croniter), it reads
the texts, too. WW_CALENDARS: how many are drawn; WW_SEED: from which seed.
"""
# tier: check

import ctypes
import datetime
import os
import pathlib
import random
import sys
import time
import zoneinfo

try:
    import croniter
except ImportError:
    croniter = None

BUILD = pathlib.Path(os.environ.get('B', 'build'))
NAMES = {'month': 'jan feb mar apr may jun jul aug sep oct nov dec'.split(),
         'weekday': 'sun mon tue wed thu fri sat'.split()}
UTC = datetime.timezone.utc
DAY = 86400
LAST = 4102444800  # 2100


class Spec(ctypes.Structure):
    _fields_ = [('expression', ctypes.c_char_p), ('zone', ctypes.c_char_p), ('anchor', ctypes.c_uint64),
                ('allocator', ctypes.c_void_p)]


class Problem(ctypes.Structure):
    _fields_ = [('in_zone', ctypes.c_int), ('at', ctypes.c_size_t), ('reason', ctypes.c_char * 160)]


class Library:
    """The library's calls."""

    def __init__(self):
        ctypes.CDLL(str(BUILD / 'lib/libweekwheel.so.1'), mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(str(BUILD / 'lib/libweekwheel_calendar.so'))
        self.library.ww_calendar_next.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
        self.library.ww_calendar_close.argtypes = [ctypes.c_void_p]

    def next(self, expression, zone, after):
        """Return the next time in seconds, or None; raise ValueError if the expression is refused."""
        calendar = ctypes.c_void_p()
        problem = Problem()
        spec = Spec(expression.encode(), zone.encode(), 0, None)
        if self.library.ww_calendar_open(ctypes.byref(calendar), ctypes.byref(spec), ctypes.byref(problem)):
            raise ValueError(problem.reason.decode())
        found = ctypes.c_uint64()
        error = self.library.ww_calendar_next(calendar, after * 10**9 + 5, ctypes.byref(found))
        self.library.ww_calendar_close(calendar)
        assert error in (0, -4), error
        assert error or found.value % 10**9 == 0
        return None if error else found.value // 10**9


class Field:
    """A field of an expression: its text, its values, and the forms that croniter reads in another way."""

    def __init__(self, draw, name, least, most):
        self.values = set()
        self.lasts = set()      # days before the last of the month
        self.nths = set()       # (weekday, n), n = 0 for the last
        self.is_odd = False
        parts = [self.part(draw, name, least, most) for _ in range(draw.choice([1, 1, 1, 2, 3]))]
        self.text = ','.join(parts)
        self.begins_any = self.text[0] in '*?'
        self.is_odd |= len(parts) > 1 and ('*' in self.text or bool(self.lasts))

    def part(self, draw, name, least, most):
        """Draw a part, add its values and return its text."""
        kind = draw.random()
        top = 6 if name == 'weekday' else most

        def show(value):
            names = NAMES.get(name)
            if names and draw.random() < 0.3 and value - least < len(names):
                return draw.choice([str.upper, str.lower, str.title])(names[value - least])
            return str(value)

        if name == 'day' and kind < 0.15:
            back = draw.choice([0, 0, 1, 3, 27, 30])
            self.is_odd |= back > 0
            self.lasts.add(back)
            return 'L-%d' % back if back else draw.choice('Ll')
        if name == 'weekday' and kind < 0.2:
            weekday, nth = draw.randint(0, 7), draw.randint(0, 5)
            self.is_odd = True
            self.nths.add((weekday % 7, nth))
            return show(weekday) + ('#%d' % nth if nth else draw.choice('Ll'))
        if kind < 0.35:
            self.values |= set(range(least, top + 1))
            if name in ('day', 'weekday') and draw.random() < 0.2:
                self.is_odd = True
                return '?'
            return '*'
        if kind < 0.5:
            step = draw.randint(1, top)
            self.values |= set(range(least, top + 1, step))
            return '*/%d' % step
        first = draw.randint(least, most)
        if kind < 0.8:
            self.values.add(first % 7 if name == 'weekday' else first)
            return show(first)
        last = draw.randint(first, most)
        step = 1 if kind < 0.9 else draw.randint(1, top)
        values = range(first, last + 1, step)
        self.values |= {value % 7 for value in values} if name == 'weekday' else set(values)
        return '%s-%s' % (show(first), show(last)) + ('/%d' % step if step > 1 or draw.random() < 0.1 else '')


class Expression:
    """An expression as text and as sets."""

    def __init__(self, draw):
        self.second = Field(draw, 'second', 0, 59) if draw.random() < 0.25 else None
        self.minute = Field(draw, 'minute', 0, 59)
        self.hour = Field(draw, 'hour', 0, 23)
        self.day = Field(draw, 'day', 1, 31)
        self.month = Field(draw, 'month', 1, 12)
        self.weekday = Field(draw, 'weekday', 0, 7)
        # Days alone, or days of the week alone, as people write them.
        if draw.random() < 0.6:
            for field in draw.choice([('day',), ('weekday',), ('day', 'weekday')]):
                setattr(self, field, Field(random.Random(0), 'minute', 0, 0))
                getattr(self, field).text, getattr(self, field).begins_any, getattr(self, field).is_odd = '*', True, False
                getattr(self, field).values = set(range(0, 32))
        fields = [self.second] * bool(self.second) + [self.minute, self.hour, self.day, self.month, self.weekday]
        self.text = ' '.join(field.text for field in fields)
        self.seconds = sorted(self.second.values) if self.second else [0]
        self.minutes = sorted(self.minute.values)
        self.hours = sorted(self.hour.values)

    def has_day(self, date):
        """Whether a date matches."""
        after = date + datetime.timedelta(1)
        length = (datetime.date(date.year + date.month // 12, date.month % 12 + 1, 1) - datetime.timedelta(1)).day
        weekday = (date.weekday() + 1) % 7
        by_day = date.day in self.day.values or length - date.day in self.day.lasts
        by_weekday = weekday in self.weekday.values or (weekday, (date.day + 6) // 7) in self.weekday.nths or (
            (weekday, 0) in self.weekday.nths and (date + datetime.timedelta(7)).month != date.month)
        if date.month not in self.month.values or not after:
            return False
        if self.day.begins_any or self.weekday.begins_any:
            return by_day and by_weekday
        return by_day or by_weekday

    def days_from(self, date):
        """All dates that match, from a date on."""
        limit = date.year + 60
        while date.year < limit:
            if date.month not in self.month.values:
                date = datetime.date(date.year + date.month // 12, date.month % 12 + 1, 1)
                continue
            if self.has_day(date):
                yield date
            date += datetime.timedelta(1)

    def times_of(self, date):
        """All local times of a date."""
        for hour in self.hours:
            for minute in self.minutes:
                for second in self.seconds:
                    yield datetime.datetime(date.year, date.month, date.day, hour, minute, second)


def offset_at(zone, seconds):
    """Seconds that a zone is ahead of UTC."""
    return int(datetime.datetime.fromtimestamp(seconds, zone).utcoffset().total_seconds())


def gap_end(zone, local):
    """The moment right after the gap that a local time is in."""
    late = int(local.replace(tzinfo=zone, fold=0).timestamp())
    early = int(local.replace(tzinfo=zone, fold=1).timestamp())
    before = offset_at(zone, early - 1)
    early -= 1
    while late - early > 1:
        middle = (late + early) // 2
        if offset_at(zone, middle) == before:
            early = middle
        else:
            late = middle
    return late


def moments(zone, local, is_elapsed):
    """The moments of a local time by the rules of summer time."""
    real = []
    for fold in 0, 1:
        aware = local.replace(tzinfo=zone, fold=fold)
        seconds = int(aware.timestamp())
        if datetime.datetime.fromtimestamp(seconds, zone).replace(tzinfo=None, fold=0) == local:
            real.append(seconds)
    if is_elapsed:
        return real
    return [min(real)] if real else [gap_end(zone, local)]


def oracle(expression, zone, after):
    """The next time after another."""
    is_elapsed = expression.hour.begins_any
    local = datetime.datetime.fromtimestamp(after, zone).replace(tzinfo=None, fold=0)
    begin = local - datetime.timedelta(2)
    best = end = None
    for date in expression.days_from(begin.date()):
        if end and date > end.date():
            break
        noon = int(datetime.datetime(date.year, date.month, date.day, 12, tzinfo=UTC).timestamp())
        is_plain = len({offset_at(zone, noon + hours * 3600) for hours in range(-60, 61, 6)}) == 1
        for time_of_day in expression.times_of(date):
            if time_of_day < begin:
                continue
            if end and time_of_day > end:
                break
            if is_plain:
                found = [int(time_of_day.replace(tzinfo=UTC).timestamp()) - offset_at(zone, noon)]
            else:
                found = moments(zone, time_of_day, is_elapsed)
            for moment in found:
                if moment > after and (best is None or moment < best):
                    best = moment
                    # A later local time is earlier only by what clocks are put back. The plain days have no such thing.
                    end = time_of_day + datetime.timedelta(0 if is_plain else 1.1)
            if is_plain and best is not None and time_of_day >= end:
                break
    return best


def draw_change(draw, zone):
    """A time near a change of the zone's clocks, or any if there is none soon."""
    start = draw.randrange(0, LAST)
    before = offset_at(zone, start)
    for day in range(0, 400):
        if offset_at(zone, start + day * DAY) != before:
            early, late = start + (day - 1) * DAY, start + day * DAY
            while late - early > 1:
                middle = (late + early) // 2
                if offset_at(zone, middle) == before:
                    early = middle
                else:
                    late = middle
            return min(max(late + draw.choice([-1, 0, 1, draw.randint(-3 * 3600, 3 * 3600), draw.randint(-2 * DAY, DAY)]), 0),
                       LAST)
    return start


def croniter_next(expression, after):
    """What croniter says in UTC, or None where its rules are others."""
    days = expression.day, expression.weekday
    if not croniter or expression.second or any(day.is_odd for day in days) or any(
            day.text != '*' and (day.begins_any or len(day.values) in (7, 31)) for day in days):
        return None
    start = datetime.datetime.fromtimestamp(after, UTC)
    try:
        return int(croniter.croniter(expression.text, start, max_years_between_matches=60).get_next(float))
    except (croniter.CroniterBadDateError, croniter.CroniterBadCronError, croniter.CroniterNotAlphaError):
        return None


def main():
    """Draw calendars and compare."""
    if os.environ.get('SANITIZE') or not (BUILD / 'lib/libweekwheel_calendar.so').exists():
        print('skipped: Python cannot load the library of this build')
        return 77
    seed = int(os.environ.get('WW_SEED', time.time_ns() % 10**9))
    count = int(os.environ.get('WW_CALENDARS', 250))
    print('seed %d; again: WW_SEED=%d WW_CALENDARS=%d %s' % (seed, seed, count, sys.argv[0]))
    library = Library()
    zones = sorted(zone for zone in zoneinfo.available_timezones()
                   if not zone.startswith(('right/', 'posix/')) and zone not in ('localtime', 'posixrules', 'Factory'))
    failed = refused = never = by_croniter = 0
    draw = random.Random(seed)
    for number in range(count):
        expression = Expression(draw)
        name = draw.choice(zones)
        zone = zoneinfo.ZoneInfo(name)
        after = draw_change(draw, zone) if number % 2 else draw.randrange(0, LAST)
        try:
            got = library.next(expression.text, name, after)
        except ValueError as error:
            wanted = oracle(expression, UTC, 946684800)
            refused += 1
            if wanted is not None:
                failed += 1
                print('FAIL: %r is refused: %s' % (expression.text, error))
            continue
        wanted = oracle(expression, zone, after)
        never += wanted is None
        if got != wanted:
            failed += 1
            print('FAIL: %r %s after %d: %s, not %s' % (expression.text, name, after, got, wanted))
        wanted = croniter_next(expression, after)
        if wanted is not None:
            by_croniter += 1
            got = library.next(expression.text, 'UTC', after)
            # It steps over some months that are too short for one day of a list.
            if got != wanted and got != oracle(expression, UTC, after):
                failed += 1
                print('FAIL: %r after %d: %s, and croniter says %s' % (expression.text, after, got, wanted))
        if failed > 20:
            break
    print('%d calendars, %d of them never, %d with croniter, %d in %d zones' % (
        count, refused + never, by_croniter, count - refused, len(zones)))
    print('%d passed, %d failed' % (count - failed, failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
