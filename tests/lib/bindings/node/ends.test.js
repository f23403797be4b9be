// Tests how the client of jobs ends: close and stop at each moment, exceptions, contexts, threads, and the process. SERVER is a
// weekwheeld with a virtual clock.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { execFile } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { Worker as Thread } from 'node:worker_threads';
import { Jobs } from 'weekwheel';

const { SERVER } = process.env;
const PATIENCE = 60000;
let jobs;
let number = 0;
const tube = () => `end${++number}`;
const states = async (name) => {
	const found = [];
	for await (const { state } of jobs.list({ tube: name }))
		found.push(state);
	return found;
};

/** Wait until it is so. */
async function until(is) {
	while (!await is())
		await new Promise((resolve) => setTimeout(resolve, 5));
}

/** A program, as a user writes one. What it prints, and how it ends. */
async function program(text) {
	const whole = `import { Jobs } from 'weekwheel';\nconst jobs = await Jobs.connect(${JSON.stringify(SERVER)});\n${text}`;
	const run = promisify(execFile)(process.execPath, ['--preserve-symlinks', '--input-type=module', '-e', whole], { timeout: PATIENCE });
	return run.then((said) => ({ code: 0, ...said }), ({ code, stdout, stderr }) => ({ code, stdout, stderr }));
}

before(async () => {
	jobs = await Jobs.connect(SERVER);
});
after(() => jobs.close());

test('defaults are those of the other clients', async () => {
	const name = tube();
	for (const { id } of [await jobs.put(name, 'x'), await jobs.put(name, 'x', { key: 'k' })]) {
		const { pri, ttr, delay } = await jobs.stat(name, id);
		assert.deepEqual({ pri, ttr, delay }, { pri: 1024, ttr: 60, delay: 0 });
	}
});

test('a close or a stop in the run of a job waits for nothing, and the job is finished', async () => {
	for (const end of [(client) => client.close(), (client, worker) => worker.stop(), (client) => Promise.all([client.close(), client.close()])]) {
		const name = tube();
		await jobs.put(name, 'x');
		const client = await Jobs.connect(SERVER);
		const other = client.work(tube(), () => {});
		const worker = client.work(name, async () => {
			await end(client, worker);
		}, { concurrency: 2 });
		await worker.done;
		assert.deepEqual(await states(name), []);
		await client.close();
		await other.done;
	}
});

test('an end that the function does not wait for is the job\'s end', async () => {
	for (const [end, state] of [[(job) => job.finish(), []], [(job) => job.bury({ error: 'x' }), ['buried']], [(job) => job.release({ delay: 60 }), ['delayed']]]) {
		const name = tube();
		await jobs.put(name, 'x');
		const failed = [];
		const worker = jobs.work(name, (job) => void (end(job), worker.stop()), { onError: (error) => failed.push(error) });
		await worker.done;
		assert.deepEqual([failed, await states(name)], [[], state]);
		await jobs.put(name, 'y', { priority: 1 });
		for await (const job of jobs.reserve(name, { timeout: 0 }))
			end(job);
		assert.deepEqual(await states(name), [...state, ...state]);
	}
});

test('a stop in the run of another client\'s job waits, and both may be in each other\'s', async () => {
	const [outer, inner] = [tube(), tube()];
	await jobs.put(outer, 'x');
	await jobs.put(inner, 'x');
	const [one, two] = [await Jobs.connect(SERVER), await Jobs.connect(SERVER)];
	const said = [];
	const worker = one.work(outer, async () => {
		const runs = new Promise((resolve) => {
			two.work(inner, async () => {
				resolve();
				await worker.stop();
				await new Promise(setImmediate);
				said.push('inner');
			});
		});
		await runs;
		await two.close();
		said.push('outer');
	});
	await worker.done;
	assert.deepEqual(said, ['inner', 'outer']);
	await one.close();
});

test('a worker that is refused while it stops says so', async () => {
	const server = createServer((socket) => {
		const stats = '---\nttr: 60\nreserves: 1\n';
		const answers = { watch: 'WATCHING 2', ignore: 'WATCHING 1', 'reserve-with-timeout': 'RESERVED 1 1\r\nx', 'stats-job': `OK ${stats.length}\r\n${stats}` };
		socket.on('data', (lines) => {
			for (const line of lines.toString().trim().split('\r\n'))
				socket.write(`${answers[line.split(' ')[0]] ?? 'UNKNOWN_COMMAND'}\r\n`);
		});
	});
	await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
	const client = await Jobs.connect(`127.0.0.1:${server.address().port}`);
	const told = [];
	const worker = client.work('x', () => void worker.stop(), { onError: (error, job) => told.push(job?.id) });
	await assert.rejects(worker.done, /UNKNOWN_COMMAND/);
	await new Promise(setImmediate);
	assert.deepEqual(told, [1, undefined]);
	await client.close();
	server.close();
});

test('elsewhere it waits for the job', async () => {
	const name = tube();
	await jobs.put(name, 'x');
	const client = await Jobs.connect(SERVER);
	let go;
	let has = false;
	let later;
	client.work(name, () => new Promise((resolve) => {
		has = true;
		// What the job has begun and left behind is not in its run any more.
		later = new Promise((end) => setTimeout(() => end(client.close()), 20));
		go = resolve;
	}));
	await until(() => has);
	let closed = false;
	const closing = client.close().then(() => (closed = true));
	await new Promise(setImmediate);
	assert.equal(closed, false);
	go();
	await closing;
	await later;
	assert.deepEqual(await states(name), []);
	await client.close();
	await assert.rejects(client.tubes(), { code: 'CLOSED' });
	await assert.rejects(client.work(name, () => {}, { onError() {} }).done, { code: 'CLOSED' });
});

test('what onError throws is uncaught, and the job and the worker go on', async () => {
	const name = tube();
	await jobs.put(name, 'bad', { attempts: 1 });
	await jobs.put(name, 'good');
	const { code, stdout, stderr } = await program(`
		process.on('uncaughtException', (error) => console.log('uncaught', error.message));
		const worker = jobs.work('${name}', async (job) => {
			if (job.text === 'bad')
				throw new Error('a bad job');
			await jobs.close();
		}, { onError(error) { throw new Error('after ' + error.message); } });
		await worker.done;`);
	assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: 'uncaught after a bad job\n', stderr: '' });
	assert.deepEqual(await states(name), ['buried']);
});

test('without onError errors are told, also that which ends a worker', async () => {
	const name = tube();
	await jobs.put(name, 'x', { attempts: 1 });
	const { code, stderr } = await program(`
		jobs.work('${name}', async (job) => {
			setImmediate(() => jobs.close());
			throw new Error('a bad job');
		});`);
	assert.equal(code, 0);
	assert.match(stderr, /weekwheel: job \d+ of end\d+: Error: a bad job/);
	const ended = await program(`
		await jobs.close();
		jobs.work('x', () => {});`);
	assert.match(ended.stderr, /weekwheel: a worker: .*closed/);
});

test('of jobs that run at once one tells that the server is away', async () => {
	let isAway = false;
	const relay = createServer((near) => {
		if (isAway)
			return near.destroy();
		const far = connect(SERVER.split(':')[1], '127.0.0.1');
		near.pipe(far).pipe(near);
	});
	await new Promise((resolve) => relay.listen(0, '127.0.0.1', resolve));
	const client = await Jobs.connect(`127.0.0.1:${relay.address().port}`);
	isAway = true;
	const began = performance.now();
	let told = 0;
	const worker = client.work(tube(), () => {}, { concurrency: 20, onError: () => ++told === 4 && worker.stop() });
	await worker.done;
	// Three pauses are behind it.
	assert.ok(performance.now() - began >= 300, `${told} failures in ${performance.now() - began} ms`);
	await client.close();
	relay.close();
});

test('a job has the context of the call of work', async () => {
	const storage = new AsyncLocalStorage();
	const name = tube();
	await jobs.put(name, 'x');
	const seen = [];
	const worker = storage.run('site', () => jobs.work(name, async () => {
		seen.push(storage.getStore());
		await jobs.tubes();
		seen.push(storage.getStore());
		await worker.stop();
	}));
	await storage.run('other', () => worker.done);
	assert.deepEqual(seen, ['site', 'site']);
});

test('a process ends by itself when all is closed, and a busy one can be ended', async () => {
	const name = tube();
	await jobs.put(name, 'x', { run: 600 });
	assert.equal((await program('await jobs.close();')).code, 0);
	assert.equal((await program('jobs.close(); jobs.close();')).code, 0);
	const worker = await program(`jobs.work('${name}', () => { process.exitCode = 3; setTimeout(() => process.exit(), 5); return new Promise(() => {}); });`);
	assert.equal(worker.code, 3);
	await until(async () => (await states(name))[0] === 'ready');
});

test('a thread has clients of its own, and its jobs come back when it is ended', async () => {
	const name = tube();
	await jobs.put(name, 'x');
	const thread = new Thread(`
		const { parentPort } = require('node:worker_threads');
		import('weekwheel').then(async ({ Jobs }) => {
			const jobs = await Jobs.connect(${JSON.stringify(SERVER)});
			jobs.work('${name}', () => { parentPort.postMessage('has it'); return new Promise(() => {}); });
		});`, { eval: true });
	await new Promise((resolve, reject) => thread.once('message', resolve).once('error', reject));
	assert.deepEqual(await states(name), ['reserved']);
	await thread.terminate();
	await until(async () => (await states(name))[0] === 'ready');
});
