-- Permits to start jobs of a tube with a limit, at its home. ARGV[4]: the tube.
-- ARGV[3]: 'take', ARGV[5]: how many at most, ARGV[6]: for how many us at first. Replies how many, or -1 if the tube has no
-- limit, the first of their consecutive numbers and, if there are none, the time at which to try again.
-- ARGV[3]: 'settle', ARGV[5]: the first number, ARGV[6]: how many, ARGV[7...]: of those that were used, id of the job and end
-- of its lease. The others are given back. Replies 0.
-- ARGV[3]: 'seed', ARGV[5...]: id and end of the lease of jobs that run already. Replies 0.
-- ARGV[3]: 'touch', ARGV[5]: an id, ARGV[6]: the end of its lease. 'add': the same for a job that took none. Replies 0.
-- ARGV[3]: 'free', or 'return' if they were no starts; ARGV[5...]: ids of jobs whose leases have ended. Replies 0.
-- require part_shard
-- require part_permit
local what, tube = ARGV[3], ARGV[4]
local set, limit = tag .. ':q:' .. tube, limit_of(tube)
if not limit then return what == 'take' and {-1, 0, 0} or 0 end

local function give_back(number)
	if limit.interval then
		set_pace(tube, pace_of(tube) - number * limit.interval)
	end
end

if what == 'take' then
	local most = math.min(tonumber(ARGV[5]), math.max(0, room_of(tube, limit)))
	local even = pace_of(tube)
	local number, again = 0, NEVER
	if limit.interval then
		local early = (limit.burst - 1) * limit.interval
		while number < most and now >= math.floor(even - early) do
			even = math.max(even, now - even <= LATE and now - SLACK or now) + limit.interval
			number = number + 1
		end
		if number == 0 and most > 0 then again = math.ceil(even - early) end
		set_pace(tube, even)
	else
		number = most
	end
	if number == 0 then
		if most == 0 then
			local first = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
			again = math.ceil(tonumber(first[2] or now))
		end
		redis.call('ZADD', tag .. ':w', string.format('%d', again), tube)
		ring(again)
		return {0, 0, again}
	end
	local last = redis.call('HINCRBY', tag .. ':m', 'permits', number)
	for i = last - number + 1, last do
		redis.call('ZADD', set, string.format('%d', now + tonumber(ARGV[6])), 'p' .. i)
	end
	return {number, last - number + 1, 0}
elseif what == 'settle' then
	local first, number, used = tonumber(ARGV[5]), tonumber(ARGV[6]), (#ARGV - 6) / 2
	for i = first, first + number - 1 do redis.call('ZREM', set, 'p' .. i) end
	for a = 7, #ARGV, 2 do redis.call('ZADD', set, ARGV[a + 1], ARGV[a]) end
	if used < number then
		give_back(number - used)
		if redis.call('ZSCORE', tag .. ':w', tube) then let(tube) end
	end
elseif what == 'seed' then
	for a = 5, #ARGV, 2 do redis.call('ZADD', set, ARGV[a + 1], ARGV[a]) end
elseif what == 'touch' then
	redis.call('ZADD', set, 'XX', ARGV[6], ARGV[5])
elseif what == 'add' then
	redis.call('ZADD', set, ARGV[6], ARGV[5])
	if limit.interval then set_pace(tube, math.max(pace_of(tube), now) + limit.interval) end
else
	local gone = 0
	for a = 5, #ARGV do gone = gone + redis.call('ZREM', set, ARGV[a]) end
	if what == 'return' and gone > 0 then give_back(gone) end
	if gone > 0 and redis.call('ZSCORE', tag .. ':w', tube) then let(tube) end
end
return 0
