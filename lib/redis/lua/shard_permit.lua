-- Permits to start jobs of a tube with a limit, at its home. ARGV[4]: the tube. A group is '' if the job names none.
-- ARGV[3]: 'take', ARGV[5]: how many at most, ARGV[6]: for how many us at first, ARGV[7]: the shard that has the jobs, or -1,
-- ARGV[8...]: groups, and how many jobs of each are ready, if the limits of groups matter. Replies how many, or -1 if the tube
-- has no limit, the first of their consecutive numbers, or 0 if nobody has to settle them, if the tube's own limit refuses some,
-- the time at which to try again, or 0, and a list of doubts (see part_permit); then for each group how many, and if its limit
-- refuses, that time, or 0.
-- ARGV[3]: 'settle', ARGV[5...]: for each group its name, the first number, how many, how many of them were used, and of these
-- the id of the job and the end of the lease. The others are given back. To say it twice does no harm. Replies as 'free' does.
-- ARGV[3]: 'spare', ARGV[5]: how many starts of a mere rate have not taken place. Replies as 'free' does.
-- ARGV[3]: 'seed', ARGV[5...]: id, end of the lease and group of jobs that run already. Replies 0.
-- ARGV[3]: 'touch', ARGV[5]: an id, ARGV[6]: the end of its lease, ARGV[7]: its group. 'add': the same for a job that took
-- none. Replies 0.
-- ARGV[3]: 'free', or 'return' if they were no starts; ARGV[5...]: id and group of jobs whose leases have ended. Replies groups
-- that may go on, and a shard that was refused for each.
-- ARGV[3]: 'lost', ARGV[5]: the group of a gate, or '' for that of the tube, ARGV[6...]: id and end of leases that were doubted
-- and have ended. Replies as 'free' does.
-- ARGV[3]: 'next', ARGV[5]: a group that may go on, but had nothing to let go on in the shard that was told. Replies the next
-- shard that was refused, or -1.
-- require part_shard
-- require part_permit
local what, tube = ARGV[3], ARGV[4]
local whole = gate_of(tube)

-- Call fn for the gates of a job.
local function each_gate(group, fn)
	if whole then fn(whole) end
	local gate = gate_of(tube, group)
	if gate then
		fn(gate)
		note(gate)
	end
end

local function add(gate, id, ends)
	if gate.is_rate then return end
	redis.call('ZADD', gate.set, ends, id)
end

-- Somebody is refused until then.
local function wait_until(again)
	redis.call('ZADD', tag .. ':w', string.format('%d', again), tube)
	ring(again)
end

local function take(wanted)
	local most, again, ending = wanted
	local doubts = {}
	forget_groups(tube)
	if whole then most, again, ending = allow(whole, most) end
	if most == 0 then
		if ending then
			doubt(whole, doubts)
			again = math.min(again, now + HOLD)
		else
			again = opening(whole)
		end
		wait_until(again)
		return {0, 0, again, doubts}
	end
	if whole and whole.is_rate and not ARGV[8] then
		count_starts(whole, most)
		if most < wanted and is_opened(whole) then
			again = opening(whole)
			wait_until(again)
		end
		return {most, 0, again or 0, doubts}
	end
	local groups, total, reply = {}, 0, {0, 0, 0, doubts}
	local asked = ARGV[8] and {unpack(ARGV, 8)} or {'', most}
	for a = 1, #asked, 2 do
		local one = {gate = gate_of(tube, asked[a]), may = math.min(most, tonumber(asked[a + 1])), got = 0, again = 0}
		if one.gate then
			one.may, one.again, ending = allow(one.gate, one.may)
			if ending then
				redis.call('ZADD', tag .. ':y:' .. one.gate.name, now, ARGV[7])
				one.again = math.min(one.again, now + HOLD)
				doubt(one.gate, doubts)
			end
		end
		groups[#groups + 1] = one
	end
	-- One for each, then a second one.
	local before
	repeat
		before = total
		for _, one in ipairs(groups) do
			if one.got < one.may and total < most then one.got, total = one.got + 1, total + 1 end
		end
	until total == before or total == most
	local number = redis.call('HINCRBY', tag .. ':m', 'permits', total) - total
	reply[1], reply[2] = total, number + 1
	local ends = string.format('%d', now + tonumber(ARGV[6]))
	for _, one in ipairs(groups) do
		for _ = 1, one.got do
			number = number + 1
			if whole then add(whole, 'p' .. number, ends) end
			if one.gate then add(one.gate, 'p' .. number, ends) end
		end
		if one.gate then
			if one.got > 0 then count_starts(one.gate, one.got) end
			note(one.gate)
		end
		reply[#reply + 1], reply[#reply + 2] = one.got, one.may == 0 and one.again or 0
	end
	if whole and total > 0 then count_starts(whole, total) end
	return reply
end

-- The shard that was refused first, if a group may go on; or nil.
local function next_refused(gate)
	return room_of(gate) > 0 and tonumber(redis.call('ZPOPMIN', tag .. ':y:' .. gate.name)[1]) or nil
end

-- A permit of the gate is free.
local function let_one(gate, reply)
	if not gate.group then
		if redis.call('ZSCORE', tag .. ':w', tube) then let(tube) end
	else
		local refused = next_refused(gate)
		if refused then reply[#reply + 1], reply[#reply + 2] = gate.group, refused end
	end
end

local function settle()
	local a, reply = 5, {}
	while a < #ARGV do
		local first, number, used = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
		local at = a + 4
		each_gate(ARGV[a], function(gate)
			local had = 0
			for i = first, first + number - 1 do had = had + redis.call('ZREM', gate.set, 'p' .. i) end
			-- Said again, a job may have ended meanwhile.
			for i = at, at + 2 * used - 1, 2 do
				if had > 0 then add(gate, ARGV[i], ARGV[i + 1]) else redis.call('ZADD', gate.set, 'XX', ARGV[i + 1], ARGV[i]) end
			end
			if had > used then
				give_back(gate, had - used)
				for _ = used + 1, had do let_one(gate, reply) end
			end
		end)
		a = at + 2 * used
	end
	return reply
end

local function free()
	local reply = {}
	for a = 5, #ARGV, 2 do
		each_gate(ARGV[a + 1], function(gate)
			if redis.call('ZREM', gate.set, ARGV[a]) == 0 then return end
			if what == 'return' then give_back(gate, 1) end
			let_one(gate, reply)
		end)
	end
	return reply
end

-- A job that has been leased again since has another end.
local function lost()
	local gate, reply = gate_of(tube, ARGV[5] ~= '' and ARGV[5] or nil), {}
	for a = 6, gate and #ARGV or 0, 2 do
		if tonumber(redis.call('ZSCORE', gate.set, ARGV[a])) == tonumber(ARGV[a + 1]) then
			redis.call('ZREM', gate.set, ARGV[a])
			let_one(gate, reply)
		end
	end
	if gate then note(gate) end
	return reply
end

if what == 'take' then
	if not limit_of(tube) then return {-1, 0, 0, {}} end
	return take(tonumber(ARGV[5]))
elseif what == 'settle' then
	return settle()
elseif what == 'free' or what == 'return' then
	return free()
elseif what == 'lost' then
	return lost()
elseif what == 'spare' then
	if whole then
		give_back(whole, tonumber(ARGV[5]))
		let_one(whole)
	end
	return {}
elseif what == 'next' then
	local gate = gate_of(tube, ARGV[5])
	return gate and next_refused(gate) or -1
elseif what == 'seed' then
	for a = 5, #ARGV, 3 do
		each_gate(ARGV[a + 2], function(gate) add(gate, ARGV[a], ARGV[a + 1]) end)
	end
else
	each_gate(ARGV[7], function(gate)
		add(gate, ARGV[5], ARGV[6])
		if what == 'add' then count_starts(gate, 1) end
	end)
end
return 0
