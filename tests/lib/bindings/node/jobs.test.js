// Tests the client of jobs. SERVER is a weekwheeld with a virtual clock, TOKENED one that wants a token, TLS one with TLS.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { BusyError, ConnectionError, DeniedError, Jobs, NotFoundError, ScheduleError, StaleError, WeekwheelError } from 'weekwheel';

const { SERVER, TOKENED, TOKEN, TLS, CA } = process.env;
const all = async (pages) => {
	const found = [];
	for await (const one of pages)
		found.push(one);
	return found;
};
let jobs;
let number = 0;
const tube = () => `tube${++number}`;

before(async () => {
	jobs = await Jobs.connect(SERVER);
});
after(() => jobs.close());

test('a job is put, reserved when it is due, and finished', async () => {
	const mail = tube();
	const { id, result } = await jobs.put(mail, 'to: alice', { delay: 60 });
	assert.equal(result, 'inserted');
	assert.deepEqual(await jobs.peek(mail, id), { id, body: Buffer.from('to: alice') });
	assert.deepEqual(await all(jobs.reserve(mail, { timeout: 0 })), []);
	await jobs.advance(60);
	for await (const job of jobs.reserve(mail, { timeout: 0 })) {
		assert.equal(job.text, 'to: alice');
		assert.equal(job.id, id);
		assert.equal(job.tube, mail);
	}
	assert.equal(await jobs.peek(mail, id), undefined);
	assert.equal((await jobs.stats(mail))['cmd-delete'], 1);
});

test('bodies are bytes, and keys any text', async () => {
	const mail = tube();
	const body = Buffer.from([0, 13, 10, 255, 10, 13]);
	await jobs.put(mail, body, { key: 'ключ 50%/a b-', delay: 10 });
	assert.deepEqual((await jobs.peek(mail, 'ключ 50%/a b-')).body, body);
	const [listed] = await all(jobs.list({ tube: mail, body: true }));
	assert.equal(listed.key, 'ключ 50%/a b-');
	assert.deepEqual(listed.body, body);
	assert.equal((await jobs.put(mail, 'x', { key: '-', delay: 10 })).result, 'inserted');
	assert.equal((await jobs.put(mail, 'y', { key: '-', delay: 10 })).result, 'replaced');
});

test('headers travel with a job', async () => {
	const mail = tube();
	const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
	await jobs.put(mail, 'body', { headers: { Traceparent: trace, empty: '' } });
	await jobs.put(mail, 'none', { headers: {} });
	const jobsOf = await all(jobs.reserve(mail, { timeout: 0 }));
	assert.deepEqual(jobsOf.map(({ text, headers }) => [text, headers]), [['body', { traceparent: trace, empty: '' }], ['none', {}]]);
	for (const headers of [{ 'a b': 'x' }, { a: 'x\r\ny' }, { a: ' x' }, { '': 'x' }])
		await assert.rejects(jobs.put(mail, 'x', { headers }), TypeError);
});

test('a client takes what it knows', async () => {
	const mail = tube();
	await jobs.put(mail, 'new', { code: 12 });
	for (const [code, expected] of [[11, []], [12, ['new']]]) {
		const worker = await Jobs.connect(SERVER, { code });
		assert.deepEqual((await all(worker.reserve(mail, { timeout: 0 }))).map(({ text }) => text), expected);
		await worker.close();
	}
	await assert.rejects(Jobs.connect(SERVER, { code: -1 }), TypeError);
});

test('a job follows another', async () => {
	const [mail, after] = [tube(), tube()];
	await jobs.put(mail, 'first', { headers: { a: 'b' }, then: { tube: after, body: 'nächster' } });
	await jobs.put(mail, 'none', { then: {} });
	await assert.rejects(jobs.put(mail, 'x', { then: { tub: after } }));
	const [first] = await all(jobs.reserve(mail, { timeout: 0 }));
	assert.deepEqual([first.text, first.headers], ['first', { a: 'b' }]);
	const [next] = await all(jobs.reserve(after, { timeout: 0 }));
	assert.equal(next.text, 'nächster');
});

test('commands that are sent together keep their tubes', async () => {
	const tubes = Array.from({ length: 20 }, tube);
	const puts = await Promise.all(Array.from({ length: 400 }, (_, i) => jobs.put(tubes[i % 20], `${i}`, { key: `k${i}`, delay: 5 })));
	assert.equal(new Set(puts.map(({ id }) => id)).size, 400);
	const peeked = await Promise.all(Array.from({ length: 400 }, (_, i) => jobs.peek(tubes[i % 20], `k${i}`)));
	assert.deepEqual(peeked.map(({ body }) => Number(body)), Array.from({ length: 400 }, (_, i) => i));
	for (const one of tubes)
		assert.equal((await all(jobs.list({ tube: one }))).length, 20);
});

test('versions', async () => {
	const mail = tube();
	const first = await jobs.put(mail, 'one', { key: 'k', delay: 10, version: 0 });
	assert.deepEqual(first, { result: 'inserted', id: first.id, version: 1 });
	assert.deepEqual(await jobs.put(mail, 'two', { key: 'k', delay: 10, mode: 'if-absent' }), { result: 'kept', id: first.id, version: 1 });
	assert.equal((await jobs.put(mail, 'two', { key: 'k', delay: 10, version: 1 })).result, 'replaced');
	await assert.rejects(jobs.put(mail, 'three', { key: 'k', delay: 10, version: 1 }), StaleError);
	assert.equal(await jobs.move(mail, 'k', { delay: 100, version: 2 }), 3);
	await assert.rejects(jobs.cancel(mail, 'k', { version: 1 }), { name: 'StaleError', code: 'STALE' });
	assert.equal(await jobs.cancel(mail, 'k', { version: 3 }), true);
	assert.equal(await jobs.cancel(mail, 'k'), false);
	await assert.rejects(jobs.move(mail, 'k', { delay: 1 }), NotFoundError);
});

test('unique and debounced jobs', async () => {
	const mail = tube();
	assert.equal((await jobs.put(mail, 'a', { key: 'k', unique: 3600 })).result, 'inserted');
	assert.equal((await jobs.put(mail, 'b', { key: 'k', unique: 3600 })).result, 'kept');
	await all(jobs.reserve(mail, { timeout: 0 }));
	assert.equal((await jobs.put(mail, 'c', { key: 'k', unique: 3600 })).result, 'ended');
	assert.equal((await jobs.put(mail, 'd', { key: 'd', delay: 5, debounce: 60 })).result, 'inserted');
	assert.equal((await jobs.put(mail, 'e', { key: 'd', delay: 5, debounce: 60 })).result, 'replaced');
});

test('times of the wall clock', async () => {
	const mail = tube();
	const now = await jobs.advance(0);
	const at = new Date(now.getTime() + 90000);
	await jobs.put(mail, 'later', { at, key: 'k' });
	const [job] = await all(jobs.list({ tube: mail }));
	assert.equal(Number(job.due), at.getTime() / 1000);
	assert.equal(job.clock, 'wall');
	await jobs.move(mail, 'k', { at: new Date(now.getTime() + 30000) });
	await jobs.advance(31);
	assert.equal((await all(jobs.reserve(mail, { timeout: 0 }))).length, 1);
});

test('a run that fails comes again, and is buried after its last attempt', async () => {
	const mail = tube();
	const { id } = await jobs.put(mail, 'x', { attempts: 2, backoff: 10 });
	const buried = [];
	for (let i = 0; i < 2; i++) {
		for await (const job of jobs.reserve(mail, { timeout: 0 }))
			buried.push(await job.release({ error: new Error('it is full, 100 %') }));
		await jobs.advance(11);
	}
	assert.deepEqual(buried, [false, true]);
	const [listed] = await all(jobs.list({ tube: mail }));
	assert.deepEqual([listed.id, listed.state, listed.error], [id, 'buried', 'it is full, 100 %']);
	assert.equal(await jobs.kick(mail, 10), 1);
	for await (const job of jobs.reserve(mail, { timeout: 0 }))
		await job.bury();
	await jobs.kickJob(id);
	assert.equal((await all(jobs.reserve(mail, { timeout: 0 }))).length, 1);
});

test('a loop that ends early gives its job back', async () => {
	const mail = tube();
	await jobs.put(mail, 'x');
	for await (const job of jobs.reserve(mail, { timeout: 0 })) {
		assert.equal(job.text, 'x');
		break;
	}
	await assert.rejects(async () => {
		for await (const job of jobs.reserve(mail, { timeout: 0 }))
			throw new RangeError(job.text);
	}, RangeError);
	const [job] = await all(jobs.list({ tube: mail }));
	assert.equal(job.state, 'ready');
});

test('a signal ends the wait', async () => {
	const stop = new AbortController();
	setTimeout(() => stop.abort(), 20);
	assert.deepEqual(await all(jobs.reserve(tube(), { signal: stop.signal })), []);
	assert.deepEqual(await all(jobs.reserve(tube(), { signal: stop.signal })), []);
});

test('workers run several at a time, and tell errors', async () => {
	const [mail, other] = [tube(), tube()];
	let now = 0;
	let most = 0;
	const done = [];
	const failed = [];
	for (let i = 0; i < 30; i++)
		await jobs.put(i % 2 ? mail : other, JSON.stringify({ i }));
	await new Promise((resolve) => {
		const worker = jobs.work([mail, other], async (job) => {
			most = Math.max(most, ++now);
			await new Promise((after) => setTimeout(after, 2));
			now--;
			assert.equal(job.tube, job.json().i % 2 ? mail : other);
			if (job.json().i === 7 && !failed.length)
				throw new Error('seven');
			done.push(job.json().i);
			if (done.length === 30)
				resolve(worker.stop());
		}, { concurrency: 4, onError: async (error, job) => {
			failed.push([error.message, job.json().i]);
			while (!(await all(jobs.list({ tube: mail, state: 'delayed' }))).length);
			await jobs.advance(1);
		} });
	});
	assert.deepEqual(done.sort((a, b) => a - b), Array.from({ length: 30 }, (_, i) => i));
	assert.deepEqual(failed, [['seven', 7]]);
	assert.ok(most > 1 && most <= 4, `${most}`);
	assert.equal((await jobs.stats(mail))['current-jobs-ready'], 0);
});

test('a worker touches what takes longer than its time to run', async () => {
	const mail = tube();
	await jobs.put(mail, 'long', { run: 10 });
	await new Promise((resolve, reject) => {
		const worker = jobs.work(mail, async (job) => {
			const { 'time-left': before } = await job.stat();
			await jobs.advance(6);
			await job.touch();
			await jobs.advance(6);
			assert.ok((await job.stat())['time-left'] > 0 && before > 0);
			setImmediate(() => worker.stop().then(resolve));
		}, { onError: reject });
	});
	assert.equal((await all(jobs.list({ tube: mail }))).length, 0);
});

test('a job that is put again while it runs is done again', async () => {
	const mail = tube();
	const done = [];
	await jobs.put(mail, 'first', { key: 'k' });
	await new Promise((resolve, reject) => {
		const worker = jobs.work(mail, async (job) => {
			done.push(job.text);
			if (job.text === 'first')
				await jobs.put(mail, 'second', { key: 'k' });
			else
				setImmediate(() => worker.stop().then(resolve));
		}, { onError: reject });
	});
	assert.deepEqual(done, ['first', 'second']);
	assert.equal((await all(jobs.list({ tube: mail }))).length, 0);
});

test('a worker that is refused says so', async () => {
	const other = await Jobs.connect(TOKENED, { token: TOKEN });
	await assert.rejects(other.work('secret', () => {}).done, DeniedError);
	await other.close();
});

test('limits', async () => {
	const mail = tube();
	await jobs.limit(mail, { running: 1 });
	await jobs.limit(mail, { starts: 10, per: 60, burst: 2, group: 'shop 1', weight: 4 });
	const limits = await jobs.limits(mail);
	assert.deepEqual(limits.map(({ group, running, starts, burst, weight }) => [group, running, starts, burst, weight]).sort(), [['shop 1', 0, 10, 2, 4], [null, 1, 0, 1, 1]].sort());
	await jobs.put(mail, 'a', { group: 'shop 1' });
	await jobs.put(mail, 'b');
	for await (const job of jobs.reserve(mail, { timeout: 0 })) {
		assert.deepEqual(await all(jobs.reserve(mail, { timeout: 0 })), [], `${job.text} runs alone`);
		break;
	}
	await jobs.limit(mail);
	assert.deepEqual((await jobs.limits(mail)).filter(({ group }) => group === null), []);
});

test('schedules', async () => {
	const mail = tube();
	const next = await jobs.schedule(mail, 'nightly backup', 'now', { cron: '0 3 * * *', zone: 'Europe/Berlin', overlap: 'skip' });
	assert.equal(next.getUTCMinutes(), 0);
	const [schedule] = await all(jobs.schedules({ tube: mail, body: true }));
	assert.equal(schedule.name, 'nightly backup');
	assert.equal(schedule.body.toString(), 'now');
	const [shown] = await all(jobs.schedules({ tube: mail, name: 'nightly backup' }));
	assert.equal(shown.cron, '0 3 * * *');
	await jobs.runSchedule(mail, 'nightly backup');
	assert.equal((await all(jobs.reserve(mail, { timeout: 0 }))).length, 1);
	await jobs.pauseSchedule(mail, 'nightly backup');
	await jobs.resumeSchedule(mail, 'nightly backup');
	await jobs.deleteSchedule(mail, 'nightly backup');
	await assert.rejects(jobs.deleteSchedule(mail, 'nightly backup'), NotFoundError);
	await assert.rejects(jobs.schedule(mail, 'wrong', '', { cron: '0 25 * * *' }), (error) =>
		error instanceof ScheduleError && error.what === 'cron' && error.at === 2 && /25/.test(error.message));
});

test('history', async () => {
	const mail = tube();
	await jobs.put(mail, 'x', { key: 'k', keep: 3600, attempts: 3 });
	for await (const job of jobs.reserve(mail, { timeout: 0 })) {
		await job.report('half of it');
		await job.release({ delay: 0, error: 'again' });
		break;
	}
	await all(jobs.reserve(mail, { timeout: 0 }));
	const runs = await all(jobs.history({ tube: mail, body: true }));
	assert.deepEqual(runs.map(({ outcome, attempt }) => [outcome, attempt]), [['finished', 2], ['released', 1]]);
	assert.equal(runs[1].report.toString(), 'half of it');
	assert.equal(runs[1].error, 'again');
});

test('lists go on over pages', async () => {
	const mail = tube();
	await Promise.all(Array.from({ length: 2500 }, (_, i) => jobs.put(mail, '', { delay: 100, key: `k${i}` })));
	assert.equal((await all(jobs.list({ tube: mail, state: ['delayed', 'ready'] }))).length, 2500);
	assert.equal((await all(jobs.list({ tube: mail, prefix: 'k24' }))).length, 111);
	const counts = await jobs.forecast(3600, 2, { tube: mail });
	assert.equal(counts.reduce((a, b) => a + b), 2500);
	await jobs.pause(mail, 1);
	assert.ok((await jobs.tubes()).includes(mail));
	assert.equal((await jobs.stat(mail, 'k7')).state, 'delayed');
	assert.equal(await jobs.stat(mail, 'none'), undefined);
	assert.ok((await jobs.stats()).version);
});

test('wrong arguments are refused before anything is sent', async () => {
	await assert.rejects(jobs.put('mail', { a: 1 }), /JSON.stringify/);
	await assert.rejects(jobs.put('mail', 'x', { unique: 60 }), /name it with "key"/);
	await assert.rejects(jobs.put('a tube', ''), TypeError);
	await assert.rejects(jobs.put('-tube', ''), TypeError);
	await assert.rejects(jobs.put('t', '', { delay: -1 }), TypeError);
	await assert.rejects(jobs.put('t', '', { delay: NaN }), TypeError);
	await assert.rejects(jobs.put('t', '', { delay: '5' }), TypeError);
	await assert.rejects(jobs.put('t', '', { uniq: 5 }), /uniq: there is no such option/);
	await assert.rejects(jobs.put('t', '', { mode: 'a b' }), TypeError);
	await assert.rejects(jobs.put('t\r\nput', ''), TypeError);
	await assert.rejects(Jobs.connect('nowhere'), /expected HOST:PORT/);
	assert.throws(() => jobs.work('t'), /a worker calls one for each job/);
	for (const concurrency of [0, -1, 1.5, 'x'])
		assert.throws(() => jobs.work('t', () => {}, { concurrency }), TypeError);
});

test('tokens', async () => {
	await assert.rejects(Jobs.connect(TOKENED, { token: 'a-wrong-token-of-some-length' }), DeniedError);
	const open = await Jobs.connect(TOKENED);
	await assert.rejects(open.put('mail', 'x'), { name: 'DeniedError', code: 'DENIED' });
	await open.close();
	const right = await Jobs.connect(TOKENED, { token: TOKEN });
	assert.equal((await right.put('mail', 'x')).result, 'inserted');
	await assert.rejects(right.put('secret', 'x'), DeniedError);
	assert.equal((await all(right.reserve('mail', { timeout: 0 }))).length, 1);
	await right.close();
});

test('TLS', async () => {
	await assert.rejects(Jobs.connect(TLS), ConnectionError);
	const secure = await Jobs.connect(TLS, { tls: { ca: CA } });
	const body = Buffer.alloc(60000, 'x');
	await secure.put('mail', body, { key: 'k', delay: 5 });
	assert.deepEqual((await secure.peek('mail', 'k')).body, body);
	await secure.close();
});

test('a connection that is lost is opened anew', async () => {
	const sockets = new Set();
	const [host, port] = SERVER.split(':');
	const between = net.createServer((near) => {
		const far = net.connect(port, host);
		sockets.add(near);
		near.pipe(far).pipe(near);
		near.on('error', () => far.destroy()).on('close', () => far.destroy());
		far.on('error', () => near.destroy()).on('close', () => near.destroy());
	});
	await new Promise((resolve) => between.listen(0, '127.0.0.1', resolve));
	const client = await Jobs.connect(`127.0.0.1:${between.address().port}`);
	const mail = tube();
	const errors = [];
	let done = 0;
	const worker = client.work(mail, () => void done++, { onError: (error) => errors.push(error) });
	await client.put(mail, 'one');
	while (done < 1)
		await new Promise(setImmediate);
	for (const socket of sockets)
		socket.destroy();
	await assert.rejects(async () => {
		for (;;)
			await client.peek(mail, 1);
	}, ConnectionError);
	assert.equal((await client.put(mail, 'two')).result, 'inserted');
	while (done < 2)
		await new Promise((resolve) => setTimeout(resolve, 5));
	assert.ok(errors[0] instanceof ConnectionError);
	await client.close();
	await assert.rejects(client.put(mail, 'three'), ConnectionError);
	await worker.done;
	between.close();
});

/** A server that says what a test wants: `answer(line)` is a text or nothing. `lines` are what it heard. */
async function played(t, answer) {
	const lines = [];
	const sockets = new Set();
	const server = net.createServer((socket) => {
		let kept = '';
		sockets.add(socket);
		socket.on('error', () => {}).on('data', (data) => {
			const heard = (kept + data).split('\r\n');
			kept = heard.pop();
			for (const line of heard) {
				lines.push(line);
				const said = line === 'headers' ? 'HEADERS' : answer(line);
				if (said)
					socket.write(said + '\r\n');
			}
		});
	});
	await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
	t.after(() => {
		server.close();
		for (const socket of sockets)
			socket.destroy();
	});
	return { address: `127.0.0.1:${server.address().port}`, lines };
}

test('a job whose tube is refused is put nowhere', { timeout: 10000 }, async (t) => {
	const { address, lines } = await played(t, (line) => /^use full/.test(line) ? 'OUT_OF_MEMORY'
		: /^use/.test(line) ? line.replace('use', 'USING') : /^put/.test(line) ? 'INSERTED 1' : undefined);
	const client = await Jobs.connect(address);
	await client.put('good', 'x');
	const answers = await Promise.allSettled([client.put('full', 'x'), client.put('full', 'x'), client.put('good', 'x'), client.put('other', 'x')]);
	assert.deepEqual(answers.map(({ status, reason }) => reason?.code ?? status), ['OUT_OF_MEMORY', 'OUT_OF_MEMORY', 'fulfilled', 'fulfilled']);
	await client.put('default', 'x');
	let used = 'default';
	const tubes = [];
	for (const line of lines)
		if (/^use (?!full)/.test(line))
			used = line.slice(4);
		else if (/^put/.test(line))
			tubes.push(used);
	assert.deepEqual(tubes.sort(), ['default', 'good', 'good', 'other']);
	await client.close();
});

test('a plain job is put as beanstalkd knows it', { timeout: 10000 }, async (t) => {
	const { address, lines } = await played(t, (line) => /^put/.test(line) ? 'INSERTED 1'
		: /^stats-key/.test(line) ? 'NOT_FOUND' : undefined);
	const client = await Jobs.connect(address);
	await client.put('default', 'x', { delay: 5, run: 10, key: undefined });
	await client.put('default', 'x', { delay: 0.5 });
	await client.put('default', 'x', { key: 'k' });
	assert.deepEqual(lines, ['put 1024 5 10 1', 'x', 'stats-key weekwheel', 'put-key 1024 0.5 60 1 -', 'x', 'put-key 1024 0 60 1 k', 'x']);
	await client.close();
});

test('beanstalkd does not take a body for commands', { timeout: 10000 }, async (t) => {
	const { address, lines } = await played(t, (line) => /^use/.test(line) ? line.replace('use', 'USING')
		: /^(watch|ignore)/.test(line) ? 'WATCHING 1' : /^reserve/.test(line) ? 'RESERVED 1 1\r\nx' : 'UNKNOWN_COMMAND');
	const client = await Jobs.connect(address);
	const unknown = { code: 'UNKNOWN_COMMAND', message: /is it weekwheeld/ };
	await assert.rejects(client.put('a', 'delete 1\r\n', { key: 'k' }), unknown);
	await assert.rejects(client.schedule('a', 'name', 'delete 1\r\n', { cron: '@daily' }), unknown);
	await assert.rejects(async () => {
		for await (const job of client.reserve('a'))
			await job.report('delete 1\r\n');
	}, unknown);
	assert.ok(!lines.some((line) => /^(delete|put|report)/.test(line)), lines.join());
	await client.close();
});

test('a server that is silent is lost, but one that has no job yet is not', { timeout: 10000 }, async (t) => {
	const { address } = await played(t, (line) => /^(watch|ignore)/.test(line) ? 'WATCHING 1' : undefined);
	const client = await Jobs.connect(address, { timeout: 50 });
	const stop = new AbortController();
	const waits = all(client.reserve('a', { signal: stop.signal }));
	await assert.rejects(client.stats(), (error) => error instanceof ConnectionError && /no answer within 0.05 s/.test(error.message));
	await assert.rejects(client.stats(), ConnectionError);
	stop.abort();
	assert.deepEqual(await waits, []);
	await client.close();
});

test('a worker goes on when the server has failed for a while', { timeout: 10000 }, async (t) => {
	let reserves = 0;
	const { address } = await played(t, (line) => /^(watch|ignore)/.test(line) ? 'WATCHING 1'
		: /^reserve/.test(line) ? ['INTERNAL_ERROR', 'RESERVED 1 1\r\nx'][reserves++]
			: /^stats-job/.test(line) ? 'OK 17\r\n---\nttr: 60\npri: ' : /^delete/.test(line) ? 'DELETED' : undefined);
	const client = await Jobs.connect(address);
	const errors = [];
	const text = await new Promise((resolve, reject) => {
		client.work('a', (job) => resolve(job.text), { onError: (error) => errors.push(error.code) }).done.catch(reject);
	});
	assert.deepEqual([text, errors], ['x', ['INTERNAL_ERROR']]);
	await client.close();
});

test('a job that fails and has no backoff waits all the same', { timeout: 10000 }, async () => {
	const mail = tube();
	await jobs.put(mail, 'fails');
	await jobs.put(mail, 'fails', { backoff: 30 });
	let failures = 0;
	const worker = jobs.work(mail, () => { throw new Error('no'); }, { onError: () => failures++ });
	let left = [];
	while (left.filter(({ state }) => state === 'delayed').length < 2)
		left = await all(jobs.list({ tube: mail }));
	await worker.stop();
	assert.equal(failures, 2);
	assert.equal(left.find(({ backoff }) => !backoff).left, 1);
	assert.ok(left.find(({ backoff }) => backoff).left > 20);
});

test('a job that has no limit is buried after so many failures', { timeout: 10000 }, async () => {
	const mail = tube();
	await jobs.put(mail, 'fails');
	await jobs.put(mail, 'has a limit', { attempts: 2, backoff: 30 });
	const worker = jobs.work(mail, (job) => { throw new Error(job.text); }, { attempts: 1 });
	let left = [];
	while (left.length < 2 || left.some(({ state }) => state !== 'buried' && state !== 'delayed'))
		left = await all(jobs.list({ tube: mail }));
	await worker.stop();
	assert.deepEqual(left.map(({ state, error }) => [state, error]).sort(), [['buried', 'fails'], ['delayed', 'has a limit']]);
});

test('a worker touches by itself', { timeout: 20000 }, async () => {
	const mail = tube();
	await jobs.put(mail, 'long', { run: 1 });
	let touches = 0;
	await new Promise((resolve, reject) => {
		const worker = jobs.work(mail, async (job) => {
			const touch = job.touch.bind(job);
			// By the server's clock it takes more than twice its time to run.
			await new Promise((end) => {
				job.touch = async () => {
					await touch();
					await jobs.advance(0.75);
					if (++touches === 3)
						end();
				};
			});
			setImmediate(() => worker.stop().then(resolve));
		}, { onError: reject });
	});
	assert.deepEqual(await all(jobs.list({ tube: mail })), []);
});

test('a long body comes in pieces', { timeout: 10000 }, async () => {
	const body = Buffer.alloc(65000, 'piece\r\n');
	const mail = tube();
	const { id } = await jobs.put(mail, body);
	assert.ok((await jobs.peek(mail, id)).body.equals(body));
});

test('who does not speak the protocol', async () => {
	const server = net.createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
	await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
	const client = await Jobs.connect(`127.0.0.1:${server.address().port}`);
	await assert.rejects(client.put('t', ''), WeekwheelError);
	await client.close();
	server.close();
	await assert.rejects(Jobs.connect(`127.0.0.1:${server.address()?.port ?? 1}`), ConnectionError);
	assert.ok(new BusyError('x', 'OUT_OF_MEMORY') instanceof WeekwheelError);
});

test('a body is never taken for commands', async () => {
	const mail = tube();
	const { id } = await jobs.put(mail, 'kept', { delay: 60 });
	for (const how of [{ key: 'é'.repeat(400) }, { key: 'k', group: 'g'.repeat(2100) }])
		await assert.rejects(jobs.put(mail, `delete ${id}\r\ndelete ${id}`, how), RangeError);
	await assert.rejects(jobs.schedule(mail, 'x'.repeat(2100), `delete ${id}\r\n`, { cron: '@daily' }), RangeError);
	assert.equal((await jobs.peek(mail, id)).body.toString(), 'kept');
	assert.equal((await jobs.put(mail, 'x', { key: 'é'.repeat(100), group: 'é'.repeat(100), delay: 60 })).result, 'inserted');
});

test('bytes of any view are taken as they are', async () => {
	const mail = tube();
	const bytes = new Uint8Array([9, 1, 0, 255, 9]).buffer;
	for (const view of [new Uint8Array(bytes, 1, 3), new DataView(bytes, 1, 3)])
		assert.deepEqual([...(await jobs.peek(mail, (await jobs.put(mail, view, { delay: 60 })).id)).body], [1, 0, 255]);
	const words = new Uint16Array([300, 2]);
	assert.equal((await jobs.peek(mail, (await jobs.put(mail, words, { delay: 60 })).id)).body.length, 4);
	await assert.rejects(jobs.schedule(mail, 'name', { a: 1 }, { cron: '@daily' }), /JSON.stringify/);
	await jobs.schedule(mail, '-', words, { cron: '@daily' });
	assert.equal((await all(jobs.schedules({ tube: mail, name: '-', body: true })))[0].body.length, 4);
	await jobs.deleteSchedule(mail, '-');
});

test('a worker goes on whatever its function throws', { timeout: 10000 }, async () => {
	const mail = tube();
	const gone = net.createServer();
	await new Promise((resolve) => gone.listen(0, '127.0.0.1', resolve));
	const { port } = gone.address();
	await new Promise((resolve) => gone.close(resolve));
	await jobs.put(mail, 'a zero');
	await jobs.put(mail, 'half a letter');
	await jobs.put(mail, 'another connection');
	const failed = [];
	const worker = jobs.work(mail, async (job) => {
		if (job.text === 'a zero')
			throw new Error('a\0b');
		if (job.text === 'half a letter')
			throw new Error('\ud800');
		await Jobs.connect(`127.0.0.1:${port}`);
	}, { onError: (error, job) => failed.push(job?.text) });
	let left = [];
	while (left.filter(({ state }) => state === 'delayed').length < 3)
		left = await Promise.race([all(jobs.list({ tube: mail })), worker.done.then(() => assert.fail('it has ended'))]);
	await worker.stop();
	assert.deepEqual(failed, ['a zero', 'half a letter', 'another connection']);
	assert.equal(left[0].error, 'a b');
	assert.match(left[2].error, /ECONNREFUSED/);
});

test('a job that may take months is not touched all the time', { timeout: 10000 }, async () => {
	const mail = tube();
	await jobs.put(mail, 'long', { run: 90 * 86400 });
	let touches = 0;
	const worker = jobs.work(mail, async (job) => {
		job.touch = async () => void touches++;
		await new Promise((resolve) => setTimeout(resolve, 50));
		setImmediate(() => worker.stop());
	});
	await worker.done;
	assert.equal(touches, 0);
});

test('a loop that is stopped while its body runs finishes the job', { timeout: 10000 }, async () => {
	const mail = tube();
	const stop = new AbortController();
	await jobs.put(mail, 'one');
	await jobs.put(mail, 'two');
	const client = await Jobs.connect(SERVER);
	const done = [];
	for await (const job of client.reserve(mail, { signal: stop.signal })) {
		done.push(job.text);
		stop.abort();
		await client.stats();
	}
	for await (const job of client.reserve(mail)) {
		done.push(job.text);
		await client.close();
	}
	assert.deepEqual(done, ['one', 'two']);
	assert.deepEqual(await all(jobs.list({ tube: mail })), []);
});

test('closing ends a loop that waits', { timeout: 10000 }, async () => {
	const client = await Jobs.connect(SERVER);
	const loops = [all(client.reserve(tube())), all(client.reserve(tube()))];
	while ((await jobs.stats())['current-waiting'] < 2);
	await client.close();
	assert.deepEqual(await Promise.all(loops), [[], []]);
});

test('an answer that has no size', { timeout: 10000 }, async (t) => {
	const { address } = await played(t, () => 'OK MPD 0.23.5');
	const client = await Jobs.connect(address);
	await assert.rejects(client.tubes(), (error) => error instanceof ConnectionError && /not a server of jobs/.test(error.message));
	await client.close();
});
