// What can go wrong, each with the server's own word in `code`.

export class WeekwheelError extends Error {
	constructor(message, code) {
		super(message);
		this.name = new.target.name;
		this.code = code;
	}
}

/** The connection failed, or was lost: whether the command was carried out is not known. */
export class ConnectionError extends WeekwheelError {}
/** There is no such job, or it is not this connection's any more: its time to run may have passed. */
export class NotFoundError extends WeekwheelError {}
/** The job has another version than the one that was named. */
export class StaleError extends WeekwheelError {}
/** The token does not grant this, or none was said. */
export class DeniedError extends WeekwheelError {}
/** The server takes no more now: its memory, its disk or a bound is full. Try again later. */
export class BusyError extends WeekwheelError {}
/** A time expression or a zone is wrong: `what` is "cron", "zone" or "name", `at` the byte. */
export class ScheduleError extends WeekwheelError {}

const told = {
	NOT_FOUND: [NotFoundError, 'there is no such job, or another connection has it'],
	RESERVED: [NotFoundError, 'the job is being run'],
	STALE: [StaleError, 'the job has another version by now: look at it, and try again with that'],
	DENIED: [DeniedError, 'the token does not grant this: give one that does'],
	OUT_OF_MEMORY: [BusyError, 'the server is full: it takes jobs again when some are done'],
	INTERNAL_ERROR: [BusyError, "the server's disk or Redis takes nothing now: its log says why"],
	DRAINING: [BusyError, 'the server takes no new jobs: it is about to end'],
	JOB_TOO_BIG: [WeekwheelError, 'the body is longer than the server takes (--max-job-size)'],
	UNKNOWN_COMMAND: [WeekwheelError, 'the server does not know this: is it weekwheeld, and not beanstalkd?'],
	BAD_FORMAT: [WeekwheelError, 'the server does not understand this: a number may be out of range'],
	DEADLINE_SOON: [WeekwheelError, 'a reserved job has to be finished or touched within a second'],
	TIMED_OUT: [WeekwheelError, 'no job came within the time'],
	NOT_IGNORED: [WeekwheelError, 'a connection watches one tube at least'],
};

/** The error for an answer that was not expected. */
export function refusal(line) {
	const words = line.split(' ');
	const [Kind, why] = told[words[0]] ?? [WeekwheelError, 'this answer was not expected'];
	if (words[0] === 'BAD_SCHEDULE') {
		const error = new ScheduleError(`${words[1]} is wrong at byte ${words[2]}: ${decodeURIComponent(words.slice(3).join(' '))}`, words[0]);
		return Object.assign(error, { what: words[1], at: Number(words[2]) });
	}
	return new Kind(`${line}: ${why}`, words[0]);
}
