-- Make a shard if it is missing. ARGV[1]: the store's identity, ARGV[2]: the slice in us, ARGV[3]: the shard's number,
-- ARGV[4]: how many shards there are, ARGV[5]: 1 to make nothing and reply -11 instead.
-- Replies the identity that the shard has, and 1 if it was made, or 0.
local m = KEYS[1] .. ':m'
local made = redis.call('EXISTS', m) == 0
if made and ARGV[5] == '1' then return -11 end
if made then
	redis.call('HSET', m, 'store', ARGV[1], 'slice', ARGV[2], 'shard', ARGV[3], 'shards', ARGV[4],
		'alarm', '9007199254740991', 'seq', 0)
end
return {redis.call('HGET', m, 'store'), made and 1 or 0}
