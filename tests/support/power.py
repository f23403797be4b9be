"""Rebuilds what a power failure may have left of a folder, from a recording of tests/support/system/record.c.

A disk keeps what was synced. Of what was written since, it keeps any sectors of 512 bytes, each as it was after any of
the writes to it; any change of a file's size; and any change of a name that was made before the last one it keeps.

    recording:  write a, write b, sync, write c, write d, write e, power failure
    the disk:   a and b, and of c, d and e any sectors
"""
import os
import struct
import tempfile

from harness import numbers_of, system_with

EVENTS = numbers_of("support/system/record.c", "EVENT_")
BEGIN = 0
OPEN, WRITE, WRITE_SYNCED, RESIZE, SYNC_BEGIN, SYNC_END, SYNC_FAILED, UNLINK, RENAME, OPEN_FOLDER = EVENTS.values()
EVENT = struct.Struct("=QIIQQ")
SECTOR = 512


def recorded(folder, record):
    """The environment in which a program's writes below the folder are recorded."""
    return {"LD_PRELOAD": system_with("record.c"), "WW_RECORD": os.path.abspath(record),
            "WW_RECORD_UNDER": os.path.abspath(folder)}


def read(*records):
    """The events of programs that ran one after the other: (time, kind, file, offset, data)."""
    events = []
    for program, record in enumerate(records):
        with open(record, "rb") as file:
            data = memoryview(file.read())
        events.append((EVENT.unpack_from(data)[0], BEGIN, 0, 0, b""))
        at = 0
        # The last one may be cut off.
        while at + EVENT.size <= len(data):
            time, kind, number, offset, size = EVENT.unpack_from(data, at)
            at += EVENT.size
            events.append((time, kind, (program, number), offset, data[at:at + size]))
            at += size
    return events


class File:
    """A file as its writer sees it, as the disk has it, and what of the difference the disk may have."""

    def __init__(self, size=0):
        self.live, self.stable = bytearray(size), bytearray(size)
        self.pending = []   # (event, offset or None, the sectors' bytes or the new size)
        self.syncing = []   # the events at which syncs began

    def write(self, event, offset, data, synced):
        end = offset + len(data)
        self.live += bytes(max(0, end - len(self.live)))
        self.live[offset:end] = data
        first = offset // SECTOR * SECTOR
        self.pending.append((event, first, bytes(self.live[first:-(-end // SECTOR) * SECTOR])))
        if synced:
            self.apply(self.stable, [self.pending.pop()])

    def resize(self, event, size):
        self.fit(self.live, size)
        self.pending.append((event, None, size))

    def synced(self):
        began = self.syncing.pop(0)
        self.apply(self.stable, [change for change in self.pending if change[0] < began])
        self.pending = [change for change in self.pending if change[0] >= began]

    @staticmethod
    def fit(content, size):
        del content[size:]
        content += bytes(size - len(content))

    def apply(self, content, changes):
        for _, offset, what in changes:
            if offset is None:
                self.fit(content, what)
            else:
                content += bytes(max(0, offset - len(content)))
                content[offset:offset + len(what)] = what

    def left(self, chance, choose):
        """What the disk has of it, if `choose` says which of the pending changes it kept."""
        content = bytearray(self.stable)
        self.apply(content, choose(chance, self.pending))
        return content


# ---- Which changes the disk kept --------------------------------------------------------------------------------

def sectors(change):
    event, offset, what = change
    if offset is None:
        return [change]
    return [(event, offset + i, what[i:i + SECTOR]) for i in range(0, len(what), SECTOR)]


def none_of(_, __):
    return []


def all_of(_, pending):
    return pending


def beginning_of(chance, pending):
    """In order, the last one torn."""
    count = chance.randrange(len(pending) + 1)
    rest = sectors(pending[count]) if count < len(pending) else []
    return pending[:count] + rest[:chance.randrange(len(rest) + 1)]


def any_of(chance, pending):
    share = chance.random()
    return [change for change in pending if chance.random() < share]


def any_sectors_of(chance, pending):
    share = chance.random()
    return [piece for change in pending for piece in sectors(change) if chance.random() < share]


def all_but_one_of(chance, pending):
    gone = chance.randrange(len(pending)) if pending else 0
    return pending[:gone] + pending[gone + 1:]


def end_of(chance, pending):
    return pending[chance.randrange(len(pending) + 1):]


class Least:
    """For `left` of a Disk: what was not synced is gone."""

    @staticmethod
    def choice(_):
        return none_of

    @staticmethod
    def randrange(_):
        return 0


CHOICES = [none_of, all_of, beginning_of, any_of, any_sectors_of, all_but_one_of, end_of]


# ---- Folders ----------------------------------------------------------------------------------------------------

class Disk:
    """A folder that is replayed event by event, with what a power failure after each may leave."""

    def __init__(self, events, forgets=False):
        """forgets: after a failed sync the system takes for clean what a program had written, and it never reaches the
        disk, unless the next program writes it again."""
        self.events, self.at, self.forgets = events, 0, forgets
        self.files = {}     # by the number of each program that has opened them
        self.names, self.stable_names = {}, {}
        self.seen = set()   # all names that files had
        self.renamed = []   # (event, a function that changes names)
        self.folders = {}   # by number: the events at which syncs of them began

    def replay(self, until):
        while self.at < until:
            self.step(self.at, *self.events[self.at])
            self.at += 1

    def step(self, event, _, kind, number, offset, data):
        file = self.files.get(number)
        if kind == BEGIN:
            # The syncs of the program before have not ended.
            for one in self.files.values():
                one.syncing.clear()
                if self.forgets:
                    one.pending.clear()
            self.folders.clear()
        elif kind == OPEN:
            self.opened(event, number, offset, bytes(data).decode())
        elif kind == OPEN_FOLDER:
            self.folders.setdefault(number, [])
        elif number in self.folders:
            self.folder(event, kind, self.folders[number])
        elif kind in (WRITE, WRITE_SYNCED):
            file.write(event, offset, data, kind == WRITE_SYNCED)
        elif kind == RESIZE:
            file.resize(event, offset)
        elif kind == SYNC_BEGIN:
            file.syncing.append(event)
        elif kind == SYNC_END:
            file.synced()
        elif kind == SYNC_FAILED:
            file.syncing.pop(0)
        elif kind == UNLINK:
            self.change(event, lambda names, name=bytes(data).decode(): names.pop(name, None))
        elif kind == RENAME:
            old, new = bytes(data).decode().split("\0")
            self.seen.add(new)
            self.change(event, lambda names: old in names and names.update({new: names.pop(old)}))

    def opened(self, event, number, size, name):
        there = self.names.get(name)
        if number not in self.files:
            # A file of the program before, or a new one.
            self.files[number] = self.files[there] if there and there[0] != number[0] else File(size)
        if there is None or self.files[there] is not self.files[number]:
            self.seen.add(name)
            self.change(event, lambda names: names.update({name: number}))

    def folder(self, event, kind, syncing):
        if kind == SYNC_BEGIN:
            syncing.append(event)
        elif kind == SYNC_FAILED:
            syncing.pop(0)
        elif kind == SYNC_END:
            began = syncing.pop(0)
            while self.renamed and self.renamed[0][0] < began:
                self.renamed.pop(0)[1](self.stable_names)

    def change(self, event, change):
        change(self.names)
        self.renamed.append((event, change))

    def left(self, chance):
        """Write what may be left into a new folder, and return its path and what was chosen."""
        folder = tempfile.mkdtemp(dir=".")
        names, kept = dict(self.stable_names), chance.randrange(len(self.renamed) + 1)
        for _, change in self.renamed[:kept]:
            change(names)
        said = [f"{kept} of {len(self.renamed)} changes of names"]
        for name, number in sorted(names.items()):
            file, choose = self.files[number], chance.choice(CHOICES)
            with open(os.path.join(folder, name), "wb") as out:
                out.write(file.left(chance, choose))
            said.append(f"{name}: {choose.__name__} {len(file.pending)} changes")
        return folder, "; ".join(said)
