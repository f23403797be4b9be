-- Limits of tubes and of their groups. Every shard knows which tubes have one; the tube's home has what it counts.
-- ARGV[4]: the tube, ARGV[5]: 'tube', 'each' or 'group', ARGV[6]: the group, for
-- ARGV[3]: 'set', at home, ARGV[7...10]: running, starts, per in us and burst. Replies the tube's limit as 'tell' takes it.
-- ARGV[3]: 'show', at home. Replies none or one, as 'list' does.
-- ARGV[4]: the tube, for
-- ARGV[3]: 'tell', ARGV[5]: its limit, which is empty if there is none. Replies 0.
-- ARGV[3]: 'let', ARGV[5...]: groups, or some of those that are held. They stand in the row again. Replies how many were held.
-- ARGV[3]: 'drop', at home, ARGV[5]: where to begin. Forgets some groups without a limit. Replies where to go on, or -1.
-- ARGV[3]: 'running', ARGV[5]: an end of a lease, ARGV[6]: how many. Replies the next end, or -1 if those were all, then id,
-- end and group of the tube's jobs among those leases that end from then on.
-- ARGV[3]: 'ready', ARGV[5]: a group. Replies how many of its jobs are ready.
-- ARGV[3]: 'list', ARGV[4]: the cursor. Replies the next one, then for some limits whose home is here: the tube, whose it is,
-- the group, the four numbers, the jobs that run, or -1 if only the shards know, whether nothing may start, and in how many us the rate lets one start.
-- require part_shard
-- require part_permit
local what, tube = ARGV[3], ARGV[4]
local limits = tag .. ':l'

local function has_limits()
	if redis.call('EXISTS', limits, tag .. ':v') > 0 then
		redis.call('HSET', tag .. ':m', 'limited', 1)
	else
		redis.call('HDEL', tag .. ':m', 'limited')
	end
end

-- Without a number nothing is counted, but the tube may have limits of groups.
local function write(name, limit, home)
	redis.call('HSET', limits, name, string.format('%.0f %.0f %.0f %.0f %d %.0f %.0f %.0f', limit.running, limit.starts,
		limit.per, limit.burst, home, limit.groups, limit.version or redis.call('HINCRBY', tag .. ':m', 'limits', 1), limit.used))
end

local NONE = {running = 0, starts = 0, per = 1000000, burst = 1, groups = 0, used = 0}

-- A rate that is changed begins with its burst used up: nobody gets more by changing it.
local function set(whose)
	local group = whose == 'group' and ARGV[6] or whose == 'each' and '' or nil
	local name = name_of(tube, group)
	local of, had = limit_of(tube) or NONE, limit_of(name)
	local new = {
		running = tonumber(ARGV[7]), starts = tonumber(ARGV[8]), per = tonumber(ARGV[9]), burst = tonumber(ARGV[10]),
		groups = of.groups, used = had and had.interval and now or 0,
	}
	local is_set = new.running + new.starts > 0
	if group then
		-- The tube comes first: a list begins with it.
		of.groups = of.groups + (is_set and 1 or 0) - (had and 1 or 0)
		write(tube, of, 1)
		if is_set then write(name, new, 1) else redis.call('HDEL', limits, name) end
		local gate = group ~= '' and not is_set and gate_of(tube, group)
		if gate and gate.interval and had and had.interval then
			set_pace(gate, now + gate.burst * gate.interval)
			note(gate)
		elseif group ~= '' and not is_set and not gate then
			drop(tube, group)
		end
	else
		write(tube, new, 1)
		if not is_set then drop(tube) end
		-- Whatever a mere rate has left there ends without a word.
		if had and had.running == 0 then redis.call('DEL', tag .. ':q:' .. tube) end
	end
	of = limit_of(tube)
	if of.running + of.starts + of.groups == 0 then redis.call('HDEL', limits, tube) end
	has_limits()
	let(tube)
	return redis.call('HGET', limits, tube) or ''
end

-- Of a group without a limit nothing is counted.
local function drop_some(from)
	local found = redis.call('ZRANGE', tag .. ':i:' .. tube, from, from + 255)
	for _, group in ipairs(found) do
		if gate_of(tube, group) then from = from + 1 else drop(tube, group) end
	end
	return #found == 256 and from or -1
end

local function running(from, most)
	local leases = redis.call('ZRANGE', tag .. ':f', from, '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
	local reply = {#leases == 2 * most and leases[#leases] or '-1'}
	for i = 1, #leases, 2 do
		local job = read(redis.call('HGET', tag .. ':j', leases[i]))
		if job and job[TUBE] == tube then
			local n = #reply
			reply[n + 1], reply[n + 2], reply[n + 3] = leases[i], leases[i + 1], job[GROUP] or ''
		end
	end
	return reply
end

local function show(replies, of, whose, group)
	local limit = limit_of(name_of(of, whose == 'group' and group or whose == 'each' and '' or nil))
	if not limit or limit.running + limit.starts == 0 then return end
	local gate = whose ~= 'each' and gate_of(of, whose == 'group' and group or nil)
	local held, left = 0, 0
	if gate then held, left = state_of(gate) end
	local running = gate and redis.call('ZCARD', gate.set) or 0
	if whose == 'tube' and limit.running == 0 then running = -1 end
	replies[#replies + 1] = {
		of, whose, group, limit.running, limit.starts, limit.per, limit.burst, running, held,
		string.format('%.0f', math.ceil(left)),
	}
end

local function list()
	local page = redis.call('HSCAN', limits, tube, 'COUNT', 64)
	local replies = {page[1]}
	for i = 1, #page[2], 2 do
		local at = string.find(page[2][i], '\0', 1, true)
		local of, group = string.sub(page[2][i], 1, (at or 0) - 1), at and string.sub(page[2][i], at + 1) or ''
		local home = limit_of(of)
		if home and home.home then show(replies, of, not at and 'tube' or group == '' and 'each' or 'group', group) end
	end
	return replies
end

if what == 'set' then return set(ARGV[5]) end
if what == 'drop' then return drop_some(tonumber(ARGV[5])) end
if what == 'running' then return running(ARGV[5], tonumber(ARGV[6])) end
if what == 'ready' then return redis.call('ZCARD', ready_set(tube, ARGV[5])) end
if what == 'list' then return list() end
if what == 'show' then
	local replies = {}
	show(replies, tube, ARGV[5], ARGV[6])
	return replies
end
if what == 'tell' then
	local text = string.gsub(ARGV[5], '^(%d+ %d+ %d+ %d+) 1', '%1 0')
	if text == '' then redis.call('HDEL', limits, tube) else redis.call('HSET', limits, tube, text) end
	has_limits()
	return 0
end
local groups = ARGV[5] and {unpack(ARGV, 5)} or redis.call('ZRANGE', tag .. ':v:' .. tube, 0, 255)
local number = let_groups(tube, groups)
has_limits()
return number
