// A site of Node.js whose sessions express-session keeps by connect-redis.
'use strict'

const http = require('http')
const session = require('express-session')
const { RedisStore } = require('connect-redis')
const { createClient } = require('redis')
const { port, restart, advance, is, tell } = require('./story')

// What the site answers: how often this user has come, or that nobody is logged in.
function page(request, response) {
	if (request.url === '/login') request.session.views = 0
	if (request.url === '/logout') return request.session.destroy(() => response.end('bye'))
	if (request.url === '/login' || request.url === '/count') request.session.views++
	response.end(request.session.views ? `${request.session.views}` : 'log in')
}

tell(async () => {
	const client = createClient({ socket: { port, reconnectStrategy: () => 20 } })
	client.on('error', () => {})
	await client.connect()
	const store = new RedisStore({ client, ttl: 1800 })
	const keep = session({ store, secret: 'a secret', resave: false, saveUninitialized: false })
	const site = http.createServer((request, response) => keep(request, response, () => page(request, response)))
	await new Promise(resolve => site.listen(0, '127.0.0.1', resolve))
	let cookie
	async function get(path) {
		const response = await fetch(`http://127.0.0.1:${site.address().port}${path}`, { headers: cookie ? { cookie } : {} })
		cookie = response.headers.get('set-cookie')?.split(';')[0] || cookie
		return response.text()
	}
	const ttl = async () => client.ttl((await client.keys('sess:*'))[0])

	is(await get('/'), 'log in')
	is(await store.length(), 0)
	is(await get('/login'), '1')
	is(await ttl(), 1800)
	await advance(1000)
	is(await ttl(), 800)
	is(await get('/'), '1')
	is(await ttl(), 1800)
	await advance(1000)
	is(await get('/count'), '2')
	is((await store.all()).map(({ views }) => views), [2])
	await restart()
	is(await get('/count'), '3')
	await advance(1799)
	is(await get('/'), '3')
	await advance(1800)
	is(await get('/'), 'log in')
	is(await get('/login'), '1')
	is(await store.ids(), [decodeURIComponent(cookie).match(/s:([^.]*)/)[1]])
	is(await get('/logout'), 'bye')
	is(await get('/'), 'log in')
	is(await get('/login'), '1')
	await store.clear()
	is(await store.length(), 0)
	await client.close()
})
