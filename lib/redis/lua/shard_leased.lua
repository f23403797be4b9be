-- Whether jobs are reserved. ARGV[3...]: their ids. Replies 1 or 0 for each.
-- require part_shard
local ids, replies = {unpack(ARGV, 3)}, {}
for i, text in ipairs(redis.call('HMGET', tag .. ':j', unpack(ids))) do
	local job = text and read(text)
	replies[i] = job and job[STATE] == RESERVED and 1 or 0
end
return replies
