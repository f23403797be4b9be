// The protocol of beanstalkd with weekwheeld's own verbs: how answers are read, and words written.

import { WeekwheelError, refusal } from './errors.js';

/** The words after which a body follows, and which of them is its size. */
const bodies = { OK: 1, FOUND: 2, RESERVED: 2 };

/** One answer: its line, its words and its body. `undefined`: more has to come. */
export function readAnswer(bytes) {
	const line = bytes.line();
	if (line === undefined)
		return undefined;
	const words = line.split(' ');
	const size = words[bodies[words[0]]];
	if (size === undefined)
		return { line, words };
	if (!/^\d+$/.test(size))
		throw new WeekwheelError('this is not a server of jobs: its answers are not those of beanstalkd', 'PROTOCOL');
	const block = bytes.bytes(Number(size));
	if (block === undefined)
		return undefined;
	// The first bytes are the headers of a job that has some.
	const more = Number(words[bodies[words[0]] + 1] ?? 0);
	return { line, words, body: block.subarray(more), headers: readHeaders(block.toString('latin1', 0, more)) };
}

function readHeaders(text) {
	return Object.fromEntries(text.split('\n').filter(Boolean).map((line) => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]));
}

/** Headers as they stand before the body. */
export function writeHeaders(headers) {
	let text = '';
	for (const [name, value] of Object.entries(headers)) {
		const line = `${name.toLowerCase()}: ${value}`;
		if (!/^[!#$%&'*+.^_`|~0-9a-z-]+: (?:[!-~](?:[ -~]*[!-~])?)?$/.test(line))
			throw new TypeError(`the header ${line}: its name is a token of HTTP, and its value visible ASCII`);
		text += line + '\n';
	}
	return Buffer.from(text);
}

/** beanstalkd does not know weekwheeld's own verbs, and would take a body behind one for commands. */
export async function needOwnVerbs(wire) {
	wire.hasOwn ??= wire.ask('stats-key weekwheel\r\n').then(({ words }) => ['OK', 'NOT_FOUND', 'DENIED', 'INTERNAL_ERROR'].includes(words[0]));
	if (!await wire.hasOwn)
		throw refusal('UNKNOWN_COMMAND');
}

/** Bytes of a line without its end: of beanstalkd's put, and of weekwheeld's own verbs. */
const LINE_MOST = 222;
const OWN_LINE_MOST = 2046;

/** A line as it is sent. A server would take the body behind one that is too long for it for commands. */
export function writeLine(line) {
	const most = line.startsWith('put ') ? LINE_MOST : OWN_LINE_MOST;
	if (line.length > most)
		throw new RangeError(`${line.slice(0, 40)}... has ${line.length} bytes, and a server reads ${most}: make the key, the group and the like shorter, which have at most 200 bytes`);
	return line + '\r\n';
}

/** A body as bytes, a copy. */
export function toBytes(body) {
	if (typeof body === 'string')
		return Buffer.from(body);
	if (!ArrayBuffer.isView(body))
		throw new TypeError('a body is text or bytes: JSON.stringify() makes text of an object');
	return Buffer.from(new Uint8Array(body.buffer, body.byteOffset, body.byteLength));
}

const plain = /[A-Za-z0-9_.~-]/;

/** Keys, groups and reasons are percent-encoded, byte by byte. */
export function encode(text) {
	let encoded = '';
	for (const byte of Buffer.from(text)) {
		const letter = String.fromCharCode(byte);
		encoded += plain.test(letter) ? letter : '%' + byte.toString(16).toUpperCase().padStart(2, '0');
	}
	return encoded;
}

export function decode(text) {
	return Buffer.from(text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16))), 'latin1').toString();
}

/** A key alone; "-" stands for none, so one that is so named is encoded. */
export function encodeKey(key) {
	return key === '-' ? '%2D' : encode(key);
}

export function tubeName(tube) {
	if (typeof tube !== 'string' || !/^[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]{0,199}$/.test(tube))
		throw new TypeError(`${tube}: a tube's name has 1 to 200 letters, digits and -+/;.$_(), and does not begin with -`);
	return tube;
}

export function whole(name, value) {
	if (!Number.isSafeInteger(value) || value < 0)
		throw new TypeError(`${name}: ${value}: expected a whole number from 0 on`);
	return String(value);
}

/** Seconds, with up to nine digits behind the point. */
export function seconds(name, value) {
	if (typeof value !== 'number' || !(value >= 0) || !Number.isFinite(value))
		throw new TypeError(`${name}: ${value}: expected seconds, from 0 on`);
	return value.toFixed(9).replace(/\.?0+$/, '');
}

/** A Date, or seconds since 1970. */
export function moment(name, value) {
	return value instanceof Date ? seconds(name, value.getTime() / 1000) : seconds(name, value);
}

/** " name=value" for each option that is given, by the table of how it is written. */
export function options(table, given) {
	let text = '';
	for (const [name, value] of Object.entries(given)) {
		const write = table[name];
		if (!write)
			throw new TypeError(`${name}: there is no such option here: expected ${Object.keys(table).join(', ')}`);
		if (value !== undefined && value !== null && value !== false)
			text += ` ${name.replace(/[A-Z]/g, (letter) => '-' + letter.toLowerCase())}=${write(name, value)}`;
	}
	return text;
}

/** The statistics of beanstalkd: "name: value" or "- item" in each line. */
export function readList(body) {
	return body.toString().split('\n').filter((line) => line.startsWith('- ')).map((line) => line.slice(2));
}

export function readStats(body) {
	const found = {};
	for (const line of body.toString().split('\n')) {
		const match = /^([^:]+): (.*)$/.exec(line);
		if (match)
			found[match[1]] = /^-?\d+(\.\d+)?$/.test(match[2]) && match[1] !== 'name' && match[1] !== 'tube' ? Number(match[2]) : match[2].replace(/^"(.*)"$/, '$1');
	}
	return found;
}

/** JSON objects, one a line; the last one may say where to go on. */
export function readLines(body) {
	// A store in Redis goes on at numbers of 64 bits.
	const lines = body.toString().split('\n').filter(Boolean).map((line) => JSON.parse(line.replace(/^(\{"next":)(\d+)\}$/, '$1"$2"}')));
	const last = lines.length ? Object.keys(lines.at(-1)) : [];
	const next = last.length === 1 && last[0] === 'next' ? lines.pop().next : undefined;
	return { lines, next };
}
