-- The first job of each tube in a state. ARGV[3]: 'ready', 'next' (ready too, but limits do not count) or 'buried', ARGV[4...]: the tubes.
-- Replies order (the priority, or the order of burial) and id of each, or -1 and ''. The priority has GROUPED added in a tube
-- with groups, of which the first is the one whose turn it is.
-- require part_shard
local replies = {}
for t = 4, #ARGV do
	local pause = ARGV[3] ~= 'buried' and head[6] and redis.call('HGET', tag .. ':p', ARGV[t])
	local id, order = '', -1
	if ARGV[3] == 'buried' then
		local first = redis.call('ZRANGE', tag .. ':b:' .. ARGV[t], 0, 0, 'WITHSCORES')
		id, order = first[1] or id, tonumber(first[2] or order)
	elseif not pause then
		local member, priority = first_of(ARGV[t], ARGV[3] == 'next')
		if member then id, order = string.sub(member, 2), priority end
	end
	replies[#replies + 1], replies[#replies + 2] = order, id
end
return replies
