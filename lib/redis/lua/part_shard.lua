-- Prologue of every shard script: identify the shard, read the clock, move what is due.
-- KEYS[1]: the shard's hash tag, with which its keys begin. ARGV[1]: the store's identity. ARGV[2]: the time in us, or
-- empty: Redis's own.
-- Replies -100 if Redis has no store of that identity: it is empty, or has another store.
--
-- A job waits, is reserved or is buried, and lies in one set:
--   waiting    before its due time in the zset of its slice of time, afterwards in the ready zset of its tube, or of its group
--   reserved   in the zset of leases, by its end
--   buried     in the zset of buried jobs of its tube, in the order of burial
-- A job that was finished may be kept for its key: it lies in the zset of those, by the time when it is forgotten, and
-- is in no count. load does not find it.
--
-- displace takes a job from its set; place, bury and lease put it into one.
--
-- The groups of a tube that have ready jobs stand in its row, in the order of their turns. A group that a limit holds stands
-- in the zset of those instead, until the time when it is let into the row again. The jobs that name no group are the group
-- ''; it stands in a row only if others do, so that a tube without groups has neither.
--
-- Each script moves what is due (at the end of this file), and sets the alarm: the time when something is due
-- next. A put or a lease that is due sooner lowers the alarm (ring), and notifies the workers.
local tag = KEYS[1]
local head = redis.call('HMGET', tag .. ':m', 'store', 'alarm', 'slice', 'shard', 'shards', 'paused', 'seq', 'token', 'limited',
	'grouped')
if head[1] ~= ARGV[1] then return -100 end
local now = tonumber(ARGV[2])
if not now then
	local time = redis.call('TIME')
	now = time[1] * 1000000 + time[2]
end
local alarm, slice = tonumber(head[2]), tonumber(head[3])
local NEVER = 9007199254740991

-- The fields of a job's record.
local VERSION, STATE, FLAGS, PRIORITY, DUE, BASE, CREATED, DELAY, RUN, PERIOD = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local MISSED, SKIP, BACKOFF, BACKOFF_MAX, ATTEMPTS, TRIES, RESERVES, TIMEOUTS = 11, 12, 13, 14, 15, 16, 17, 18
local RELEASES, BURIES, KICKS, TOKEN, PASSED, ENDS, TUBE, KEY, REASON, BODY = 19, 20, 21, 22, 23, 24, 25, 26, 27, 28
-- Few jobs have these. Without, they are nil, and cost nothing.
local GROUP, FIRST, HOLD, KEEP, HEADERS = 29, 30, 31, 32, 33
-- States. A waiting job is ready once it is in its tube's ready zset, and delayed before.
local WAITING, RESERVED, BURIED, ENDED = 1, 3, 4, 5

-- Redis compares members as strings; ranks have the order of the ids' numbers.
local function rank(id)
	return string.char(96 + #id) .. id
end

local function wake(message)
	redis.call('PUBLISH', string.match(tag, '^{(.*):%d+}$') .. ':wake', message)
end

-- Something is due at that time: notify the workers if it is sooner than all else.
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

-- The usual values. A record has a bit for each field that differs, then those values. The due time is stored as its
-- difference from the time of creation plus the delay, which is usually 0.
local USUAL = {
	1, WAITING, 0, 1024, 0, 0, 0, 0, 60000000, 0, 0, 0, 0, 3600000000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', '',
}
local RARE = {[GROUP] = 'string', [FIRST] = 'number', [HOLD] = 'number', [KEEP] = 'number', [HEADERS] = 'string'}

-- A job that was read has its unusual values itself.
local LIKE = {__index = USUAL}
-- The fields of a record by the number of its bits; false: there is no such record. Jobs of a batch share a few.
local layouts = {}
local function layout(others)
	if others ~= others then return false end
	local fields, left, i = {}, others, 1
	while left > 0 and i <= HEADERS do
		local bit = left % 2
		if bit == 1 then fields[#fields + 1] = i end
		left, i = (left - bit) / 2, i + 1
	end
	layouts[others] = left == 0 and fields
	return layouts[others]
end

local function pack(job)
	local others, due = 0, job[DUE]
	job[DUE] = due - job[CREATED] - job[DELAY]
	for i, value in pairs(job) do
		if value ~= USUAL[i] then others = others + 2 ^ (i - 1) end
	end
	local record, fields = {others}, layouts[others] or layout(others)
	for n = 1, #fields do record[n + 1] = job[fields[n]] end
	job[DUE] = due
	return cmsgpack.pack(record)
end

-- Returns nil for a record that cannot be read: a damaged job must not hold up what else is due.
local function read(text)
	local ok, record = pcall(cmsgpack.unpack, text)
	local others = ok and type(record) == 'table' and record[1]
	if type(others) ~= 'number' then return end
	local fields = layouts[others]
	if fields == nil then fields = layout(others) end
	if not fields or #record ~= #fields + 1 then return end
	local job = setmetatable({}, LIKE)
	for n = 1, #fields do
		local i, value = fields[n], record[n + 1]
		if type(value) ~= (RARE[i] or type(USUAL[i])) then return end
		job[i] = value
	end
	job[DUE] = job[DUE] + job[CREATED] + job[DELAY]
	return job
end

-- Where a key is looked up: one of 1024 hashes, small enough that Redis packs them. Returns the hash and the field.
local function index(tube, key)
	local field = tube .. '\0' .. key
	return tag .. ':k:' .. tonumber(string.sub(redis.sha1hex(field), 1, 3), 16) % 1024, field
end

local function load(id)
	local text = redis.call('HGET', tag .. ':j', id)
	local job = text and (read(text) or error('the record of job ' .. id .. ' cannot be read'))
	if job and job[STATE] ~= ENDED then return job end
end

-- Forget a job that has ended.
local function forget(id, job)
	redis.call('ZREM', tag .. ':e', id)
	redis.call('HDEL', tag .. ':j', id)
	redis.call('HDEL', index(job[TUBE], job[KEY]))
end

local function store(id, job)
	redis.call('HSET', tag .. ':j', id, pack(job))
end

local function delayed_set(due)
	return string.format('%s:d:%d', tag, math.floor(due / slice))
end

-- ---- Ready jobs

-- Where the ready jobs of a tube are, or of a group of it.
local function ready_set(tube, group)
	if group and group ~= '' then return tag .. ':h:' .. tube .. '\0' .. group end
	return tag .. ':r:' .. tube
end

-- What is added to the priority of a tube's first ready job if the tube has groups: its shards then take turns, too.
local GROUPED = 2 ^ 40

-- The ready job of a tube whose turn it is: the member of its set, and its priority; or nil. It may be of a group that is
-- held, if there is no other and the caller wants it.
local function first_of(tube, with_held)
	local group = head[10] and redis.call('ZRANGE', tag .. ':o:' .. tube, 0, 0)[1]
	if head[10] and with_held and not group then
		group = redis.call('EXISTS', tag .. ':r:' .. tube) == 0 and redis.call('ZRANGE', tag .. ':v:' .. tube, 0, 0)[1]
	end
	local first = redis.call('ZRANGE', ready_set(tube, group), 0, 0, 'WITHSCORES')
	if group and first[1] then return first[1], GROUPED + first[2] end
	return first[1], tonumber(first[2])
end

local function wake_first(tube, priority)
	wake(string.format('r %s %.0f %s', head[4], priority, tube))
end

-- Tell the waiting workers of a tube if its first ready job came just now.
local function tell(tube, came)
	local member, priority = first_of(tube)
	if member and came[member] then wake_first(tube, priority) end
end

-- A group with ready jobs goes to the end of the row.
local function join(tube, group)
	local row = tag .. ':o:' .. tube
	if group ~= '' and redis.call('EXISTS', row) == 0 and redis.call('EXISTS', tag .. ':r:' .. tube) == 1 then
		join(tube, '')
	end
	redis.call('ZADD', row, redis.call('HINCRBY', tag .. ':m', 'turn', 1), group)
end

-- A group's number of ready jobs, and of urgent ones, has changed. Returns whether the group is held.
local function count_ready(tube, group, number, urgent)
	count('g' .. tube, number)
	if urgent ~= 0 then count('u' .. tube, urgent) end
	if not redis.call('ZSCORE', tag .. ':v:' .. tube, group) then return false end
	count('h' .. tube, number)
	return true
end

-- A group is not held any more. Returns whether it was.
local function unhold(tube, group)
	local set = tag .. ':v:' .. tube
	if redis.call('ZREM', set, group) == 0 then return false end
	if redis.call('EXISTS', set) == 0 then redis.call('ZREM', tag .. ':v', tube) end
	return true
end

-- Jobs of a tube, and of a group or nil, have just been added to the ready ones, some of them urgent.
local function add_ready(tube, group, number, urgent)
	if not group then
		if not head[10] or redis.call('EXISTS', tag .. ':o:' .. tube) == 0 then return end
		group = ''
	else
		if not head[10] then redis.call('HSET', tag .. ':m', 'grouped', 1) end
		head[10] = '1'
		if count_ready(tube, group, number, urgent) then return end
	end
	if not redis.call('ZSCORE', tag .. ':o:' .. tube, group) then join(tube, group) end
end

-- So many have just been taken from them.
local function remove_ready(tube, group, number, urgent)
	if group and group ~= '' then
		count_ready(tube, group, -number, -urgent)
		if redis.call('EXISTS', ready_set(tube, group)) == 0 then
			redis.call('ZREM', tag .. ':o:' .. tube, group)
			unhold(tube, group)
		end
	elseif head[10] and redis.call('EXISTS', tag .. ':r:' .. tube) == 0 then
		redis.call('ZREM', tag .. ':o:' .. tube, '')
	end
end

-- Let held groups of a tube into the row. Returns how many were held.
local function let_groups(tube, groups)
	local before, number = first_of(tube), 0
	for _, group in ipairs(groups) do
		if unhold(tube, group) then
			number = number + 1
			count('h' .. tube, -redis.call('ZCARD', ready_set(tube, group)))
			join(tube, group)
		end
	end
	local member, priority = first_of(tube)
	if member and member ~= before then wake_first(tube, priority) end
	return number
end

local function is_urgent(job)
	return job[PRIORITY] < 1024 and 1 or 0
end

-- Of a tube with a limit, whether the home counts the jobs that run. With a mere rate, it counts starts alone. nil: no limit.
local function counts_jobs(tube)
	local limit = head[9] and redis.call('HGET', tag .. ':l', tube)
	return limit and not string.find(limit, '^0 %d+ %d+ %d+ %d 0 ')
end

-- ---- Places

-- Put a waiting job into the set for its due time.
local function place(id, job)
	local due = job[DUE]
	job[STATE] = WAITING
	if due <= now then
		local member = rank(id)
		redis.call('ZADD', ready_set(job[TUBE], job[GROUP]), job[PRIORITY], member)
		add_ready(job[TUBE], job[GROUP], 1, is_urgent(job))
		tell(job[TUBE], {[member] = true})
	else
		local number = string.format('%d', math.floor(due / slice))
		redis.call('ZADD', tag .. ':d:' .. number, string.format('%d', due), id)
		redis.call('ZADD', tag .. ':s', number, number)
		ring(due)
	end
end

-- Take a job from its set. Returns whether it was ready.
local function displace(id, job)
	local state = job[STATE]
	if state == RESERVED then
		redis.call('ZREM', tag .. ':f', id)
		count('r' .. job[TUBE], -1)
		job[TOKEN], job[PASSED], job[ENDS] = 0, 0, 0
	elseif state == BURIED then
		redis.call('ZREM', tag .. ':b:' .. job[TUBE], id)
	elseif redis.call('ZREM', ready_set(job[TUBE], job[GROUP]), rank(id)) == 1 then
		remove_ready(job[TUBE], job[GROUP], 1, is_urgent(job))
		return true
	else
		local set = delayed_set(job[DUE])
		redis.call('ZREM', set, id)
		if redis.call('EXISTS', set) == 0 then redis.call('ZREM', tag .. ':s', math.floor(job[DUE] / slice)) end
	end
	return false
end

-- What a worker has said of a run is of no use any more.
local function drop_report(id, job)
	if job[KEEP] then redis.call('HDEL', tag .. ':n', id) end
end

-- Keep how the lease of a job has ended (a number of enum ww_event_kind), if the job asks for it, and what the worker has
-- said of it.
local function end_run(id, job, outcome, attempt)
	if not job[KEEP] then return end
	local list, meta = tag .. ':x', tag .. ':m'
	local report = redis.call('HGET', tag .. ':n', id) or ''
	-- Out of memory, Redis refuses what needs some as the first write of a script: this one needs none.
	drop_report(id, job)
	local order = math.max(now, (redis.call('HGET', meta, 'run') or 0) + 1)
	redis.call('HSET', meta, 'run', string.format('%d', order))
	redis.call('RPUSH', list, cmsgpack.pack({order, now + job[KEEP], id, outcome, attempt, job[TUBE], job[KEY],
		outcome == 5 and '' or job[REASON], report}))
	redis.call('LTRIM', list, -math.ceil(10000 / head[5]), -1)
	local first = cmsgpack.unpack(redis.call('LINDEX', list, 0))
	if first[2] <= now then redis.call('LPOP', list) end
end

-- Put a job among the buried ones as of that moment, which gives the order; jobs of one moment keep the order of the calls.
local function inter(id, job, moment)
	local order = math.max(moment, (redis.call('HGET', tag .. ':m', 'burial') or 0) + 1)
	redis.call('HSET', tag .. ':m', 'burial', order)
	job[STATE] = BURIED
	redis.call('ZADD', tag .. ':b:' .. job[TUBE], order, id)
	store(id, job)
end

local function bury(id, job, moment, attempt)
	end_run(id, job, 9, attempt)
	job[BURIES] = job[BURIES] + 1
	job[VERSION] = job[VERSION] + 1
	inter(id, job, moment)
end

-- An attempt has failed, and the job is in no set. Try again after a delay (below 0: its own backoff, less up to a
-- quarter by chance from 0 to 1), or bury it as of that moment after its last attempt. Returns 1 if it is buried.
local function try_again(id, job, delay, chance, moment, outcome)
	job[TRIES] = job[TRIES] + 1
	if job[ATTEMPTS] > 0 and job[TRIES] >= job[ATTEMPTS] then
		bury(id, job, moment, job[TRIES])
		return 1
	end
	end_run(id, job, outcome, job[TRIES])
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

-- End the leases that have run out. Returns how many.
local function reap()
	local ids = redis.call('ZRANGE', tag .. ':f', '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH)
	for i, id in ipairs(ids) do
		local job = read(redis.call('HGET', tag .. ':j', id))
		if job and job[STATE] == RESERVED then
			local ended = job[ENDS]
			displace(id, job)
			job[TIMEOUTS] = job[TIMEOUTS] + 1
			if job[ATTEMPTS] == 0 and job[BACKOFF] == 0 and not job[KEEP] then
				job[TRIES] = job[TRIES] + 1
				place(id, job)
				store(id, job)
			else
				job[REASON] = 'the time to run was up'
				-- Random enough to separate jobs that run out together.
				try_again(id, job, -1, (now + i * 61) % 101 / 100, ended, 7)
			end
		else
			redis.call('ZREM', tag .. ':f', id)
		end
	end
	if #ids > 0 then redis.call('HINCRBY', tag .. ':m', 'timeouts', #ids) end
	return #ids
end

-- Forget some jobs that have ended: all before a time, or this many. Returns how many.
local function forget_some(...)
	local ids = redis.call('ZRANGE', tag .. ':e', ...)
	for _, id in ipairs(ids) do
		local job = read(redis.call('HGET', tag .. ':j', id))
		if job and job[STATE] == ENDED then
			forget(id, job)
		else
			redis.call('ZREM', tag .. ':e', id)
		end
	end
	return #ids
end

-- Keep a job, which is in no set, as ended until its key is free.
local function keep_ended(id, job, time, ends)
	local ended = {unpack(USUAL)}
	ended[VERSION], ended[STATE], ended[CREATED], ended[HOLD] = job[VERSION], ENDED, job[CREATED], job[HOLD]
	ended[TUBE], ended[KEY], ended[DUE], ended[ENDS] = job[TUBE], job[KEY], time, ends
	store(id, ended)
	redis.call('ZADD', tag .. ':e', string.format('%d', ends), id)
	local over = redis.call('ZCARD', tag .. ':e') - math.floor(1000000 / head[5])
	if over > 0 then forget_some(0, over - 1) end
	ring(ends)
end

-- Count how late a job became ready, by powers of ten from a millisecond.
local function measure(classes, late)
	local class, most = 0, 1000
	while class < 6 and late > most do
		class, most = class + 1, most * 10
	end
	classes[class] = (classes[class] or 0) + 1
end

-- Make due jobs of the first slice ready. Returns how many there were, and whether no more are due.
local function promote()
	local first = redis.call('ZRANGE', tag .. ':s', 0, 0)[1]
	if not first then return 0, true end
	local set = tag .. ':d:' .. first
	local found = redis.call('ZRANGE', set, '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH, 'WITHSCORES')
	local ids, late, classes, sets, came = {}, 0, {}, {}, {}
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
				local set, member = ready_set(job[TUBE], job[GROUP]), rank(ids[i])
				local add = sets[set] or {tube = job[TUBE], group = job[GROUP], urgent = 0, 'ZADD', set}
				add[#add + 1] = job[PRIORITY]
				add[#add + 1] = member
				add.urgent = add.urgent + is_urgent(job)
				sets[set], came[member] = add, true
			end
		end
		local tubes = {}
		for _, add in pairs(sets) do
			redis.call(unpack(add))
			add_ready(add.tube, add.group, (#add - 2) / 2, add.urgent)
			tubes[add.tube] = true
		end
		for tube in pairs(tubes) do tell(tube, came) end
		for class, number in pairs(classes) do
			redis.call('HINCRBY', tag .. ':m', 'late' .. class, number)
		end
		-- An overflow of the sum must not stop what is due.
		redis.pcall('HINCRBY', tag .. ':m', 'late', string.format('%.0f', late))
	end
	if redis.call('EXISTS', set) == 0 then
		redis.call('ZREM', tag .. ':s', first)
		return #ids, false
	end
	return #ids, #ids < BATCH
end

-- End the pauses that are over. Returns when the next one ends.
local function unpause()
	local pauses, next_end, left = redis.call('HGETALL', tag .. ':p'), NEVER, 0
	for i = 1, #pauses, 2 do
		local over = tonumber(string.match(pauses[i + 1], '^%d+'))
		if over <= now then
			redis.call('HDEL', tag .. ':p', pauses[i])
			local member, priority = first_of(pauses[i])
			if member then wake_first(pauses[i], priority) end
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

-- Tell those who wait for the limits of tubes that jobs may start.
local function let_some()
	local tubes = redis.call('ZRANGE', tag .. ':w', '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH)
	if #tubes > 0 then redis.call('ZREM', tag .. ':w', unpack(tubes)) end
	for _, tube in ipairs(tubes) do wake('l ' .. tube) end
	return #tubes
end

-- Let groups that were held until now into the rows of their tubes. Returns how many.
local function let_held()
	local tubes, number = redis.call('ZRANGE', tag .. ':v', '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH), 0
	for _, tube in ipairs(tubes) do
		local set = tag .. ':v:' .. tube
		local groups = redis.call('ZRANGE', set, '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH - number)
		let_groups(tube, groups)
		number = number + #groups + 1
		local first = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
		if first[2] then redis.call('ZADD', tag .. ':v', first[2], tube) else redis.call('ZREM', tag .. ':v', tube) end
		if number >= BATCH then break end
	end
	return number
end

-- When something is due next.
local function next_alarm()
	local time = NEVER
	local first = redis.call('ZRANGE', tag .. ':s', 0, 0)[1]
	if first then time = tonumber(redis.call('ZRANGE', tag .. ':d:' .. first, 0, 0, 'WITHSCORES')[2] or now) end
	local lease = redis.call('ZRANGE', tag .. ':f', 0, 0, 'WITHSCORES')
	if lease[2] then time = math.min(time, tonumber(lease[2])) end
	local held = head[9] and redis.call('ZRANGE', tag .. ':w', 0, 0, 'WITHSCORES') or {}
	if held[2] then time = math.min(time, tonumber(held[2])) end
	local group = head[9] and redis.call('ZRANGE', tag .. ':v', 0, 0, 'WITHSCORES') or {}
	if group[2] then time = math.min(time, tonumber(group[2])) end
	local kept = redis.call('ZRANGE', tag .. ':e', 0, 0, 'WITHSCORES')
	if kept[2] then time = math.min(time, tonumber(kept[2])) end
	return time
end

-- Move some of what is due: a batch, so no script takes long. While there is more, the alarm stays in the past.
if alarm <= now then
	local reaped, promoted, all, over = reap(), 0, false, NEVER
	local forgotten = forget_some('-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH)
	repeat
		local number
		number, all = promote()
		promoted = promoted + number
	until all or promoted >= BATCH
	if head[6] then over = unpause() end
	local let = head[9] and let_some() + let_held() or 0
	alarm = now
	if all and reaped < BATCH and forgotten < BATCH and let < BATCH then
		alarm = math.min(next_alarm(), over)
	end
	-- Out of memory, Redis permits a write that needs some only after one that needs none.
	redis.call('HDEL', tag .. ':m', '-')
	redis.call('HSET', tag .. ':m', 'alarm', alarm)
end
