// A site's sessions by node-redis, in RESP2 and RESP3.
'use strict'

const { createClient, createClientPool, WatchError } = require('redis')
const { port, restart, advance, is, tell } = require('./story')

async function open(RESP) {
	const client = createClient({ RESP, socket: { port, reconnectStrategy: () => 20 } })
	client.on('error', () => {})
	return client.connect()
}

async function story(RESP) {
	const client = await open(RESP)
	const listener = await open(RESP)
	let hear
	const heard = new Promise(resolve => { hear = resolve })
	await listener.subscribe('__keyevent@0__:expired', (key, channel) => hear([channel, key]))

	// Log in, touch, change.
	const expiration = { type: 'EX', value: 1800 }
	is(await client.set('sess:1', 'cart', { expiration, condition: 'NX' }), 'OK')
	is(await client.set('sess:1', 'other', { expiration, condition: 'NX' }), null)
	await advance(1000)
	is(await client.ttl('sess:1'), 800)
	is(await client.expire('sess:1', 1800, 'GT'), 1)
	is(await client.getEx('sess:1', { type: 'PX', value: 1700000 }), 'cart')
	is(await client.set('sess:1', 'cart, book', { expiration: 'KEEPTTL', GET: true }), 'cart')
	is(await Promise.all([client.pTTL('sess:1'), client.get('sess:1')]), [1700000, 'cart, book'])
	is(await client.multi().incr('n').incr('n').expire('n', 50).exec(), [1, 2, 1])
	const pool = await createClientPool({ RESP, socket: { port } }).connect()
	is(await pool.execute(async one => {
		await one.watch('n')
		await client.set('n', '7')
		return one.multi().get('n').exec().catch(error => error instanceof WatchError)
	}), true)
	await pool.close()
	is(await client.mSet({ a: '1', b: '2' }), 'OK')
	is(await client.mGet(['a', 'b', 'c']), ['1', '2', null])
	const found = []
	for await (const keys of client.scanIterator({ MATCH: '[ab]', COUNT: 1 })) found.push(...keys)
	is(found.sort(), ['a', 'b'])

	// The server starts again, and clients come back by themselves, with their subscriptions.
	await restart()
	is(await client.get('sess:1'), 'cart, book')
	while ((await client.pubSubNumSub(['__keyevent@0__:expired']))['__keyevent@0__:expired'] < 1);

	// It ends, which a channel tells.
	is(await client.configSet('notify-keyspace-events', 'Ex'), 'OK')
	is(await client.expire('sess:1', 1800), 1)
	await advance(1799)
	is(await client.exists('sess:1'), 1)
	await advance(1)
	is(await client.get('sess:1'), null)
	is(await heard, ['__keyevent@0__:expired', 'sess:1'])

	is(await client.hGet('a', 'b').catch(error => error.message.includes('HGET')), true)
	is(await client.flushAll(), 'OK')
	is(await client.dbSize(), 0)
	await Promise.all([client.close(), listener.close()])
}

tell(async () => {
	await story(2)
	await story(3)
})
