-- Part of a script that works on limits. A job of a tube with a limit starts by a permit of the tube's home, one shard: so
-- the limit holds over all shards. A permit is a member of the zset of those of its tube, until its score; first under a
-- number of its own, and once its job is leased, under the job's id and until the end of the lease. So nothing is lost if
-- who took it dies.
-- A start that is late by so many us at most was waited for, and some of that is made up.
local LATE, SLACK = 50000, 10000

-- The limit of a tube, or nil. `home`: it is counted here.
local function limit_of(tube)
	local text = redis.call('HGET', tag .. ':l', tube)
	if not text then return end
	local running, starts, per, burst, home = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d)$')
	local limit = {running = tonumber(running), starts = tonumber(starts), per = tonumber(per), burst = tonumber(burst)}
	limit.home = home == '1'
	if limit.starts > 0 then limit.interval = limit.per / limit.starts end
	return limit
end

-- When the next start comes at an even pace: the theoretical arrival time of GCRA.
local function pace_of(tube)
	return tonumber(redis.call('HGET', tag .. ':g', tube) or 0)
end

local function set_pace(tube, even)
	redis.call('HSET', tag .. ':g', tube, string.format('%.3f', even))
end

local function use_up(tube, limit)
	if limit.interval then set_pace(tube, now + limit.burst * limit.interval) end
end

-- Permits that can be had now by the number that run, and by the rate the time of the next start.
local function room_of(tube, limit)
	redis.call('ZREMRANGEBYSCORE', tag .. ':q:' .. tube, '-inf', now)
	if limit.running == 0 then return NEVER end
	return limit.running - redis.call('ZCARD', tag .. ':q:' .. tube)
end

-- Whether nothing may start (1 or 0), and in how long the rate lets the next one start.
local function state_of(tube, limit)
	local left = 0
	if limit.interval then left = math.max(0, pace_of(tube) - (limit.burst - 1) * limit.interval - now) end
	return (left > 0 or room_of(tube, limit) <= 0) and 1 or 0, left
end

-- Somebody may start: tell those who were refused.
local function let(tube)
	redis.call('ZREM', tag .. ':w', tube)
	wake('l ' .. tube)
end
