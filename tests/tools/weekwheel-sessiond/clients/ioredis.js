// A site's sessions by ioredis.
'use strict'

const Redis = require('ioredis')
const { port, restart, advance, is, once, tell } = require('./story')

// While the server starts again, a client hears that it is not there.
const open = options => new Redis({ port, retryStrategy: () => 20, ...options }).on('error', () => {})

tell(async () => {
	const client = open()
	const listener = open()
	const told = []
	await listener.psubscribe('__expired@*')
	await listener.subscribe('__keyevent@0__:expired')
	listener.on('message', (channel, key) => told.push([channel, key]))
	listener.on('pmessage', (pattern, channel, message) => told.push([channel, message]))

	// Log in, touch, change.
	is(await client.set('sess:1', 'cart', 'EX', 1800, 'NX'), 'OK')
	is(await client.set('sess:1', 'other', 'EX', 1800, 'NX'), null)
	await advance(1000)
	is(await client.ttl('sess:1'), 800)
	is(await client.expire('sess:1', 1800), 1)
	is(await client.getex('sess:1', 'EX', 1700), 'cart')
	is(await client.set('sess:1', 'cart, book', 'KEEPTTL'), 'OK')
	is(await client.pipeline().ttl('sess:1').getBuffer('sess:1').exec(), [[null, 1700], [null, Buffer.from('cart, book')]])
	is(await client.multi().incr('n').incr('n').expire('n', 50).exec(), [[null, 1], [null, 2], [null, 1]])
	await client.watch('n')
	const other = open({ keyPrefix: 'app:' })
	await client.set('n', 7)
	is(await client.multi().get('n').exec(), null)
	is(await other.mset({ a: '1', b: '2' }), 'OK')
	is(await other.mget('a', 'b', 'c'), ['1', '2', null])
	const found = []
	for await (const keys of client.scanStream({ match: 'app:*', count: 1 })) found.push(...keys)
	is(found.sort(), ['app:a', 'app:b'])

	// The server starts again, and clients come back by themselves, with their subscriptions.
	const ready = Promise.all([once(client, 'ready'), once(listener, 'ready'), once(other, 'ready')])
	await restart()
	is(await client.get('sess:1'), 'cart, book')
	await ready
	while ((await client.pubsub('NUMPAT')) + (await client.pubsub('NUMSUB', '__keyevent@0__:expired'))[1] < 2);

	// It ends, which two channels tell.
	await client.config('SET', 'notify-keyspace-events', 'Ex')
	is(await client.expire('sess:1', 1800), 1)
	await advance(1799)
	is(await client.exists('sess:1'), 1)
	await advance(1)
	is(await client.get('sess:1'), null)
	while (told.length < 2) await once(listener, 'message')
	is(told.filter(([channel]) => channel === '__keyevent@0__:expired'), [['__keyevent@0__:expired', 'sess:1']])
	is(told.some(([channel, message]) => channel.startsWith('__expired@') && message.includes('cart, book')), true)

	is(await client.call('HGET', 'a', 'b').catch(error => error.message.includes('HGET')), true)
	is(await client.flushdb(), 'OK')
	is(await client.dbsize(), 0)
	is(await client.quit(), 'OK')
})
