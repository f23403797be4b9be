-- Put jobs. ARGV[3...]: 15 arguments for each. Replies the result, id and version of each.
-- What a due time means is one letter, behind which a mode of the key may stand, and its span in us. If the letter is a
-- capital, the job's group is one more argument. Behind the flags k may stand, and how long its runs are kept in us. If h
-- stands before them, the job's headers are the next argument. If w stands before that, the job has a past
-- (ww_jobs_put_again), in 13 more arguments.
-- Out of memory, Redis still runs a script whose first write needs none, and what is due may write such things first.
-- Therefore this script begins with a write that needs memory in Redis's eyes, and changes nothing: it is refused then.
redis.call('SETRANGE', KEYS[1], 0, '')
-- require part_shard
local PUT, PAST = 15, 13
local replies, fresh, ended, tubes = {}, 0, 0, {}
local seq = tonumber(head[7])

-- By a mode (the numbers are those of enum ww_key_mode): whether the old job, which may be nil, is kept; otherwise the due
-- time and when the first of the debounced puts was.
local function decide(mode, span, old, due)
	local waits = old and old[STATE] == WAITING
	if mode == 1 or mode == 5 then return old, due end
	local left = waits and math.max(0, old[DUE] - now)
	-- One that was due in another store may have a time that has passed.
	local ahead = math.max(0, due - now)
	if mode == 2 then return waits and left <= ahead, due end
	if mode == 3 then return waits and left >= ahead, due end
	local first = waits and old[RESERVES] == 0 and old[FIRST] or now
	return false, math.min(due, math.max(now, first + span)), first
end

-- Let a job be as it was in another store. Its arguments are those from ARGV[p] on.
local function recall(job, p)
	local was = {}
	for i = 1, PAST - 1 do was[i] = tonumber(ARGV[p + i - 1]) end
	job[VERSION] = was[2]
	if was[3] > 0 then job[CREATED], job[DELAY] = was[3], was[4] end
	if was[6] > 0 then job[FIRST] = math.max(1, (was[5] > 0 and job[DUE] - was[5] or now) - was[6]) end
	job[TRIES], job[RESERVES], job[TIMEOUTS] = was[7], was[8], was[9]
	job[RELEASES], job[BURIES], job[KICKS] = was[10], was[11], was[12]
	job[REASON] = ARGV[p + PAST - 1]
	return was[1], was[5]
end

local function put(a, group, headers, past)
	local tube, key, version = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 14])
	local kind, due = string.lower(ARGV[a + 3]), tonumber(ARGV[a + 4])
	local period = tonumber(ARGV[a + 7])
	local mode, span, first, kept, state, left
	local flags, keep = string.match(ARGV[a + 13], '^w?h?(%d+)k?(%d*)$')
	if #kind > 1 then
		mode, span, kind = tonumber(string.sub(kind, 2, 2)), tonumber(string.sub(kind, 3)), string.sub(kind, 1, 1)
	end
	local id, old, set, field
	if kind == 'd' then
		due = now + due
	elseif due < now and not past then
		-- A past time is refused, or means now.
		if kind == 'f' then return -5, '0', 0 end
		due = now
	end
	if key ~= '' then
		set, field = index(tube, key)
		id = redis.call('HGET', set, field)
		local text = id and redis.call('HGET', tag .. ':j', id)
		old = text and read(text)
		-- No error() here: the jobs before this one must be counted.
		if text and not old then return -7, '0', 0 end
		if old and old[STATE] == ENDED then
			if old[ENDS] > now then
				if version > 0 then return -9, '0', 0 end
				return 3, id, old[VERSION]
			end
			forget(id, old)
			old = nil
		end
	end
	if version > 0 and not (old and old[VERSION] == version) then return -9, '0', 0 end
	if mode then
		kept, due, first = decide(mode, span, old, due)
		if kept then return 2, id, old[VERSION] end
	end
	local job = {
		1, WAITING, tonumber(flags), tonumber(ARGV[a + 5]), due, period > 0 and due or 0, now, math.max(0, due - now),
		tonumber(ARGV[a + 6]), period, tonumber(ARGV[a + 8]), tonumber(ARGV[a + 9]), tonumber(ARGV[a + 10]),
		tonumber(ARGV[a + 11]), tonumber(ARGV[a + 12]), 0, 0, 0, 0, 0, 0, 0, 0, 0, tube, key, '', ARGV[a + 2],
	}
	job[GROUP], job[FIRST], job[HOLD] = group or nil, first, mode == 5 and span or nil
	job[HEADERS] = headers or nil
	if keep ~= '0' then job[KEEP] = tonumber(keep) end
	if past then state, left = recall(job, past) end
	if old then
		displace(id, old)
		drop_report(id, old)
		job[VERSION] = old[VERSION] + 1
	else
		seq, fresh = seq + 1, fresh + 1
		id = string.format('%d', seq * head[5] + head[4])
		if field then redis.call('HSET', set, field, id) end
		if state == ENDED then
			ended = ended + 1
			keep_ended(id, job, due, kind == 'd' and now + left or due + span)
			return 0, id, job[VERSION]
		end
		tubes[tube] = (tubes[tube] or 0) + 1
	end
	if state == BURIED then
		inter(id, job, now)
	else
		store(id, job)
		place(id, job)
	end
	return old and 1 or 0, id, job[VERSION]
end

local a = 3
while a < #ARGV do
	local n = #replies
	local has_group, has_past = string.find(ARGV[a + 3], '^%u'), string.find(ARGV[a + 13], '^w')
	local has_headers = string.find(ARGV[a + 13], 'h')
	local headers = a + PUT + (has_group and 1 or 0)
	local past = headers + (has_headers and 1 or 0)
	replies[n + 1], replies[n + 2], replies[n + 3] =
		put(a, has_group and ARGV[a + PUT], has_headers and ARGV[headers], has_past and past)
	a = past + (has_past and PAST or 0)
end
for tube, number in pairs(tubes) do count('t' .. tube, number) end
if ended > 0 then redis.call('HINCRBY', tag .. ':m', 'ended', ended) end
if fresh > 0 then redis.call('HSET', tag .. ':m', 'seq', string.format('%d', seq)) end
return replies
