// A client of weekwheeld: puts, looks at, moves and ends jobs, and runs workers.

import { ConnectionError, refusal } from './errors.js';
import { decode, encode, encodeKey, moment, needOwnVerbs, options, readAnswer, readLines, readList, readStats, seconds, toBytes, tubeName, whole, writeHeaders, writeLine } from './protocol.js';
import { Wire } from './wire.js';
import { Reservations, Worker } from './worker.js';

const word = (name, value) => {
	if (!/^[a-z-]+$/.test(value))
		throw new TypeError(`${name}: ${value}: expected a word`);
	return value;
};
const text = (name, value) => encode(String(value));
const yes = () => 'yes';

const PUT = { spread: seconds, every: seconds, missed: word, skip: seconds, attempts: whole, backoff: seconds, backoffMax: seconds, version: whole,
	headers: whole, then: whole, group: text, mode: word, debounce: seconds, unique: seconds, keep: seconds, expire: seconds,
	expired: word, code: whole };
const SCHEDULE = { cron: text, zone: text, missed: word, skip: seconds, overlap: word, start: moment, end: moment, paused: yes,
	mode: word, attempts: whole, backoff: seconds, backoffMax: seconds, group: text, keep: seconds, expire: seconds,
	expired: word, code: whole };
const LIST = { tube: (name, value) => tubeName(value), prefix: text, state: (name, value) => [value].flat().map((one) => word(name, one)).join(','),
	from: moment, to: moment };
const HISTORY = { tube: LIST.tube, prefix: text, id: whole };
const LIMIT = { running: whole, starts: whole, per: seconds, burst: whole, weight: whole, group: text, each: yes };

/** Give the members of an answer in JSON the types that people expect. */
function plain(item) {
	for (const name of ['key', 'group', 'name'])
		if (typeof item[name] === 'string')
			item[name] = decode(item[name]);
	for (const name of ['body', 'report'])
		if (typeof item[name] === 'string')
			item[name] = Buffer.from(item[name], 'base64');
	return item;
}

export class Jobs {
	#address;
	#how;
	#wire; // a promise
	#children = new Set(); // workers
	#loops = new Set(); // what stops each loop that reserves
	#closed = false;

	/** Connect, and say the token. */
	static async connect(address = '127.0.0.1:11300', how = {}) {
		const jobs = new Jobs(address, how);
		await jobs.#connection();
		return jobs;
	}

	constructor(address, how) {
		if (how.code !== undefined)
			whole('code', how.code);
		this.#address = address;
		this.#how = how;
	}

	/** A connection of one's own, logged in. */
	async open() {
		if (this.#closed)
			throw new ConnectionError(`${this.#address}: this client was closed`, 'CLOSED');
		const { token, code, ...how } = this.#how;
		const wire = await Wire.connect(this.#address, { ...how, read: readAnswer });
		const said = [[token, `auth ${token}`, 'OK'], [code, `code ${code}`, 'CODE']].filter(([value]) => value !== undefined);
		for (const [, command, expected] of said) {
			const { line } = await wire.ask(command + '\r\n');
			if (line === expected)
				continue;
			await wire.close();
			throw refusal(line);
		}
		return wire;
	}

	/** One that was lost is opened anew by the next command. */
	async #connection() {
		const former = this.#wire;
		const wire = former && await former.catch(() => undefined);
		if (wire && !wire.closed)
			return wire;
		if (this.#wire === former)
			this.#wire = this.open();
		return this.#wire;
	}

	/** Send when the connection uses the tube: if the server refused that, the command would be carried out in another one. */
	async #inTube(wire, tube, send) {
		const before = wire.turn;
		let done;
		wire.turn = new Promise((resolve) => (done = resolve));
		try {
			await before;
			if (tube !== (wire.used ?? 'default')) {
				const { words, line } = await wire.ask(`use ${tube}\r\n`);
				if (words[0] !== 'USING')
					throw refusal(line);
				wire.used = tube;
			}
			return { answered: send() };
		} finally {
			done();
		}
	}

	/** Ask, in a tube if that matters, and expect one of these words. A body of an own verb waits until the server knows that. */
	async #ask(expected, command, { tube, body, isOwn } = {}) {
		const parts = body === undefined ? [writeLine(command)] : [writeLine(command), body, '\r\n'];
		if (tube !== undefined)
			tubeName(tube);
		const wire = await this.#connection();
		if (isOwn)
			await needOwnVerbs(wire);
		const { answered } = tube === undefined ? { answered: wire.ask(...parts) } : await this.#inTube(wire, tube, () => wire.ask(...parts));
		const answer = await answered;
		if (!expected.includes(answer.words[0]))
			throw refusal(answer.line);
		return answer;
	}

	/** Put a job. `at` is a Date, or seconds since 1970; other times are seconds from now. */
	async put(tube, body, { priority = 1024, delay = 0, at, run = 60, key, headers = {}, then, ...more } = {}) {
		const lines = writeHeaders(headers);
		const follows = Buffer.from(then === undefined ? '' : JSON.stringify(then));
		const bytes = lines.length || follows.length ? Buffer.concat([lines, follows, toBytes(body)]) : toBytes(body);
		if (key === undefined && [more.mode, more.debounce, more.unique].some((one) => one !== undefined))
			throw new TypeError('mode, debounce and unique are for a job with a key: name it with "key"');
		// Without anything that beanstalkd has not, it is said in beanstalkd's words.
		if ([at, key, ...Object.values(more)].every((one) => one === undefined) && !lines.length && !follows.length && Number.isInteger(delay) && Number.isInteger(run)) {
			const { words } = await this.#ask(['INSERTED', 'BURIED'], `put ${whole('priority', priority)} ${whole('delay', delay)} `
				+ `${whole('run', run)} ${bytes.length}`, { tube, body: bytes });
			return { result: words[0].toLowerCase(), id: Number(words[1]) };
		}
		const verb = at === undefined ? `put-key ${whole('priority', priority)} ${seconds('delay', delay)}`
			: `put-at ${whole('priority', priority)} ${moment('at', at)}`;
		const name = key === undefined ? '-' : encodeKey(key);
		const { words } = await this.#ask(['INSERTED', 'REPLACED', 'KEPT', 'ENDED', 'BURIED'],
			`${verb} ${whole('run', run)} ${bytes.length} ${name}${options(PUT, { ...more, headers: lines.length || undefined, then: follows.length || undefined })}`, { tube, body: bytes, isOwn: true });
		const put = { result: words[0].toLowerCase(), id: Number(words[1]) };
		return words[2] === undefined ? put : { ...put, version: Number(words[2]) };
	}

	/** Give a job that waits another delay, or another due time. */
	async move(tube, job, { delay, at, version } = {}) {
		const when = at === undefined ? seconds('delay', delay) : '-';
		const more = options({ version: whole, at: moment }, { version, at });
		const { words } = await this.#ask(['MOVED'], this.#of('move', 'move-key', job, when) + more, { tube });
		return Number(words[1]);
	}

	/** Delete a job, whatever its state. False: there is none. */
	async cancel(tube, job, { version } = {}) {
		const named = typeof job === 'string';
		const more = options({ version: whole }, { version });
		const { words } = await this.#ask(['DELETED', 'RUNNING', 'NOT_FOUND'], named ? `delete-key ${encodeKey(job)}${more}` : `delete ${whole('id', job)}`, { tube });
		return words[0] !== 'NOT_FOUND';
	}

	#of(byId, byKey, job, ...more) {
		return [...(typeof job === 'string' ? [byKey, encodeKey(job)] : [byId, whole('id', job)]), ...more].join(' ');
	}

	/** The job's id and body, or undefined. */
	async peek(tube, job) {
		const { words, body } = await this.#ask(['FOUND', 'NOT_FOUND'], this.#of('peek', 'peek-key', job), { tube });
		return body && { id: Number(words[1]), body };
	}

	/** What the server knows of a job, or undefined. */
	async stat(tube, job) {
		const { body } = await this.#ask(['OK', 'NOT_FOUND'], this.#of('stats-job', 'stats-key', job), { tube });
		return body && readStats(body);
	}

	/** Numbers of the server, or of a tube. */
	async stats(tube) {
		return readStats((await this.#ask(['OK'], tube === undefined ? 'stats' : `stats-tube ${tubeName(tube)}`)).body);
	}

	async tubes() {
		return readList((await this.#ask(['OK'], 'list-tubes')).body);
	}

	async *#pages(verb, given, table, limit) {
		const { body, ...conditions } = given;
		const wanted = options(table, conditions) + (body ? ' body=yes' : '');
		for (let after = ''; after !== undefined;) {
			const page = readLines((await this.#ask(['OK'], `${verb}${wanted} limit=${limit}${after}`)).body);
			yield* page.lines.map(plain);
			after = page.next === undefined ? undefined : ` after=${page.next}`;
		}
	}

	/** Jobs, page by page; with `body: true` their bodies, too. */
	list(conditions = {}) {
		return this.#pages('list-delayed', conditions, LIST, 1000);
	}

	/** How the runs of jobs ended that were put with `keep`, the last one first. */
	history(conditions = {}) {
		return this.#pages('history', conditions, HISTORY, 1000);
	}

	/** How many jobs come due in each of the next `count` spans of so many seconds. */
	async forecast(span, count, { tube } = {}) {
		const { body } = await this.#ask(['OK'], `forecast ${seconds('span', span)} ${whole('count', count)}${options({ tube: LIST.tube }, { tube })}`);
		return JSON.parse(body.toString()).counts;
	}

	async pause(tube, time) {
		await this.#ask(['PAUSED'], `pause-tube ${tubeName(tube)} ${whole('time', time)}`);
	}

	/** Make up to so many buried jobs of the tube ready, or delayed ones if none is buried. */
	async kick(tube, count = 1) {
		return Number((await this.#ask(['KICKED'], `kick ${whole('count', count)}`, { tube })).words[1]);
	}

	async kickJob(id) {
		await this.#ask(['KICKED'], `kick-job ${whole('id', id)}`);
	}

	/** Let at most so many jobs of the tube run at once, or start in a time. Without `running` and `starts`: any number. */
	async limit(tube, limits = {}) {
		await this.#ask(['LIMITED'], `limit-tube ${tubeName(tube)}${options(LIMIT, limits)}`);
	}

	async limits(tube) {
		return readLines((await this.#ask(['OK'], `list-limits${options({ tube: LIST.tube }, { tube })}`)).body).lines.map(plain);
	}

	/** Put a job at each time of an expression of cron. Returns the next one, or undefined. */
	async schedule(tube, name, body, { cron, priority = 1024, spread = 0, run = 60, ...more } = {}) {
		const bytes = toBytes(body);
		const { words } = await this.#ask(['SCHEDULED', 'KEPT'], `put-schedule ${whole('priority', priority)} ${seconds('spread', spread)} `
			+ `${whole('run', run)} ${bytes.length} ${encodeKey(name)}${options(SCHEDULE, { cron, ...more })}`, { tube, body: bytes, isOwn: true });
		return Number(words[1]) ? new Date(Number(words[1]) * 1000) : undefined;
	}

	schedules(conditions = {}) {
		return this.#pages('list-schedules', conditions, { tube: LIST.tube, name: (name, value) => encodeKey(value) }, 100);
	}

	async deleteSchedule(tube, name) {
		await this.#ask(['DELETED'], `delete-schedule ${encodeKey(name)}`, { tube });
	}

	async pauseSchedule(tube, name) {
		await this.#ask(['PAUSED'], `pause-schedule ${encodeKey(name)}`, { tube });
	}

	async resumeSchedule(tube, name) {
		await this.#ask(['RESUMED'], `resume-schedule ${encodeKey(name)}`, { tube });
	}

	/** Put a job of the schedule now. Returns its id. */
	async runSchedule(tube, name) {
		return Number((await this.#ask(['INSERTED'], `run-schedule ${encodeKey(name)}`, { tube })).words[1]);
	}

	/** Move a virtual clock (weekwheeld --clock virtual). Returns its time. */
	async advance(time) {
		return new Date(Number((await this.#ask(['ADVANCED'], `advance ${seconds('time', time)}`)).words[1]) * 1000);
	}

	/** Jobs, one after the other, as they become ready; each is finished if the loop's body ends without an error. */
	reserve(tubes, how = {}) {
		return new Reservations(this, [tubes].flat().map(tubeName), how, this.#loops);
	}

	/** Run `act` for each job, several at a time. */
	work(tubes, act, how = {}) {
		const worker = new Worker(this, [tubes].flat().map(tubeName), act, how);
		this.#children.add(worker);
		worker.done.finally(() => this.#children.delete(worker)).catch(() => {});
		return worker;
	}

	/** Workers end their jobs first, unless this is called in a job of this client. A loop that reserves ends: at once, or when its body has done with the job at hand. */
	async close() {
		for (const stop of this.#loops)
			stop();
		await Promise.all([...this.#children].map((worker) => worker.stop()));
		this.#closed = true;
		await (await this.#wire?.catch(() => undefined))?.close();
	}
}

