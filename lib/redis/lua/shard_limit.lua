-- Limits of tubes, of which every shard knows that there is one, and the tube's home has what it counts.
-- ARGV[3]: 'set', ARGV[4]: the tube, ARGV[5...8]: running, starts, per in us and burst, ARGV[9]: 1 at its home.
-- Replies the jobs of the tube that are reserved here, each its id and the end of its lease: they run already.
-- ARGV[3]: 'list', ARGV[4]: a tube, if only that one is wanted. Replies for each limit whose home is here: the tube, these
-- four, the jobs that run, whether nothing may start, and in how many us the rate lets the next one start.
-- require part_shard
-- require part_permit
local function running_of(tube)
	local found = {}
	if not redis.call('HGET', tag .. ':c', 'r' .. tube) then return found end
	local leases = redis.call('ZRANGE', tag .. ':f', 0, -1, 'WITHSCORES')
	for i = 1, #leases, 2 do
		local job = read(redis.call('HGET', tag .. ':j', leases[i]))
		if job and job[TUBE] == tube then found[#found + 1], found[#found + 2] = leases[i], leases[i + 1] end
	end
	return found
end

if ARGV[3] == 'set' then
	local tube = ARGV[4]
	if ARGV[5] == '0' and ARGV[6] == '0' then
		redis.call('HDEL', tag .. ':l', tube)
		redis.call('DEL', tag .. ':q:' .. tube)
		redis.call('HDEL', tag .. ':g', tube)
	else
		local had = limit_of(tube)
		redis.call('HSET', tag .. ':l', tube, table.concat(ARGV, ' ', 5, 9))
		if had and had.home and had.interval then use_up(tube, limit_of(tube)) end
	end
	if redis.call('EXISTS', tag .. ':l') == 1 then
		redis.call('HSET', tag .. ':m', 'limited', 1)
	else
		redis.call('HDEL', tag .. ':m', 'limited')
	end
	if ARGV[9] == '1' then let(tube) end
	return running_of(tube)
end
local replies = {}
local function show(tube)
	local limit = limit_of(tube)
	if not limit or not limit.home then return end
	local held, left = state_of(tube, limit)
	replies[#replies + 1] = {
		tube, limit.running, limit.starts, limit.per, limit.burst, redis.call('ZCARD', tag .. ':q:' .. tube), held,
		string.format('%.0f', math.ceil(left)),
	}
end
if ARGV[4] then
	show(ARGV[4])
else
	for _, tube in ipairs(redis.call('HKEYS', tag .. ':l')) do show(tube) end
end
return replies
