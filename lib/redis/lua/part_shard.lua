-- The beginning of every script of a shard: what it is, what time it is, and what is due put where it belongs.
-- KEYS[1]: the shard's hash tag, which its keys begin with. ARGV[1]: the identity of the store. ARGV[2]: the time in us, or
-- nothing: Redis's own.
-- A reply of -100 says that the store is not the one that was opened: Redis is empty, or it is another's.
local tag = KEYS[1]
local head = redis.call('HMGET', tag .. ':m', 'store', 'alarm', 'slice', 'shard', 'shards', 'paused', 'seq', 'token')
if head[1] ~= ARGV[1] then return -100 end
local now = tonumber(ARGV[2])
if not now then
	local time = redis.call('TIME')
	now = time[1] * 1000000 + time[2]
end
local alarm, slice = tonumber(head[2]), tonumber(head[3])
local NEVER = 9007199254740991

-- What a record is made of.
local VERSION, STATE, FLAGS, PRIORITY, DUE, BASE, CREATED, DELAY, RUN, PERIOD = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local MISSED, SKIP, BACKOFF, BACKOFF_MAX, ATTEMPTS, TRIES, RESERVES, TIMEOUTS = 11, 12, 13, 14, 15, 16, 17, 18
local RELEASES, BURIES, KICKS, TOKEN, PASSED, ENDS, TUBE, KEY, REASON, BODY = 19, 20, 21, 22, 23, 24, 25, 26, 27, 28
-- A job that waits is ready when it is in its tube's set of ready ones, and delayed before.
local WAITING, RESERVED, BURIED = 1, 3, 4

-- Ids in order of numbers, though they are compared as strings.
local function rank(id)
	return string.char(96 + #id) .. id
end

local function wake(message)
	redis.call('PUBLISH', string.match(tag, '^{(.*):%d+}$') .. ':wake', message)
end

-- Something is due at that time: who keeps the shard's time must know if it is sooner than all else.
local function ring(time)
	if time < alarm then
		alarm = time
		redis.call('HSET', tag .. ':m', 'alarm', time)
		wake(string.format('a %s %d', head[4], time))
	end
end

local function count(field, by)
	if redis.call('HINCRBY', tag .. ':c', field, by) == 0 then redis.call('HDEL', tag .. ':c', field) end
end

-- What most jobs have. A record says which of its values are others, by a bit each, and then these. When a job is due is stored as the
-- difference to when it was put and its delay.
local USUAL = {
	1, WAITING, 0, 1024, 0, 0, 0, 0, 60000000, 0, 0, 0, 0, 3600000000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', '',
}

local function pack(job)
	local record, others, bit, due = {0}, 0, 1, job[DUE]
	job[DUE] = due - job[CREATED] - job[DELAY]
	for i = 1, BODY do
		if job[i] ~= USUAL[i] then
			others = others + bit
			record[#record + 1] = job[i]
		end
		bit = bit + bit
	end
	job[DUE], record[1] = due, others
	return cmsgpack.pack(record)
end

-- What a record says, or nothing if it cannot be read: what is due is not to wait for ever for a damaged one.
local function read(text)
	local ok, record = pcall(cmsgpack.unpack, text)
	local others = ok and type(record) == 'table' and record[1]
	if type(others) ~= 'number' then return end
	local job, n = {}, 1
	for i = 1, BODY do
		local usual, bit = USUAL[i], others % 2
		if bit == 1 then
			n = n + 1
			job[i] = record[n]
			if type(job[i]) ~= type(usual) then return end
		else
			job[i] = usual
		end
		others = (others - bit) / 2
	end
	if others ~= 0 or record[n + 1] ~= nil then return end
	job[DUE] = job[DUE] + job[CREATED] + job[DELAY]
	return job
end

-- Where a key is looked up: in one of many small hashes, which Redis holds as packed lists. Gives the hash and the field.
local function index(tube, key)
	local field = tube .. '\0' .. key
	return tag .. ':k:' .. tonumber(string.sub(redis.sha1hex(field), 1, 3), 16) % 1024, field
end

local function load(id)
	local text = redis.call('HGET', tag .. ':j', id)
	return text and (read(text) or error('the record of job ' .. id .. ' cannot be read'))
end

local function store(id, job)
	redis.call('HSET', tag .. ':j', id, pack(job))
end

local function delayed_set(due)
	return string.format('%s:d:%d', tag, math.floor(due / slice))
end

-- Tell who waits for a tube if its first ready job is one that came just now.
local function tell(tube, came)
	local first = redis.call('ZRANGE', tag .. ':r:' .. tube, 0, 0, 'WITHSCORES')
	if first[1] and came[first[1]] then wake('r ' .. head[4] .. ' ' .. first[2] .. ' ' .. tube) end
end

-- A job that waits goes where its time says.
local function place(id, job)
	local due = job[DUE]
	job[STATE] = WAITING
	if due <= now then
		local member = rank(id)
		redis.call('ZADD', tag .. ':r:' .. job[TUBE], job[PRIORITY], member)
		tell(job[TUBE], {[member] = true})
	else
		local number = string.format('%d', math.floor(due / slice))
		redis.call('ZADD', tag .. ':d:' .. number, string.format('%d', due), id)
		redis.call('ZADD', tag .. ':s', number, number)
		ring(due)
	end
end

-- Take a job from where it is. Returns whether it was ready.
local function displace(id, job)
	local state = job[STATE]
	if state == RESERVED then
		redis.call('ZREM', tag .. ':f', id)
		count('r' .. job[TUBE], -1)
		job[TOKEN], job[PASSED], job[ENDS] = 0, 0, 0
	elseif state == BURIED then
		redis.call('ZREM', tag .. ':b:' .. job[TUBE], id)
	elseif redis.call('ZREM', tag .. ':r:' .. job[TUBE], rank(id)) == 1 then
		return true
	else
		local set = delayed_set(job[DUE])
		redis.call('ZREM', set, id)
		if redis.call('EXISTS', set) == 0 then redis.call('ZREM', tag .. ':s', math.floor(job[DUE] / slice)) end
	end
	return false
end

-- In order of the moment since when it is to be; those of one moment in turn.
local function bury(id, job, moment)
	local order = math.max(moment, (redis.call('HGET', tag .. ':m', 'burial') or 0) + 1)
	redis.call('HSET', tag .. ':m', 'burial', order)
	job[STATE] = BURIED
	job[BURIES] = job[BURIES] + 1
	job[VERSION] = job[VERSION] + 1
	redis.call('ZADD', tag .. ':b:' .. job[TUBE], order, id)
	store(id, job)
end

-- An attempt has failed, and the job is nowhere: again after a delay (less than 0: its own backoff), or never: then since that
-- moment. Returns 1 if it is buried. chance is from 0 to 1.
local function try_again(id, job, delay, chance, moment)
	job[TRIES] = job[TRIES] + 1
	if job[ATTEMPTS] > 0 and job[TRIES] >= job[ATTEMPTS] then
		bury(id, job, moment)
		return 1
	end
	if delay < 0 then
		delay = job[BACKOFF]
		for _ = 2, job[TRIES] do
			if delay == 0 or delay >= job[BACKOFF_MAX] then break end
			delay = delay * 2
		end
		if job[BACKOFF_MAX] > 0 and delay > job[BACKOFF_MAX] then delay = job[BACKOFF_MAX] end
		delay = delay - math.floor(delay / 4 * chance)
	end
	job[DELAY] = delay
	job[DUE] = now + delay
	job[VERSION] = job[VERSION] + 1
	place(id, job)
	store(id, job)
	return 0
end

-- ---- What is due

local BATCH = 512

-- Leases that have run out. Returns how many.
local function reap()
	local ids = redis.call('ZRANGE', tag .. ':f', '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH)
	for i, id in ipairs(ids) do
		local job = read(redis.call('HGET', tag .. ':j', id))
		if job and job[STATE] == RESERVED then
			local ended = job[ENDS]
			displace(id, job)
			job[TIMEOUTS] = job[TIMEOUTS] + 1
			if job[ATTEMPTS] == 0 and job[BACKOFF] == 0 then
				job[TRIES] = job[TRIES] + 1
				place(id, job)
				store(id, job)
			else
				job[REASON] = 'the time to run was up'
				-- Random enough to keep those apart that run out together.
				try_again(id, job, -1, (now + i * 61) % 101 / 100, ended)
			end
		else
			redis.call('ZREM', tag .. ':f', id)
		end
	end
	if #ids > 0 then redis.call('HINCRBY', tag .. ':m', 'timeouts', #ids) end
	return #ids
end

-- How late they became ready, by powers of ten from a millisecond.
local function measure(classes, late)
	local class, most = 0, 1000
	while class < 6 and late > most do
		class, most = class + 1, most * 10
	end
	classes[class] = (classes[class] or 0) + 1
end

-- Delayed jobs of the first slice that are due. Returns how many there were, and whether nothing later is.
local function promote()
	local first = redis.call('ZRANGE', tag .. ':s', 0, 0)[1]
	if not first then return 0, true end
	local set = tag .. ':d:' .. first
	local found = redis.call('ZRANGE', set, '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH, 'WITHSCORES')
	local ids, late, classes, tubes, came = {}, 0, {}, {}, {}
	for i = 1, #found, 2 do
		ids[#ids + 1] = found[i]
		late = late + now - found[i + 1]
		measure(classes, now - found[i + 1])
	end
	if #ids > 0 then
		redis.call('ZREMRANGEBYRANK', set, 0, #ids - 1)
		for i, text in ipairs(redis.call('HMGET', tag .. ':j', unpack(ids))) do
			local job = read(text)
			if job then
				local add = tubes[job[TUBE]] or {'ZADD', tag .. ':r:' .. job[TUBE]}
				local member = rank(ids[i])
				add[#add + 1] = job[PRIORITY]
				add[#add + 1] = member
				tubes[job[TUBE]], came[member] = add, true
			end
		end
		for tube, add in pairs(tubes) do
			redis.call(unpack(add))
			tell(tube, came)
		end
		for class, number in pairs(classes) do
			redis.call('HINCRBY', tag .. ':m', 'late' .. class, number)
		end
		-- What is beyond all measure does not stop what is due.
		redis.pcall('HINCRBY', tag .. ':m', 'late', string.format('%.0f', late))
	end
	if redis.call('EXISTS', set) == 0 then
		redis.call('ZREM', tag .. ':s', first)
		return #ids, false
	end
	return #ids, #ids < BATCH
end

-- Pauses that are over. Returns when the next one is.
local function unpause()
	local pauses, next_end, left = redis.call('HGETALL', tag .. ':p'), NEVER, 0
	for i = 1, #pauses, 2 do
		local over = tonumber(string.match(pauses[i + 1], '^%d+'))
		if over <= now then
			redis.call('HDEL', tag .. ':p', pauses[i])
			local first = redis.call('ZRANGE', tag .. ':r:' .. pauses[i], 0, 0, 'WITHSCORES')
			if first[1] then wake('r ' .. head[4] .. ' ' .. first[2] .. ' ' .. pauses[i]) end
		else
			next_end, left = math.min(next_end, over), left + 1
		end
	end
	if left == 0 then
		redis.call('HDEL', tag .. ':m', 'paused')
		head[6] = false
	end
	return next_end
end

-- When something is due the next time.
local function next_alarm()
	local time = NEVER
	local first = redis.call('ZRANGE', tag .. ':s', 0, 0)[1]
	if first then time = tonumber(redis.call('ZRANGE', tag .. ':d:' .. first, 0, 0, 'WITHSCORES')[2] or now) end
	local lease = redis.call('ZRANGE', tag .. ':f', 0, 0, 'WITHSCORES')
	if lease[2] then time = math.min(time, tonumber(lease[2])) end
	return time
end

-- Some of what is due, so that no script takes long; the alarm stays in the past while there is more.
if alarm <= now then
	local reaped, promoted, all, over = reap(), 0, false, NEVER
	repeat
		local number
		number, all = promote()
		promoted = promoted + number
	until all or promoted >= BATCH
	if head[6] then over = unpause() end
	alarm = now
	if all and reaped < BATCH then
		alarm = math.min(next_alarm(), over)
	end
	-- Without memory Redis takes what needs some only behind something that needs none.
	redis.call('HDEL', tag .. ':m', '-')
	redis.call('HSET', tag .. ':m', 'alarm', alarm)
end
