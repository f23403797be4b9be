-- The first buried jobs of a tube. ARGV[3]: the tube, ARGV[4]: how many.
-- Replies how many are buried, then the order (the moment) of burial of the first ones.
-- require part_shard
local set = tag .. ':b:' .. ARGV[3]
local found = redis.call('ZRANGE', set, 0, tonumber(ARGV[4]) - 1, 'WITHSCORES')
local replies = {redis.call('ZCARD', set)}
for i = 2, #found, 2 do replies[#replies + 1] = tonumber(found[i]) end
return replies
