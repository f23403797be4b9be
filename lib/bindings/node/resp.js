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
		return rest === '-1' ? null : bytes.bytes(Number(rest));
	case '*':
		return rest === '-1' ? null : readArray(bytes, Number(rest));
	default:
		throw new WeekwheelError('this is not a server of sessions: its answers are not those of Redis', 'PROTOCOL');
	}
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
		const bytes = Buffer.isBuffer(word) ? word : Buffer.from(String(word));
		parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
	}
	return Buffer.concat(parts);
}
