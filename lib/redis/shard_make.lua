-- Make a shard unless it is there: ARGV[1] the store's identity, then its slice, the shard's number, and how many shards there are.
-- Replies the identity of the one that is there.
local m = KEYS[1] .. ':m'
if redis.call('EXISTS', m) == 0 then
	redis.call('HSET', m, 'store', ARGV[1], 'slice', ARGV[2], 'shard', ARGV[3], 'shards', ARGV[4], 'alarm', '9007199254740991', 'seq', 0)
end
return redis.call('HGET', m, 'store')
