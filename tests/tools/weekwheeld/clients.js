// Runs beanstalkd clients for Node.js against the server on the port of the first argument. test_clients.sh installs them.
'use strict'

const assert = require('assert')
const { promisify } = require('util')

const port = Number(process.argv[2])
const host = '127.0.0.1'
let passed = 0
let failed = 0

// The same story for each client: `is` counts what is right.
function is(got, expected, what) {
	try {
		assert.deepStrictEqual(got, expected)
		passed++
	} catch (error) {
		failed++
		console.log(`FAIL: ${what}: ${JSON.stringify(got)}, not ${JSON.stringify(expected)}`)
	}
}

const rejects = promise => promise.then(() => 'resolved', error => String(error.response || error.message || error))

async function jackd() {
	const Client = require('jackd')
	const open = async () => {
		const client = new Client()
		await client.connect({ host, port })
		return client
	}
	const a = await open()
	const b = await open()
	const body = Buffer.from('a body\r\n\0')
	const say = what => 'jackd ' + what

	is(await a.use('jackd'), 'jackd', say('use'))
	is(await b.watch('jackd'), 2, say('watch'))
	is(await b.ignore('default'), 1, say('ignore'))
	is(/NOT_IGNORED/.test(await rejects(b.ignore('jackd'))), true, say('ignore of the last'))
	const waits = b.reserve()
	const id = await a.put(body.toString(), { priority: 7, ttr: 100 })
	const job = await waits
	is([job.id, job.payload], [id, body], say('reserve'))
	await b.touch(id)
	await b.release(id, { priority: 5, delay: 1000 })
	is(/state: delayed/.test(await a.statsJob(id)), true, say('release'))
	is((await a.peekDelayed()).id, id, say('peek-delayed'))
	await a.kickJob(id)
	is((await a.peekReady()).id, id, say('kick-job'))
	is((await b.reserveWithTimeout(5)).id, id, say('reserve-with-timeout'))
	await b.bury(id, 9)
	is((await a.peekBuried()).payload, body, say('bury'))
	is(await a.kick(10), 1, say('kick'))
	is((await b.reserveJob(id)).id, id, say('reserve-job'))
	is(/current-jobs-reserved: 1/.test(await a.statsTube('jackd')), true, say('stats-tube'))
	is(/^pid: \d+$/m.test(await a.stats()), true, say('stats'))
	await b.delete(id)
	is(/NOT_FOUND/.test(await rejects(b.delete(id))), true, say('delete'))
	is(/TIMED_OUT/.test(await rejects(b.reserveWithTimeout(0))), true, say('nothing to reserve'))
	// Its pauseTube is left out: it sends no end of line.
	is(/- jackd/.test(await a.listTubes()), true, say('list-tubes'))
	is(await a.listTubeUsed(), 'jackd', say('list-tube-used'))
	is(/^- jackd$/m.test(await b.listTubesWatched()), true, say('list-tubes-watched'))
	// Many commands at once. Its reserve can be sent only once.
	const many = await Promise.all(Array.from({ length: 200 }, (_, i) => a.put(`job ${i}`)))
	is(new Set(many).size, 200, say('pipelined put'))
	for (const each of many)
		is((await b.reserve()).id, each, say('reserve of many'))
	await Promise.all(many.map(each => b.delete(each)))
	is(/current-jobs-ready: 0/.test(await a.statsTube('jackd')), true, say('pipelined delete'))
	await a.quit()
	await b.quit()
}

async function fivebeans() {
	const Client = require('fivebeans').client
	const open = () => new Promise((resolve, reject) => {
		const client = new Client(host, port)
		client.on('connect', () => resolve(client)).on('error', reject)
		client.connect()
	})
	// Several results come as a list.
	const all = (client, name) => (...words) => new Promise((resolve, reject) => {
		client[name](...words, (error, ...results) => error ? reject(error) : resolve(results))
	})
	const one = (client, name) => async (...words) => (await all(client, name)(...words))[0]
	const a = await open()
	const b = await open()
	const say = what => 'fivebeans ' + what

	is(await one(a, 'use')('five'), 'five', say('use'))
	is(await one(b, 'watch')('five'), '2', say('watch'))
	is(await one(b, 'ignore')('default'), '1', say('ignore'))
	is(await rejects(one(b, 'ignore')('five')), 'NOT_IGNORED', say('ignore of the last'))
	const waits = all(b, 'reserve')()
	const id = await one(a, 'put')(7, 0, 100, 'a body\r\n')
	const [reserved, body] = await waits
	is([reserved, body.toString()], [id, 'a body\r\n'], say('reserve'))
	await one(b, 'touch')(id)
	await one(b, 'release')(id, 5, 1000)
	const stats = await one(a, 'stats_job')(id)
	is([stats.state, stats.pri, stats.delay, stats.ttr, stats.reserves], ['delayed', 5, 1000, 100, 1], say('stats-job'))
	is(await one(a, 'peek_delayed')(), id, say('peek-delayed'))
	await one(a, 'kick_job')(id)
	is(await one(a, 'peek_ready')(), id, say('kick-job'))
	is(await one(b, 'reserve_with_timeout')(5), id, say('reserve-with-timeout'))
	await one(b, 'bury')(id, 9)
	is(await one(a, 'peek_buried')(), id, say('bury'))
	is(await one(a, 'kick')(10), '1', say('kick'))
	is(await one(b, 'reserve')(), id, say('reserve after a kick'))
	const tube = await one(a, 'stats_tube')('five')
	is([tube['current-jobs-reserved'], tube['current-using'], tube['current-watching']], [1, 1, 1], say('stats-tube'))
	is((await one(a, 'stats')())['max-job-size'], 65535, say('stats'))
	await one(b, 'destroy')(id)
	is(await rejects(one(b, 'destroy')(id)), 'NOT_FOUND', say('delete'))
	is(await rejects(one(b, 'reserve_with_timeout')(0)), 'TIMED_OUT', say('nothing to reserve'))
	await one(a, 'pause_tube')('five', 1)
	const second = await one(a, 'put')(0, 0, 60, 'paused')
	is((await one(a, 'stats_tube')('five')).pause, 1, say('pause-tube'))
	is(await one(b, 'reserve')(), second, say('the end of a pause'))
	await one(b, 'destroy')(second)
	is((await one(a, 'list_tubes')()).includes('five'), true, say('list-tubes'))
	is(await one(b, 'list_tubes_watched')(), ['five'], say('list-tubes-watched'))
	a.end()
	b.end()
}

async function nodeBeanstalk() {
	const { Client } = require('node-beanstalk')
	const open = async () => {
		const client = new Client({ host, port })
		await client.connect()
		return client
	}
	const a = await open()
	const b = await open()
	const say = what => 'node-beanstalk ' + what

	is(await a.use('node'), 'node', say('use'))
	is(await b.watch('node'), 2, say('watch'))
	is(await b.ignore('default'), true, say('ignore'))
	const put = await a.put({ number: 1 }, 100, 7)
	is(put.state, 'ready', say('put'))
	const job = await b.reserveWithTimeout(5)
	is([job.id, job.payload], [put.id, { number: 1 }], say('reserve-with-timeout'))
	is(await b.touch(put.id), true, say('touch'))
	is(await b.release(put.id, 5, 1000), 'delayed', say('release'))
	const stats = await a.statsJob(put.id)
	is([stats.state, stats.pri, stats.ttr], ['delayed', 5, 100], say('stats-job'))
	is(await a.kick(10), 1, say('kick of a delayed job'))
	is((await b.reserve()).id, put.id, say('reserve'))
	is(await b.bury(put.id, 9), true, say('bury'))
	is((await a.peekBuried()).id, put.id, say('peek-buried'))
	is(await a.kickJob(put.id), true, say('kick-job'))
	is((await b.reserveJob(put.id)).id, put.id, say('reserve-job'))
	is((await a.statsTube('node'))['current-jobs-reserved'], 1, say('stats-tube'))
	is((await a.stats())['max-job-size'], 65535, say('stats'))
	is(await b.delete(put.id), true, say('delete'))
	is(await b.delete(put.id), false, say('delete of nothing'))
	is(await b.reserveWithTimeout(0), null, say('nothing to reserve'))
	is(await a.pauseTube('node', 1), true, say('pause-tube'))
	const second = await a.put('paused')
	is((await b.reserve()).id, second.id, say('the end of a pause'))
	is(await b.delete(second.id), true, say('delete of the second'))
	is((await a.listTubes()).includes('node'), true, say('list-tubes'))
	is(await b.listTubesWatched(), ['node'], say('list-tubes-watched'))
	await a.disconnect()
	await b.disconnect()
}

async function main() {
	for (const story of [jackd, fivebeans, nodeBeanstalk]) {
		try {
			await story()
		} catch (error) {
			failed++
			console.log(`FAIL: ${story.name}: ${error.stack || error}`)
		}
	}
	console.log(`${passed} passed, ${failed} failed`)
	process.exit(failed ? 1 : 0)
}

main()
