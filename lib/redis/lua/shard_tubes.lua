-- Statistics of the tube ARGV[3], or of all tubes.
-- Replies the shard's counters, then for each tube: name, jobs in all, ready, urgent, reserved, buried, pause, time
-- left of the pause, how long its first ready job has been due, and whether it has a limit. stats.c has the same lists.
-- require part_shard
local m = redis.call('HMGET', tag .. ':m', 'seq', 'ended', 'timeouts', 'late', 'late0', 'late1', 'late2', 'late3',
	'late4', 'late5', 'late6')
local replies = {{}}
for i = 1, 11 do replies[1][i] = m[i] or '0' end
replies[1][12] = redis.call('ZCARD', tag .. ':e')

local function add(tube, all)
	local ready = tag .. ':r:' .. tube
	local first, age = redis.call('ZRANGE', ready, 0, 0)[1], 0
	local job = first and read(redis.call('HGET', tag .. ':j', string.sub(first, 2)))
	if job then age = now - job[DUE] end
	local over, span = string.match(redis.call('HGET', tag .. ':p', tube) or '', '^(%d+) (%d+)$')
	replies[#replies + 1] = {
		tube, all, redis.call('ZCARD', ready), redis.call('ZCOUNT', ready, '-inf', '(1024'),
		redis.call('HGET', tag .. ':c', 'r' .. tube) or '0', redis.call('ZCARD', tag .. ':b:' .. tube),
		span or '0', over and string.format('%.0f', over - now) or '0', string.format('%.0f', age),
		head[9] and redis.call('HEXISTS', tag .. ':l', tube) or 0,
	}
end

if ARGV[3] then
	add(ARGV[3], redis.call('HGET', tag .. ':c', 't' .. ARGV[3]) or '0')
else
	local counts = redis.call('HGETALL', tag .. ':c')
	for i = 1, #counts, 2 do
		if string.sub(counts[i], 1, 1) == 't' then add(string.sub(counts[i], 2), counts[i + 1]) end
	end
end
return replies
