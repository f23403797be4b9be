-- The first job of each tube in a state. ARGV[3]: 'ready' or 'buried', ARGV[4...]: the tubes.
-- Replies order (the priority, or the order of burial) and id of each, or -1 and ''.
-- require part_shard
local replies = {}
for t = 4, #ARGV do
	local pause = ARGV[3] == 'ready' and head[6] and redis.call('HGET', tag .. ':p', ARGV[t])
	local set = tag .. (ARGV[3] == 'buried' and ':b:' or ':r:') .. ARGV[t]
	local first = pause and {} or redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
	local id = first[1] or ''
	if ARGV[3] ~= 'buried' then id = string.sub(id, 2) end
	replies[#replies + 1], replies[#replies + 2] = first[2] and tonumber(first[2]) or -1, id
end
return replies
