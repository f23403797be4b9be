// What the stories for Node.js share: the port, and words to test_sessiond_clients.py, which runs the server.
'use strict'

const assert = require('assert')
const lines = require('readline').createInterface({ input: process.stdin })[Symbol.asyncIterator]()

// The test does what a line asks for, and answers with a line.
async function ask(line) {
	console.log(line)
	assert.strictEqual((await lines.next()).value, 'done')
}

exports.port = Number(process.argv[2])
exports.restart = () => ask('restart')
exports.advance = seconds => ask(`advance ${seconds}`)
exports.is = assert.deepStrictEqual
exports.once = (emitter, event) => new Promise(resolve => emitter.once(event, resolve))

// A program whose story waits for nothing that can come ends with status 0 too. So the last word counts.
exports.tell = story => story().then(() => 'told', error => error.stack).then(word => {
	console.log(word)
	process.exit()
})
