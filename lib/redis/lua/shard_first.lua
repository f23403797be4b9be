-- require part_shard
-- The first job of each tube ARGV[4...] in a state: ARGV[3] is 'ready' or 'buried'. Replies order (priority, order of burying) and id of each, or -1 and
-- nothing.
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
