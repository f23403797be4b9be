-- Make the key of a whole store if it is missing. ARGV: the identity, the format, the number of shards, the slice in
-- us, and 1 to make nothing and reply -11 instead.
-- Replies identity, format, shards and slice of the store that is there, the time now, and 1 if it was made, or 0.
local key = KEYS[1] .. ':store'
local made = redis.call('EXISTS', key) == 0
if made and ARGV[5] == '1' then return -11 end
if made then redis.call('HSET', key, 'id', ARGV[1], 'format', ARGV[2], 'shards', ARGV[3], 'slice', ARGV[4]) end
local reply = redis.call('HMGET', key, 'id', 'format', 'shards', 'slice')
local time = redis.call('TIME')
reply[5], reply[6] = time[1] * 1000000 + time[2], made and 1 or 0
return reply
