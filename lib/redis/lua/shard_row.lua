-- The groups of tubes whose turn is next. ARGV[3]: how many jobs are wanted, ARGV[4...]: the tubes.
-- Replies for each tube groups in the order of the row, and how many jobs of each are ready, at most the number wanted.
-- require part_shard
local most, replies = tonumber(ARGV[3]), {}
for t = 4, #ARGV do
	local tube, of = ARGV[t], {}
	local groups = head[10] and redis.call('ZRANGE', tag .. ':o:' .. tube, 0, most - 1) or {}
	if not groups[1] then groups = {''} end
	if head[6] and redis.call('HGET', tag .. ':p', tube) then groups = {} end
	for i, group in ipairs(groups) do
		of[2 * i - 1], of[2 * i] = group, math.min(most, redis.call('ZCARD', ready_set(tube, group)))
	end
	replies[#replies + 1] = of
end
return replies
