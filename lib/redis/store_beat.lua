-- A worker tells that it lives: ARGV[1] its name, ARGV[2] for how many us that holds, 0: it goes. Replies the identity of the store, the time now, and the
-- names of those that live.
local key = KEYS[1] .. ':workers'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if ARGV[2] == '0' then
	redis.call('ZREM', key, ARGV[1])
else
	redis.call('ZADD', key, now + ARGV[2], ARGV[1])
end
redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
local reply = redis.call('ZRANGE', key, 0, -1)
table.insert(reply, 1, now)
table.insert(reply, 1, redis.call('HGET', KEYS[1] .. ':store', 'id') or '')
return reply
