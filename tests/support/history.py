"""What clients of a job store did and heard, and whether what the store then has can follow from it.

An operation is noted before it is sent and again when it is answered. An answered operation has happened; one without
an answer may have happened. Operations on one job that overlap in time may have happened in either order.
"""


class Operation:
    """One change of a job: to `state` ("waiting", "buried" or "gone"), due between the two times if it is waiting."""

    def __init__(self, state, sent, due=(0, 0)):
        self.state, self.sent, self.due = state, sent, due
        self.answered = None

    def __repr__(self):
        answered = "unanswered" if self.answered is None else f"{self.answered:.6f}"
        return f"{self.state} {self.sent:.6f} {answered}"


class Job:
    """A job, and what was done to it."""

    def __init__(self, body):
        self.body = body
        self.id = None
        self.named = None   # when a client heard its id
        self.operations = []

    def __str__(self):
        return f"job {self.id} ({self.body[:20]!r}): {self.operations}"

    def may_be(self, time, stable):
        """The operations whose results the store may have at that time, if it has kept all that was answered by `stable`.

        None among them: the job may never have been put.
        """
        sent = [one for one in self.operations if one.sent <= time]
        kept = [one for one in sent if one.answered is not None and one.answered <= stable]
        # What was kept is overwritten by what was sent after its answer and kept, too.
        last = max((one.sent for one in kept), default=None)
        results = [one for one in sent if one not in kept or one.answered >= last]
        return results if kept else [None] + results


class History:
    """All that clients know, with times of one clock in seconds."""

    def __init__(self):
        self.jobs = {}      # by body
        self.by_id = {}

    def add(self, body):
        """A job of that body, which nobody else has, will be put."""
        job = self.jobs[body] = Job(body)
        return job

    @staticmethod
    def change(job, state, sent, due=(0, 0)):
        operation = Operation(state, sent, due)
        job.operations.append(operation)
        return operation

    def name(self, job, number, time):
        """A client heard at that time that the job has this id. Returns what is wrong with that, or None."""
        if job.id is None and number not in self.by_id:
            job.id, job.named = number, time
            self.by_id[number] = job
        return None if job.id == number else f"{job} is called {number}, as is {self.by_id.get(number)}"

    def highest_id(self, time):
        return max((job.id for job in self.jobs.values() if job.id and job.named <= time), default=0)

    def judge(self, stored, time, stable, now):
        """Yield what is wrong with the jobs that a store has `now`, if it lost its power at `time`.

        `stable` says up to when it has promised to keep everything. A stored job has an id, a body, a state and, if it is
        delayed, two times between which it is due.
        """
        there = {}
        for one in stored:
            job = self.jobs.get(one["body"])
            if job is None or all(operation.sent > time for operation in job.operations):
                yield f"there is a job that nobody had put: {one}"
            elif one["body"] in there:
                yield f"{job} is there twice"
            elif job.id and job.named <= time and one["id"] != job.id:
                yield f"{job} is there as {one['id']}"
            there[one["body"]] = one
        for job in self.jobs.values():
            may_be = job.may_be(time, stable)
            wrong = self.judge_job(there.get(job.body), may_be, now)
            if wrong:
                yield f"{job} {wrong}, and may be {may_be}"

    @staticmethod
    def judge_job(one, may_be, now):
        if one is None:
            return None if None in may_be or any(result.state == "gone" for result in may_be) else "is lost"
        states = [result for result in may_be if result is not None]
        if one["state"] == "buried":
            return None if any(result.state == "buried" for result in states) else "is buried"
        waits = [result for result in states if result.state == "waiting"]
        if not waits:
            return "is " + one["state"]
        if one["state"] == "delayed":
            fits = any(result.due[0] <= one["due"][1] and one["due"][0] <= result.due[1] for result in waits)
            return None if fits else f"is due between {one['due']}"
        return None if min(result.due[0] for result in waits) <= now else "is ready early"
