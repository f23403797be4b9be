-- Statistics of the tube ARGV[3], or of some tubes: ARGV[3] is empty, and ARGV[4] says about how many.
-- ARGV[5]: the cursor to go on with. Without it, a shard with more tubes than that replies none yet: Redis runs scripts of
-- all shards of a node one after the other, and meanwhile nothing else.
-- Replies the shard's counters and the cursor, empty at the end, then for each tube, perhaps twice: name, jobs in all,
-- ready, urgent, reserved, buried, pause, time left of the pause, how long its first ready job has been due, whether
-- it has a limit, and the ready jobs of groups that are held. stats.c has the same lists.
-- require part_shard
local m = redis.call('HMGET', tag .. ':m', 'seq', 'ended', 'timeouts', 'late', 'late0', 'late1', 'late2', 'late3',
	'late4', 'late5', 'late6')
local replies = {{}}
for i = 1, 11 do replies[1][i] = m[i] or '0' end
replies[1][12] = redis.call('ZCARD', tag .. ':e')
replies[1][13] = redis.call('LLEN', tag .. ':x')

local function add(tube, all)
	local ready = tag .. ':r:' .. tube
	local first, age = first_of(tube, true), 0
	local grouped = head[10] and redis.call('HMGET', tag .. ':c', 'g' .. tube, 'u' .. tube, 'h' .. tube) or {}
	local job = first and read(redis.call('HGET', tag .. ':j', string.sub(first, 2)))
	if job then age = now - job[DUE] end
	local over, span = string.match(redis.call('HGET', tag .. ':p', tube) or '', '^(%d+) (%d+)$')
	replies[#replies + 1] = {
		tube, all, redis.call('ZCARD', ready) + (grouped[1] or 0), redis.call('ZCOUNT', ready, '-inf', '(1024') + (grouped[2] or 0),
		redis.call('HGET', tag .. ':c', 'r' .. tube) or '0', redis.call('ZCARD', tag .. ':b:' .. tube),
		span or '0', over and string.format('%.0f', over - now) or '0', string.format('%.0f', age),
		head[9] and redis.call('HEXISTS', tag .. ':l', tube) or 0,
		grouped[3] or '0',
	}
end

replies[1][14] = ''

-- HSCAN ends a packed hash in one go, of 512 fields as a rule: there the cursor is the last name. Others begin with HSCAN.
local PACKED = 512
local function add_after(name, most)
	local names, counts, all = {}, {}, redis.call('HGETALL', tag .. ':c')
	for i = 1, #all, 2 do
		local tube = string.sub(all[i], 1, 1) == 't' and string.sub(all[i], 2)
		if tube and tube > name then names[#names + 1], counts[tube] = tube, all[i + 1] end
	end
	table.sort(names)
	for i = 1, math.min(most, #names) do add(names[i], counts[names[i]]) end
	if #names > most then replies[1][14] = '>' .. names[most] end
end

if ARGV[3] ~= '' then
	add(ARGV[3], redis.call('HGET', tag .. ':c', 't' .. ARGV[3]) or '0')
elseif not ARGV[5] and redis.call('HLEN', tag .. ':c') > tonumber(ARGV[4]) then
	replies[1][14] = redis.call('HLEN', tag .. ':c') > PACKED and '0' or '>'
elseif not ARGV[5] or string.sub(ARGV[5], 1, 1) == '>' then
	add_after(string.sub(ARGV[5] or '>', 2), tonumber(ARGV[4]))
else
	local found = redis.call('HSCAN', tag .. ':c', ARGV[5], 'MATCH', 't*', 'COUNT', ARGV[4])
	for i = 1, #found[2], 2 do add(string.sub(found[2][i], 2), found[2][i + 1]) end
	if found[1] ~= '0' then replies[1][14] = found[1] end
end
return replies
