-- A worker tells that it lives: ARGV[1] its name, ARGV[2] for how many us that holds, 0: it goes. Replies the identity of the store, the time now, and
-- the names of those that live, each with the time until which that holds. Who comes and goes is told to all.
local key = KEYS[1] .. ':workers'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local changes = redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
-- Of a time that was ahead, before Redis's clock was set back: no worker says that it lives for longer than an hour.
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
