-- require part_shard
-- How many jobs of the tube ARGV[3] are buried, and when the first ARGV[4] of them were.
local set = tag .. ':b:' .. ARGV[3]
local found = redis.call('ZRANGE', set, 0, tonumber(ARGV[4]) - 1, 'WITHSCORES')
local replies = {redis.call('ZCARD', set)}
for i = 2, #found, 2 do replies[#replies + 1] = tonumber(found[i]) end
return replies
