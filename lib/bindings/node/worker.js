// Reserving and running jobs. Each worker has a connection: its jobs return to the tube when that is lost.

import { AsyncLocalStorage } from 'node:async_hooks';
import { BusyError, ConnectionError, NotFoundError, WeekwheelError, refusal } from './errors.js';
import { encode, needOwnVerbs, readLines, readStats, seconds, toBytes, whole } from './protocol.js';

/** So long a server is asked to wait at a time, in seconds; a signal ends the connection at once. */
const PATIENCE = 3600;
const REPORT_MOST = 4096;
const TIMER_MOST = 2 ** 31 - 1;
const reason = (error) => encode(String(error?.message ?? error ?? '').slice(0, 80).replaceAll('\0', ' '));

/** What each job's function has begun to end it with, though it may not wait for that. */
const endings = new WeakMap();

async function hasEnded(job) {
	await endings.get(job)?.catch(() => {});
	return job.ended;
}

/** A job that this process runs. Its connection is nobody else's until it has ended. */
export class Job {
	#wire;
	#priority;

	constructor(wire, tube, id, body, headers) {
		this.#wire = wire;
		this.tube = tube;
		this.id = id;
		this.body = body;
		this.headers = headers;
		this.ended = false;
	}

	get text() {
		return this.body.toString();
	}

	json() {
		return JSON.parse(this.text);
	}

	#end(expected, command) {
		const ending = this.#tell(expected, command);
		endings.set(this, ending);
		return ending;
	}

	async #tell(expected, command) {
		const { words, line } = await this.#wire.ask(await command + '\r\n');
		if (!expected.includes(words[0]))
			throw refusal(line);
		this.ended = true;
		return words[0];
	}

	/** It is done. */
	async finish() {
		await this.#end(['DELETED'], `delete ${this.id}`);
	}

	async stat() {
		const { words, body, line } = await this.#wire.ask(`stats-job ${this.id}\r\n`);
		if (words[0] !== 'OK')
			throw refusal(line);
		return readStats(body);
	}

	/** What it was put with, or 0: how often it is tried, and its pause after the first failure, in seconds. */
	async retries() {
		const { words, body, line } = await this.#wire.ask(`list-delayed id=${this.id}\r\n`);
		if (words[0] !== 'OK')
			throw refusal(line);
		const { attempts = 0, backoff = 0 } = readLines(body).lines[0] ?? {};
		return { attempts, backoff };
	}

	async #priorityOf(given) {
		if (given !== undefined)
			return whole('priority', given);
		return (this.#priority ??= String((await this.stat()).pri));
	}

	/** It failed: again after its own backoff, or after `delay`. Returns true if that was its last attempt, and it is buried. */
	async release({ delay, error, priority } = {}) {
		const when = delay === undefined ? '-' : seconds('delay', delay);
		const command = async () => `release-job ${this.id} ${await this.#priorityOf(priority)} ${when} ${reason(error) || '-'}`;
		return await this.#end(['RELEASED', 'BURIED'], command()) === 'BURIED';
	}

	/** Put it aside until somebody kicks it. */
	async bury({ error, priority } = {}) {
		const command = async () => `bury-job ${this.id} ${await this.#priorityOf(priority)} ${reason(error) || '-'}`;
		await this.#end(['BURIED'], command());
	}

	/** Its time to run begins anew. */
	async touch() {
		const { words, line } = await this.#wire.ask(`touch ${this.id}\r\n`);
		if (words[0] !== 'TOUCHED')
			throw refusal(line);
	}

	/** Say something of this run, for the history of a job that was put with `keep`. */
	async report(said) {
		const bytes = toBytes(said).subarray(-REPORT_MOST);
		await needOwnVerbs(this.#wire);
		const { words, line } = await this.#wire.ask(`report ${this.id} ${bytes.length}\r\n`, bytes, '\r\n');
		if (words[0] !== 'REPORTED')
			throw refusal(line);
	}
}

/** beanstalkd and older servers do not know of headers, and have none. */
async function watch(wire, tubes) {
	const [, ...answers] = await Promise.all(['headers', ...tubes.map((tube) => `watch ${tube}`)].map((line) => wire.ask(line + '\r\n')));
	if (!tubes.includes('default'))
		answers.push(await wire.ask('ignore default\r\n'));
	for (const { words, line } of answers)
		if (words[0] !== 'WATCHING')
			throw refusal(line);
}

/** The next job, or undefined after the time. */
async function next(wire, tubes, timeout) {
	const { words, line, body, headers } = await wire.await(`reserve-with-timeout ${whole('timeout', Math.ceil(timeout))}\r\n`);
	if (words[0] === 'TIMED_OUT')
		return undefined;
	if (words[0] !== 'RESERVED')
		throw refusal(line);
	const id = Number(words[1]);
	const job = new Job(wire, tubes[0], id, body, headers);
	if (tubes.length > 1)
		job.tube = (await job.stat()).tube;
	return job;
}

/**
 * for await (const job of jobs.reserve('mail', { signal, timeout })): it ends when the signal says so, or when no job
 * came for `timeout` seconds. A job that the loop has not ended is finished when the next one is asked for; if the loop throws,
 * or ends early, it is released.
 */
export class Reservations {
	constructor(jobs, tubes, { signal, timeout } = {}, loops = new Set()) {
		Object.assign(this, { jobs, tubes, signal, timeout, loops });
	}

	async *[Symbol.asyncIterator]() {
		if (this.signal?.aborted)
			return;
		let job;
		let wire;
		let waits = true;
		let stopped = false;
		// A stop while the loop's body runs lets it finish its job.
		const stop = () => {
			stopped = true;
			if (waits)
				wire?.close();
		};
		this.signal?.addEventListener('abort', stop, { once: true });
		this.loops.add(stop);
		try {
			wire = await this.jobs.open();
			if (!stopped)
				await watch(wire, this.tubes);
			while (!stopped) {
				job = await next(wire, this.tubes, this.timeout ?? PATIENCE);
				if (!job && this.timeout !== undefined)
					return;
				if (!job)
					continue;
				waits = false;
				yield job;
				if (!await hasEnded(job))
					await job.finish();
				waits = true;
				job = undefined;
			}
		} catch (error) {
			if (!stopped || !waits)
				throw error;
		} finally {
			this.signal?.removeEventListener('abort', stop);
			this.loops.delete(stop);
			// Closing would give it back, too, but as a run that failed.
			if (job && !await hasEnded(job) && !wire.closed)
				await job.release({ delay: 0 }).catch(() => {});
			await wire?.close();
		}
	}
}

const sleep = (ms, signal) => new Promise((resolve) => {
	const timer = setTimeout(resolve, ms);
	signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
});

/** A second, doubled with each delivery up to an hour; a longer pause is shortened at random by up to a quarter. */
function pauseAfter(deliveries) {
	const pause = Math.min(2 ** Math.min(Math.max(deliveries, 1) - 1, 12), 3600);
	return pause < 4 ? pause : pause * (1 - Math.random() / 4);
}

/** What is said where nobody has asked for errors. */
const complain = (error, job) => console.error(`weekwheel: ${job ? `job ${job.id} of ${job.tube}` : 'a worker'}:`, error);

/** The run of a job that this code is part of. To wait there for the end of its workers would be to wait for itself. */
const current = new AsyncLocalStorage();

/**
 * Runs jobs: `act(job)` ends them by returning (finished) or throwing (released, with the error as the reason). While it runs,
 * the job is touched. A lost connection is opened again, later and later.
 */
export class Worker {
	#jobs;
	#tubes;
	#act;
	#how;
	#stopping = new AbortController();
	#idle = new Set();
	#silentUntil = 0;

	constructor(jobs, tubes, act, { concurrency = 1, touch = true, attempts = 10, onError = complain } = {}) {
		if (typeof act !== 'function')
			throw new TypeError(`${act} is no function: a worker calls one for each job`);
		if (!(concurrency >= 1))
			throw new TypeError(`concurrency: ${concurrency}: expected a whole number from 1 on`);
		whole('concurrency', concurrency);
		this.#jobs = jobs;
		this.#tubes = tubes;
		this.#act = act;
		this.#how = { touch, attempts, onError };
		/** Resolves when it has stopped; rejects if the server refuses it. */
		this.done = Promise.all(Array.from({ length: concurrency }, () => this.#lane())).then(() => {});
		this.done.catch((error) => this.#tell(error));
	}

	/** Take no more jobs, and wait for those that run, unless this is called in a job of the same client. */
	async stop() {
		this.#stopping.abort();
		for (const wire of this.#idle)
			wire.close();
		if (!this.#isCaller())
			await this.done.catch(() => {});
	}

	/** Whether this code is part of a run of the same client. A run may have begun the worker that runs it. */
	#isCaller() {
		for (let run = current.getStore(); run; run = run.outer)
			if (run.jobs === this.#jobs && !run.ended)
				return true;
		return false;
	}

	/** What onError throws is no failure of the worker: it is an exception that nobody catches. */
	#tell(error, job) {
		try {
			this.#how.onError(error, job);
		} catch (thrown) {
			process.nextTick(() => {
				throw thrown;
			});
		}
	}

	get #isStopping() {
		return this.#stopping.signal.aborted;
	}

	async #lane() {
		for (let pause = 100; !this.#isStopping; pause = Math.min(2 * pause, 10000)) {
			let wire;
			try {
				wire = await this.#jobs.open();
				await watch(wire, this.#tubes);
				pause = 100;
				await this.#serve(wire);
			} catch (error) {
				// A disk that is full, or Redis that is away, may be back by and by; a client that was closed is not.
				const passes = error instanceof ConnectionError ? error.code !== 'CLOSED' : error instanceof BusyError;
				const isMeant = this.#isStopping && error instanceof ConnectionError;
				if (!passes && !isMeant)
					throw error;
				// All lanes have this failure: one of them tells.
				if (!isMeant && performance.now() >= this.#silentUntil) {
					this.#silentUntil = performance.now() + pause;
					this.#tell(error);
				}
			} finally {
				await wire?.close();
			}
			if (!this.#isStopping)
				await sleep(pause, this.#stopping.signal);
		}
	}

	async #serve(wire) {
		while (!this.#isStopping) {
			this.#idle.add(wire);
			const job = await next(wire, this.#tubes, PATIENCE).finally(() => this.#idle.delete(wire));
			if (job)
				await this.#run(job, wire);
		}
	}

	async #run(job, wire) {
		const stat = await job.stat().catch((error) => this.#pass(error));
		if (!stat)
			return;
		const touching = this.#how.touch && setInterval(() => job.touch().catch(() => {}), Math.min(Math.max(stat.ttr * 400, 200), TIMER_MOST));
		const run = { ended: false, jobs: this.#jobs, outer: current.getStore() };
		try {
			await current.run(run, () => this.#act(job));
			run.ended = true;
			if (!await hasEnded(job))
				await job.finish();
		} catch (error) {
			// Another connection that the function uses may be lost, too: that is a failure as others are.
			if (error instanceof ConnectionError && wire.closed)
				throw error;
			this.#tell(error, job);
			if (!await hasEnded(job))
				await this.#release(job, error, stat).catch((other) => this.#pass(other));
		} finally {
			run.ended = true;
			clearInterval(touching);
		}
	}

	/** A job without a backoff or a limit of its own has those of "weekwheel work", and does not come at once for ever. */
	async #release(job, error, { pri: priority, reserves }) {
		const { attempts, backoff } = await job.retries();
		if (this.#how.attempts && !attempts && reserves >= this.#how.attempts)
			await job.bury({ error, priority });
		else
			await job.release({ error, priority, delay: backoff ? undefined : pauseAfter(reserves) });
	}

	/** Its time to run has passed: somebody else has it. */
	#pass(error) {
		if (!(error instanceof NotFoundError))
			throw error instanceof WeekwheelError ? error : new WeekwheelError(String(error));
	}
}
