// The protocol of Redis, version 2.

import { WeekwheelError, DeniedError, BusyError } from './errors.js';

const kinds = { NOAUTH: DeniedError, NOPERM: DeniedError, WRONGPASS: DeniedError, OOM: BusyError, MISCONF: BusyError };

function errorOf(line) {
	const code = line.split(' ', 1)[0];
	return new (kinds[code] ?? WeekwheelError)(line, code);
}

/** One answer: a string, a number, a Buffer, null, an error (returned, not thrown) or an array of these. */
export function readReply(bytes) {
	const line = bytes.line();
	if (line === undefined)
		return undefined;
	const rest = line.slice(1);
	switch (line[0]) {
	case '+':
		return rest;
	case '-':
		return errorOf(rest);
	case ':':
		return Number(rest);
	case '$':
		return rest === '-1' ? null : bytes.bytes(size(rest));
	case '*':
		return rest === '-1' ? null : readArray(bytes, size(rest));
	default:
		throw foreign();
	}
}

const foreign = () => new WeekwheelError('this is not a server of sessions: its answers are not those of Redis', 'PROTOCOL');

function size(text) {
	if (!/^\d+$/.test(text))
		throw foreign();
	return Number(text);
}

function readArray(bytes, count) {
	const found = [];
	for (let i = 0; i < count; i++) {
		const item = readReply(bytes);
		if (item === undefined)
			return undefined;
		found.push(item);
	}
	return found;
}

/** A command as the server reads it. */
export function writeCommand(words) {
	const parts = [Buffer.from(`*${words.length}\r\n`)];
	for (const word of words) {
		if (typeof word !== 'string' && typeof word !== 'number' && !ArrayBuffer.isView(word))
			throw new TypeError(`a word of a command is text, a number or bytes, not ${word}: JSON.stringify() makes text of an object`);
		const bytes = ArrayBuffer.isView(word) ? new Uint8Array(word.buffer, word.byteOffset, word.byteLength) : Buffer.from(String(word));
		parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
	}
	return Buffer.concat(parts);
}
