-- A worker's heartbeat. ARGV[1]: its name, ARGV[2]: for how many us it counts as alive; 0: it goes.
-- Replies the store's identity, the time now, and the name of each worker alive with the time until which it counts as
-- such. If a worker came or went, all workers are notified.
local key = KEYS[1] .. ':workers'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local changes = redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
-- Left from before Redis's clock was set back: no heartbeat holds for longer than an hour.
changes = changes + redis.call('ZREMRANGEBYSCORE', key, now + 3600000000 + 1, '+inf')
if ARGV[2] == '0' then
	changes = changes + redis.call('ZREM', key, ARGV[1])
else
	changes = changes + redis.call('ZADD', key, now + ARGV[2], ARGV[1])
end
if changes > 0 then redis.call('PUBLISH', string.match(KEYS[1], '^{(.*)}$') .. ':wake', 'w ' .. ARGV[1]) end
local reply = {redis.call('HGET', KEYS[1] .. ':store', 'id') or '', now}
for _, word in ipairs(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')) do reply[#reply + 1] = word end
return reply
