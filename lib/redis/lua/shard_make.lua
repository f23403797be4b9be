-- Make a shard unless it is there: ARGV[1] the store's identity, then its slice, the shard's number, how many shards there are, and 1
-- if it is not to be made: -11 then. Replies the identity of the one that is there, and 1 if it was made.
local m = KEYS[1] .. ':m'
local made = redis.call('EXISTS', m) == 0
if made and ARGV[5] == '1' then return -11 end
if made then
	redis.call('HSET', m, 'store', ARGV[1], 'slice', ARGV[2], 'shard', ARGV[3], 'shards', ARGV[4], 'alarm', '9007199254740991', 'seq', 0)
end
return {redis.call('HGET', m, 'store'), made and 1 or 0}
