// A connection to a server: bytes out, answers in, in the order of the commands.

import net from 'node:net';
import tls from 'node:tls';
import { ConnectionError } from './errors.js';

/** HOST:PORT, [IPv6]:PORT, tls: and one of these, or unix:PATH. */
export function readAddress(text) {
	if (text.startsWith('unix:'))
		return { path: text.slice(5) };
	const secure = text.startsWith('tls:');
	const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(secure ? text.slice(4) : text);
	if (!match)
		throw new TypeError(`${text}: expected HOST:PORT, [IPv6]:PORT, tls:HOST:PORT or unix:PATH`);
	return { secure, host: match[1] ?? match[2], port: Number(match[3]) };
}

/**
 * The bytes that have come and are not answers yet. A reader takes from them: line() and bytes(n) return undefined if
 * they have to wait, and then nothing is taken by that reader.
 */
export class Bytes {
	#chunks = [];
	#size = 0;
	#at = 0;
	#least = 0; // the bytes that the next answer needs

	/** Returns whether an answer may be complete. A long one is put together once, not with each of its pieces. */
	add(chunk) {
		this.#chunks.push(chunk);
		this.#size += chunk.length;
		return this.#size >= this.#least;
	}

	/** Forget what was taken; the next reader begins here. */
	keep() {
		this.#least = 0;
		if (this.#at === 0)
			return;
		const all = this.#join().subarray(this.#at);
		this.#chunks = all.length ? [all] : [];
		this.#size = all.length;
		this.#at = 0;
	}

	/** Begin again where the last keep() left off. */
	rewind() {
		this.#at = 0;
	}

	line() {
		const end = this.#join().indexOf('\r\n', this.#at, 'latin1');
		if (end < 0)
			return undefined;
		const line = this.#chunks[0].toString('utf8', this.#at, end);
		this.#at = end + 2;
		return line;
	}

	/** So many bytes and the end of their line. */
	bytes(count) {
		if (this.#size < this.#at + count + 2) {
			this.#least = this.#at + count + 2;
			return undefined;
		}
		const found = this.#join().subarray(this.#at, this.#at + count);
		this.#at += count + 2;
		return found;
	}

	#join() {
		if (this.#chunks.length !== 1)
			this.#chunks = [Buffer.concat(this.#chunks)];
		return this.#chunks[0];
	}
}

export class Wire {
	#socket;
	#bytes = new Bytes();
	#waiting = []; // callers that wait for an answer, the first one first
	#read;
	#address;
	#patience;
	#late;
	closed = false;

	/** `read(bytes)` returns the next answer, or undefined if more has to come; `onPush(answer)` gets what nobody asked for. */
	static async connect(address, { read, tls: options, timeout = 10000, isPush, onPush } = {}) {
		const wire = new Wire();
		wire.#address = address;
		wire.#read = read;
		wire.#patience = timeout;
		wire.isPush = isPush;
		wire.onPush = onPush;
		await wire.#open(readAddress(address), options, timeout);
		return wire;
	}

	#open({ secure, ...where }, options, timeout) {
		return new Promise((resolve, reject) => {
			const socket = (this.#socket = secure ? tls.connect({ servername: net.isIP(where.host) ? '' : where.host, ...where, ...options })
				: net.connect(where));
			const late = setTimeout(() => socket.destroy(new Error(`no connection within ${timeout / 1000} s`)), timeout);
			socket.once(secure ? 'secureConnect' : 'connect', () => {
				clearTimeout(late);
				socket.setNoDelay(true);
				// A worker waits for hours. Without this it would not notice that the machine is gone.
				socket.setKeepAlive(true, 60000);
				resolve();
			});
			socket.on('data', (chunk) => this.#take(chunk));
			socket.on('error', (error) => this.#end(error.message || error.code));
			socket.on('close', () => {
				clearTimeout(late);
				this.#end('the server closed it');
				reject(this.#lost ?? new ConnectionError(`${this.#address}: not connected`));
			});
		});
	}

	#lost;

	#end(why) {
		this.#lost ??= new ConnectionError(`${this.#address}: the connection is lost: ${why}; is the server running there?`, 'LOST');
		this.closed = true;
		clearTimeout(this.#late);
		for (const { reject } of this.#waiting.splice(0))
			reject(this.#lost);
		this.onEnd?.(this.#lost);
		this.onEnd = undefined;
	}

	#take(chunk) {
		if (!this.#bytes.add(chunk))
			return;
		try {
			for (let answer; (answer = this.#read(this.#bytes)) !== undefined;) {
				this.#bytes.keep();
				if (this.isPush?.(answer))
					this.onPush(answer);
				else {
					this.#waiting.shift()?.resolve(answer);
					this.#watch();
				}
			}
			this.#bytes.rewind();
		} catch (error) {
			this.#socket.destroy(error);
		}
	}

	/** A server that is silent is one that is lost, unless it was asked to wait. */
	#watch() {
		clearTimeout(this.#late);
		if (this.#waiting.length && !this.#waiting[0].mayWait)
			this.#late = setTimeout(() => this.#socket.destroy(new Error(`no answer within ${this.#patience / 1000} s`)), this.#patience);
	}

	/** Send a command; resolves with its answer. Commands that were sent before need not be answered yet. */
	ask(...parts) {
		return this.#say(parts, false);
	}

	/** The same for a command whose answer takes as long as it likes. */
	await(...parts) {
		return this.#say(parts, true);
	}

	#say(parts, mayWait) {
		if (this.closed)
			return Promise.reject(this.#lost ?? new ConnectionError(`${this.#address}: closed`, 'LOST'));
		return new Promise((resolve, reject) => {
			if (this.#waiting.push({ resolve, reject, mayWait }) === 1)
				this.#watch();
			this.#socket.cork();
			for (const part of parts)
				this.#socket.write(part);
			process.nextTick(() => this.#socket.uncork());
		});
	}

	/** Take no more bytes for a while, or again. */
	pause(wanted) {
		this.#socket[wanted ? 'pause' : 'resume']();
	}

	/** Keep the process alive for this connection, or not. */
	ref(wanted) {
		this.#socket[wanted ? 'ref' : 'unref']();
	}

	close() {
		this.#lost ??= new ConnectionError(`${this.#address}: this side closed the connection`, 'CLOSED');
		this.#socket.destroy();
		return new Promise((resolve) => (this.#socket.closed ? resolve() : this.#socket.once('close', resolve)));
	}
}
