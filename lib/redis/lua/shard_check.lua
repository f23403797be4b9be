-- Check the shard, some jobs or keys at a time. ARGV[3]: the cursor, ARGV[4]: about how many jobs, ARGV[5]: 'jobs' or
-- 'keys'.
-- For jobs: each must be where its record says; with the last ones, the numbers of jobs, the sets and the counts must
-- agree, and the alarm must not be late. For keys: each must lead to a job that has it.
-- Replies the next cursor, '0' at the end, then the problems in words.
-- require part_shard
local replies = {}

local function wrong(...)
	replies[#replies + 1] = string.format(...)
end

local function check(id, text)
	local job = read(text)
	if not job then return wrong('job %s has a record that cannot be read', id) end
	local state, set, member = job[STATE], nil, id
	if state == RESERVED then
		set = tag .. ':f'
	elseif state == BURIED then
		set = tag .. ':b:' .. job[TUBE]
	elseif state == ENDED then
		set = tag .. ':e'
	elseif state == WAITING then
		set = delayed_set(job[DUE])
		local ready = ready_set(job[TUBE], job[GROUP])
		if redis.call('ZSCORE', ready, rank(id)) then
			set, member = ready, rank(id)
			-- Held, or in the row, or of a tube without one.
			if job[GROUP] and not redis.call('ZSCORE', tag .. ':o:' .. job[TUBE], job[GROUP]) and
				not redis.call('ZSCORE', tag .. ':v:' .. job[TUBE], job[GROUP]) then
				wrong('the group of job %s is not in the row', id)
			end
		end
	else
		return wrong('job %s has a state that is none', id)
	end
	if not redis.call('ZSCORE', set, member) then wrong('job %s is not where its record says', id) end
	if job[KEY] ~= '' and redis.call('HGET', index(job[TUBE], job[KEY])) ~= id then
		wrong('the key of job %s leads elsewhere', id)
	end
end

if ARGV[5] == 'keys' then
	local first = tonumber(ARGV[3])
	replies[1] = first + 64 < 1024 and string.format('%d', first + 64) or '0'
	for number = first, first + 63 do
		local set = tag .. ':k:' .. number
		local keys = redis.call('HGETALL', set)
		for i = 1, #keys, 2 do
			local job = read(redis.call('HGET', tag .. ':j', keys[i + 1]))
			local right, field
			if job then right, field = index(job[TUBE], job[KEY]) end
			if right ~= set or field ~= keys[i] then wrong('a key leads to job %s, which does not have it', keys[i + 1]) end
		end
	end
	return replies
end

local page = redis.call('HSCAN', tag .. ':j', ARGV[3], 'COUNT', ARGV[4])
replies[1] = page[1]
for i = 1, #page[2], 2 do check(page[2][i], page[2][i + 1]) end
if page[1] ~= '0' then return replies end

local jobs, placed, counted, in_flight = redis.call('HLEN', tag .. ':j') - redis.call('ZCARD', tag .. ':e'), 0, 0, 0
local counts = redis.call('HGETALL', tag .. ':c')
for i = 1, #counts, 2 do
	local tube = string.sub(counts[i], 2)
	if string.sub(counts[i], 1, 1) == 't' then
		counted = counted + counts[i + 1]
		placed = placed + redis.call('ZCARD', tag .. ':r:' .. tube) + redis.call('ZCARD', tag .. ':b:' .. tube)
	elseif string.sub(counts[i], 1, 1) == 'r' then
		in_flight = in_flight + counts[i + 1]
	elseif string.sub(counts[i], 1, 1) == 'g' then
		placed = placed + counts[i + 1]
	end
end
for _, name in ipairs(redis.call('ZRANGE', tag .. ':s', 0, -1)) do
	local number = redis.call('ZCARD', tag .. ':d:' .. name)
	if number == 0 then wrong('slice %s is listed and empty', name) end
	placed = placed + number
end
placed = placed + redis.call('ZCARD', tag .. ':f')
if counted ~= jobs then wrong('the counts of tubes say %.0f jobs, and there are %.0f', counted, jobs) end
if placed ~= jobs then wrong('%.0f jobs have a place, and there are %.0f', placed, jobs) end
if in_flight ~= redis.call('ZCARD', tag .. ':f') then
	wrong('the counts of tubes say that %.0f are in flight', in_flight)
end
if redis.call('HLEN', tag .. ':p') > 0 and not head[6] then wrong('tubes are paused, and the shard does not say so') end
if alarm > next_alarm() then wrong('the alarm is later than the next job') end
local m = redis.call('HMGET', tag .. ':m', 'seq', 'ended')
if m[1] - (m[2] or 0) ~= jobs then
	wrong('%s jobs were accepted and %s ended, and there are %.0f', m[1], m[2] or '0', jobs)
end
return replies
