// Tests the client of sessions. SESSIOND is a weekwheel-sessiond with a virtual clock and --lifetimes, TOKENED one with tokens.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { ConnectionError, DeniedError, Sessions, WeekwheelError, sessionStore } from 'weekwheel';

const { SESSIOND, TOKENED, TOKEN } = process.env;
let sessions;
const advance = (seconds) => sessions.command('ADVANCE', seconds * 1000);

before(async () => {
	sessions = await Sessions.connect(SESSIOND);
});
after(() => sessions.close());

test('a session is kept until nobody has used it for a time', async () => {
	await sessions.set('a', 'cart', { idle: 30 });
	await advance(29);
	assert.equal(await sessions.get('a'), 'cart');
	assert.equal(await sessions.touch('a', 30), true);
	await advance(29);
	assert.deepEqual(await sessions.getBytes('a'), Buffer.from('cart'));
	await advance(1);
	assert.equal(await sessions.get('a'), undefined);
	assert.equal(await sessions.getBytes('a'), undefined);
	assert.equal(await sessions.touch('a', 30), false);
	assert.equal(await sessions.endsAt('a'), undefined);
});

test('and no longer than its lifetime', async () => {
	await sessions.set('b', 'x', { idle: 30, lifetime: 50 });
	await advance(25);
	await sessions.touch('b', 30);
	await advance(24);
	assert.equal(await sessions.get('b'), 'x');
	await advance(1);
	assert.equal(await sessions.get('b'), undefined);
});

test('values are text or bytes', async () => {
	for (const bytes of [new Uint8Array([1, 0, 255]), new DataView(new Uint8Array([9, 1, 0, 255]).buffer, 1)]) {
		await sessions.set('e', bytes);
		assert.deepEqual([...await sessions.getBytes('e')], [1, 0, 255]);
	}
	for (const wrong of [{ user: 'alice' }, undefined, null, true])
		await assert.rejects(sessions.set('e', wrong), { name: 'TypeError', message: /JSON.stringify/ });
	assert.deepEqual([...await sessions.getBytes('e')], [1, 0, 255]);
	await sessions.destroy('e');
});

test('values, ids and ends', async () => {
	const bytes = Buffer.from([0, 13, 10, 255]);
	await sessions.set('c', bytes);
	assert.deepEqual(await sessions.getBytes('c'), bytes);
	assert.equal(await sessions.endsAt('c'), null);
	await sessions.set('c', 'ü', { idle: 100 });
	const end = await sessions.endsAt('c');
	await sessions.set('c', 'new', { keep: true });
	assert.deepEqual(await sessions.endsAt('c'), end);
	assert.equal(await sessions.rename('c', 'd'), true);
	assert.equal(await sessions.rename('c', 'd'), false);
	assert.equal(await sessions.get('d'), 'new');
	assert.equal(await sessions.destroy('d'), true);
	assert.equal(await sessions.destroy('d'), false);
	await Promise.all(Array.from({ length: 3000 }, (_, i) => sessions.set(`n${i}`, '', { idle: 10 })));
	await sessions.command('SET', 'another', 1);
	const ids = [];
	for await (const id of sessions.ids())
		ids.push(id);
	assert.equal(new Set(ids).size, 3000);
	assert.ok(ids.every((id) => id[0] === 'n'));
	await advance(10);
});

test('each end is told with its value', async () => {
	const stop = new AbortController();
	const told = [];
	const listening = (async () => {
		for await (const { id, value } of sessions.expired({ signal: stop.signal })) {
			told.push([id, value]);
			if (told.length === 100)
				stop.abort();
		}
	})();
	while (!(await sessions.command('PUBSUB', 'NUMPAT')))
		await new Promise(setImmediate);
	for (let i = 0; i < 100; i++)
		await sessions.set(`e*${i}`, `v${i}`, { idle: 10 });
	await sessions.command('SET', 'other', 'x', 'EX', 10);
	await advance(10);
	await listening;
	assert.deepEqual(told.sort(), Array.from({ length: 100 }, (_, i) => [`e*${i}`, `v${i}`]).sort());
});

test('who listens changes nothing in the server, and can be slow', { timeout: 20000 }, async () => {
	await sessions.command('CONFIG', 'SET', 'notify-keyspace-events', 'Kg');
	const ended = sessions.expired();
	await ended.ready;
	assert.equal((await sessions.command('CONFIG', 'GET', 'notify-keyspace-events'))[1].toString().split('').sort().join(''), 'Kg');
	await Promise.all(Array.from({ length: 3000 }, (_, i) => sessions.set(`s${i}`, 'x', { idle: 10 })));
	await advance(10);
	const ids = new Set();
	for await (const { id } of ended)
		if (ids.add(id).size === 3000)
			break;
	while (await sessions.command('PUBSUB', 'NUMPAT'))
		await new Promise(setImmediate);
});

test('a prefix with signs of patterns is taken as it is', async () => {
	const odd = await Sessions.connect(SESSIOND, { prefix: '[a-z]*?' });
	await odd.set('one', 'x', { idle: 10 });
	await sessions.command('SET', 'bnot', 'x', 'EX', 10);
	const ids = [];
	for await (const id of odd.ids())
		ids.push(id);
	assert.deepEqual(ids, ['one']);
	await odd.close();
});

test('errors', async () => {
	await assert.rejects(sessions.set('a', 'x', { idle: 0 }), TypeError);
	await assert.rejects(sessions.touch('a', '5'), TypeError);
	await assert.rejects(sessions.command('LPUSH', 'a', 1), WeekwheelError);
	await assert.rejects(Sessions.connect('127.0.0.1:1'), ConnectionError);
	await assert.rejects(Sessions.connect(TOKENED, { token: 'a-wrong-token-of-some-length' }), DeniedError);
	const site = await Sessions.connect(TOKENED, { token: TOKEN });
	await site.set('a', 'x', { idle: 5 });
	await assert.rejects(site.command('GET', 'other:a'), { name: 'DeniedError', code: 'NOPERM' });
	await site.close();
	await assert.rejects(site.get('a'), ConnectionError);
});

test('the store of express-session', async () => {
	const Store = sessionStore({ Store: EventEmitter });
	const store = new Store({ sessions, ttl: 100, lifetime: 1000 });
	const call = (name, ...words) => promisify(store[name]).call(store, ...words);
	const data = { cookie: { originalMaxAge: null }, user: 'alice' };
	await call('set', 'x', data);
	assert.deepEqual(await call('get', 'x'), data);
	assert.equal(await call('get', 'y'), null);
	await advance(99);
	await call('touch', 'x', data);
	await advance(99);
	assert.deepEqual(await call('all'), { x: data });
	assert.equal(await call('length'), 1);
	await advance(1);
	assert.equal(await call('get', 'x'), null);
	await call('set', 'y', { cookie: { expires: new Date(Date.now() + 3600000) } });
	const left = (await sessions.command('PTTL', 'sess:y')) / 1000;
	assert.ok(left > 999 && left <= 1000, 'its lifetime is the shorter one');
	await call('set', 'y', { cookie: { expires: new Date(Date.now() - 1000) } });
	assert.equal(await call('length'), 0, 'one that has ended is not kept');
	await call('set', 'z', data);
	await call('destroy', 'z');
	await call('set', 'z', data);
	await call('clear');
	assert.equal(await call('length'), 0);
	store.destroy('z');
});
