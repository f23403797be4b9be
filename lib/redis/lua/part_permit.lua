-- Part of a script that works on limits. A job of a tube with a limit starts by a permit of the tube's home, one shard: so
-- the limit holds over all shards. A permit is a member of the zset of those of its gate, until its score; first under a
-- number of its own, and once its job is leased, under the job's id and until the end of the lease. So nothing is lost if
-- who took it dies.
--
-- A gate has a limit: the tube, under its name, or a group, under the name of the tube, NUL and the group. It is closed while
-- as many permits are out as may be, or until the next start comes at an even pace: the theoretical arrival time of GCRA.
-- A start that is late by at most this many us was waited for, and some of that is made up.
local LATE, SLACK = 50000, 10000
-- What a limit holds is checked again after this many us, as a message may be lost.
local HOLD = 5000000
-- A rate that goes on refusing opens for the starts of up to this many us at once: most of what an opening costs is the same
-- for one start as for many.
local SLICE = 3000
-- Permits of which the shards are asked whether their jobs still run.
local DOUBTS = 128

local function name_of(tube, group)
	return group and tube .. '\0' .. group or tube
end

-- A limit, or nil. Of a tube: `home`, whether it is counted here, and `groups`, how many limits of groups the tube has.
-- `used`: the time as of which its burst is used up.
local function limit_of(name)
	local text = redis.call('HGET', tag .. ':l', name)
	if not text then return end
	local of, limit = {}, {}
	for number in string.gmatch(text, '%d+') do of[#of + 1] = tonumber(number) end
	limit.running, limit.starts, limit.per, limit.burst, limit.home = of[1], of[2], of[3], of[4], of[5] == 1
	limit.groups, limit.version, limit.used = of[6], of[7], of[8]
	if limit.starts > 0 then limit.interval = limit.per / limit.starts end
	return limit
end

-- The gate of a tube, or of a group unless it is nil; or nil if it has no limit.
local function gate_of(tube, group)
	if group == '' then return end
	local limit = limit_of(name_of(tube, group)) or group and limit_of(name_of(tube, ''))
	if not limit or limit.running + limit.starts == 0 then return end
	limit.tube, limit.group, limit.name = tube, group, name_of(tube, group)
	limit.set = tag .. ':q:' .. limit.name
	-- A mere rate needs no permit for each job.
	limit.is_rate = not group and limit.running + limit.groups == 0
	return limit
end

-- When the next start comes at an even pace. What was noted under another limit does not count.
local function pace_of(gate)
	local version, even = string.match(redis.call('HGET', tag .. ':g', gate.name) or '', '^(%d+) (.*)$')
	if tonumber(version) == gate.version then return tonumber(even) end
	return gate.used > 0 and gate.used + gate.burst * gate.interval or 0
end

local function set_pace(gate, even)
	redis.call('HSET', tag .. ':g', gate.name, string.format('%d %.3f', gate.version, even))
end

-- Permits that can be had now by the number that run.
local function room_of(gate)
	redis.call('ZREMRANGEBYSCORE', gate.set, '-inf', now)
	if gate.running == 0 then return NEVER end
	return gate.running - redis.call('ZCARD', gate.set)
end

-- From where the next start counts.
local function base_of(gate, even)
	return math.max(even, now - even <= LATE and now - SLACK or now)
end

-- How many of that many may start now; if none, when to try again, and whether the end of a lease will signal it.
local function allow(gate, most)
	local number = math.max(0, math.min(most, room_of(gate)))
	if number == 0 then
		local first = redis.call('ZRANGE', gate.set, 0, 0, 'WITHSCORES')
		return 0, math.ceil(tonumber(first[2] or now)), true
	end
	if not gate.interval then return number end
	local even, early, may = pace_of(gate), (gate.burst - 1) * gate.interval, 0
	if now < math.floor(even - early) then return 0, math.ceil(even - early), false end
	even = base_of(gate, even)
	repeat
		may, even = may + 1, even + gate.interval
	until may == number or now < math.floor(even - early)
	return may
end

-- Whether the rate has opened just before, for somebody that it had refused.
local function is_opened(gate)
	return now - tonumber(redis.call('HGET', tag .. ':g', '\1' .. gate.name) or 0) <= LATE
end

-- The rate refuses. Returns when it opens. If it does so again and again, it opens later, for as many more starts as fit into
-- a slice, and into 1 % of its time.
local function opening(gate)
	local again = pace_of(gate) - (gate.burst - 1) * gate.interval
	if is_opened(gate) then
		again = again + math.floor(math.min(SLICE, gate.per / 100) / gate.interval) * gate.interval
	end
	again = math.ceil(again)
	redis.call('HSET', tag .. ':g', '\1' .. gate.name, string.format('%d', again))
	return again
end

-- A gate is closed by jobs that run, or by permits of jobs that have ended without a word, as an answer was lost: some of
-- them, once in a while. Appends the gate's group, then ids and ends of leases.
local function doubt(gate, reply)
	local field = '\0' .. gate.name
	if tonumber(redis.call('HGET', tag .. ':g', field) or 0) > now - HOLD or #reply > 0 then return end
	redis.call('HSET', tag .. ':g', field, string.format('%d', now))
	reply[1] = gate.group or ''
	local permits = redis.call('ZRANDMEMBER', gate.set, DOUBTS, 'WITHSCORES')
	for i = 1, #permits, 2 do
		if string.find(permits[i], '^%d') then reply[#reply + 1], reply[#reply + 2] = permits[i], permits[i + 1] end
	end
end

local function count_starts(gate, number)
	if gate.interval then set_pace(gate, base_of(gate, pace_of(gate)) + number * gate.interval) end
end

local function give_back(gate, number)
	if gate.interval then set_pace(gate, pace_of(gate) - number * gate.interval) end
end

-- Note until when there is something to know of a group: then it may be forgotten. A shard that was refused waits to hear of
-- the end of a lease, or until it asks again by itself.
local function note(gate)
	if not gate.group then return end
	local last = redis.call('ZRANGE', gate.set, -1, -1, 'WITHSCORES')
	local refused = redis.call('ZRANGE', tag .. ':y:' .. gate.name, -1, -1, 'WITHSCORES')
	local time = math.max(tonumber(last[2] or 0), gate.interval and pace_of(gate) or 0, (refused[2] or -HOLD) + HOLD)
	redis.call('ZADD', tag .. ':i:' .. gate.tube, string.format('%.0f', math.ceil(time)), gate.group)
end

-- Forget what is counted of a tube, or of a group.
local function drop(tube, group)
	local name = name_of(tube, group)
	redis.call('DEL', tag .. ':q:' .. name, tag .. ':y:' .. name)
	redis.call('HDEL', tag .. ':g', name, '\0' .. name, '\1' .. name)
	if group then redis.call('ZREM', tag .. ':i:' .. tube, group) end
end

-- Forget some groups of which there is nothing to know any more.
local function forget_groups(tube)
	for _, group in ipairs(redis.call('ZRANGE', tag .. ':i:' .. tube, '-inf', now, 'BYSCORE', 'LIMIT', 0, 4)) do
		drop(tube, group)
	end
end

-- Whether nothing may start (1 or 0), and in how long the rate lets the next one start.
local function state_of(gate)
	local left = 0
	if gate.interval then left = math.max(0, pace_of(gate) - (gate.burst - 1) * gate.interval - now) end
	return (left > 0 or room_of(gate) <= 0) and 1 or 0, left
end

-- A start is possible: notify the shards that were refused.
local function let(tube)
	redis.call('ZREM', tag .. ':w', tube)
	wake('l ' .. tube)
end
