// A client of weekwheel-sessiond, and a store for express-session on it.

import { ConnectionError } from './errors.js';
import { readReply, writeCommand } from './resp.js';
import { Wire } from './wire.js';

const TOLD = '__expired@0__:';
const MOST_TOLD = 1000;

function ms(name, value) {
	if (typeof value !== 'number' || !(value > 0))
		throw new TypeError(`${name}: ${value}: expected seconds, more than 0`);
	return Math.max(1, Math.round(value * 1000));
}

/** Brackets, stars and the like stand for themselves. */
const literal = (text) => text.replace(/[\\*?[\]^-]/g, '\\$&');

export class Sessions {
	#address;
	#how;
	#prefix;
	#wire;
	#closed = false;
	#listeners = new Set();

	/** Connect. `prefix` stands before each id, and `token` is a token or the password. */
	static async connect(address = '127.0.0.1:6380', how = {}) {
		const sessions = new Sessions(address, how);
		await sessions.#connection();
		return sessions;
	}

	constructor(address, { prefix = 'sess:', ...how } = {}) {
		this.#address = address;
		this.#prefix = prefix;
		this.#how = how;
	}

	async #open(more) {
		if (this.#closed)
			throw new ConnectionError(`${this.#address}: this client was closed`, 'CLOSED');
		const { token, ...how } = this.#how;
		const wire = await Wire.connect(this.#address, { ...how, ...more, read: readReply });
		if (token === undefined)
			return wire;
		const answer = await wire.ask(writeCommand(['AUTH', token]));
		if (answer === 'OK')
			return wire;
		await wire.close();
		throw answer;
	}

	async #connection() {
		const former = this.#wire;
		const wire = former && await former.catch(() => undefined);
		if (wire && !wire.closed)
			return wire;
		if (this.#wire === former)
			this.#wire = this.#open();
		return this.#wire;
	}

	/** Any command of the server, in its own words. Values are Buffers. */
	async command(...words) {
		const answer = await (await this.#connection()).ask(writeCommand(words));
		if (answer instanceof Error)
			throw answer;
		return answer;
	}

	#key(id) {
		return this.#prefix + id;
	}

	/** The value as text, or undefined. */
	async get(id) {
		return (await this.command('GET', this.#key(id)))?.toString();
	}

	/** The value as bytes, or undefined. */
	async getBytes(id) {
		return (await this.command('GET', this.#key(id))) ?? undefined;
	}

	/**
	 * Keep a value for `idle` seconds from its last set or touch, and at most for `lifetime` seconds from its first set, for
	 * which the server needs --lifetimes or --lifetime. `keep`: the session ends when it would have ended.
	 */
	async set(id, value, { idle, lifetime, keep } = {}) {
		const words = ['SET', this.#key(id), value];
		if (keep)
			words.push('KEEPTTL');
		else if (idle !== undefined)
			words.push('PX', ms('idle', idle));
		if (lifetime !== undefined)
			words.push('LIFETIME', Math.ceil(ms('lifetime', lifetime) / 1000));
		await this.command(...words);
	}

	/** Let it end `idle` seconds from now, or at the end of its lifetime if that comes first. False: it has ended. */
	async touch(id, idle) {
		return await this.command('PEXPIRE', this.#key(id), ms('idle', idle)) === 1;
	}

	/** Returns whether it was there. */
	async destroy(id) {
		return await this.command('DEL', this.#key(id)) === 1;
	}

	/** Another id for the same session, as at login. False: it has ended. */
	async rename(id, to) {
		try {
			await this.command('RENAME', this.#key(id), this.#key(to));
			return true;
		} catch (error) {
			if (error.code === 'ERR' && /no such key/.test(error.message))
				return false;
			throw error;
		}
	}

	/** When it ends if nobody touches it. Null: never; undefined: it has ended. */
	async endsAt(id) {
		const at = await this.command('PEXPIRETIME', this.#key(id));
		return at === -2 ? undefined : at === -1 ? null : new Date(at);
	}

	/** Ids, some at a time. One that comes or goes meanwhile may be among them or not. */
	async *ids() {
		let cursor = '0';
		do {
			const [next, keys] = await this.command('SCAN', cursor, 'MATCH', literal(this.#prefix) + '*', 'COUNT', 1000);
			for (const key of keys)
				yield key.toString().slice(this.#prefix.length);
			cursor = next.toString();
		} while (cursor !== '0');
	}

	/**
	 * for await (const { id, value } of sessions.expired({ signal })): sessions as they end. What ends once `ready` is kept, a
	 * promise that the result has, is told. Who is not connected at that moment misses it: --expired-to makes a job of each
	 * end instead.
	 */
	expired({ signal } = {}) {
		const told = [];
		const listener = { told, wake: () => {} };
		const ready = this.#listen(listener, signal);
		ready.catch(() => {});
		return Object.assign(this.#ends(listener, ready, signal), { ready });
	}

	async #listen(listener, signal) {
		if (signal?.aborted)
			return;
		const wire = listener.wire = await this.#open({ isPush: (answer) => Array.isArray(answer) && answer[0]?.toString() === 'pmessage',
			onPush: (answer) => {
				// A loop that is slow lets the server wait, and takes no memory without a bound.
				if (listener.told.push(answer) === MOST_TOLD)
					wire.pause(true);
				listener.wake();
			} });
		wire.onEnd = (error) => ((listener.lost = error), listener.wake());
		listener.abort = () => wire.close();
		signal?.addEventListener('abort', listener.abort, { once: true });
		this.#listeners.add(wire);
		const answer = await wire.ask(writeCommand(['PSUBSCRIBE', TOLD + literal(this.#prefix) + '*']));
		if (answer instanceof Error)
			throw answer;
	}

	async *#ends(listener, ready, signal) {
		try {
			await ready;
			while (listener.wire) {
				for (let one; (one = listener.told.shift());)
					yield { id: one[2].toString().slice(TOLD.length + this.#prefix.length), value: one[3].toString(), bytes: one[3] };
				if (listener.lost)
					throw listener.lost;
				listener.wire.pause(false);
				await new Promise((resolve) => (listener.wake = resolve));
			}
		} catch (error) {
			if (!signal?.aborted && !this.#closed)
				throw error;
		} finally {
			signal?.removeEventListener('abort', listener.abort);
			this.#listeners.delete(listener.wire);
			await listener.wire?.close();
		}
	}

	async close() {
		this.#closed = true;
		await Promise.all([...this.#listeners].map((wire) => wire.close()));
		await (await this.#wire?.catch(() => undefined))?.close();
	}
}

/**
 * A class of stores for express-session: const Store = sessionStore(session); new Store({ sessions, ttl, lifetime }).
 * The cookie's maxAge is the idle time, or ttl seconds (a day) for cookies without one.
 */
export function sessionStore(session) {
	return class WeekwheelStore extends session.Store {
		#sessions;
		#ttl;
		#lifetime;

		constructor({ sessions, ttl = 86400, lifetime } = {}) {
			super();
			this.#sessions = sessions;
			this.#ttl = ttl;
			this.#lifetime = lifetime;
		}

		#idle(data) {
			const left = data?.cookie?.expires ? (new Date(data.cookie.expires) - Date.now()) / 1000 : this.#ttl;
			return Math.max(left, 0);
		}

		#answer(work, done = () => {}) {
			work().then((value) => done(null, value), (error) => done(error));
		}

		get(id, done) {
			this.#answer(async () => {
				const text = await this.#sessions.get(id);
				return text === undefined ? null : JSON.parse(text);
			}, done);
		}

		set(id, data, done) {
			this.#answer(async () => {
				const idle = this.#idle(data);
				if (idle > 0)
					await this.#sessions.set(id, JSON.stringify(data), { idle, lifetime: this.#lifetime });
				else
					await this.#sessions.destroy(id);
			}, done);
		}

		touch(id, data, done) {
			this.#answer(async () => {
				const idle = this.#idle(data);
				if (idle > 0)
					await this.#sessions.touch(id, idle);
			}, done);
		}

		destroy(id, done) {
			this.#answer(async () => void await this.#sessions.destroy(id), done);
		}

		all(done) {
			this.#answer(async () => {
				const found = {};
				for await (const id of this.#sessions.ids()) {
					const text = await this.#sessions.get(id);
					if (text !== undefined)
						found[id] = JSON.parse(text);
				}
				return found;
			}, done);
		}

		length(done) {
			this.#answer(async () => {
				let count = 0;
				for await (const id of this.#sessions.ids())
					count += id !== undefined;
				return count;
			}, done);
		}

		clear(done) {
			this.#answer(async () => {
				const ids = [];
				for await (const id of this.#sessions.ids())
					ids.push(id);
				for (const id of ids)
					await this.#sessions.destroy(id);
			}, done);
		}
	};
}
