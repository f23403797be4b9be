-- Put jobs. ARGV[3...]: 15 arguments for each. Replies the result, id and version of each.
-- What a due time means is one letter, behind which a mode of the key may stand, and its span in us. If the letter is a
-- capital, the job's group is one more argument. Behind the flags k may stand, and how long its runs are kept in us.
-- Out of memory, Redis still runs a script whose first write needs none, and what is due may write such things first.
-- Therefore this script begins with a write that needs memory in Redis's eyes, and changes nothing: it is refused then.
redis.call('SETRANGE', KEYS[1], 0, '')
-- require part_shard
local PUT = 15
local replies, fresh, tubes = {}, 0, {}
local seq = tonumber(head[7])

-- By a mode (the numbers are those of enum ww_key_mode): whether the old job, which may be nil, is kept; otherwise the due
-- time and when the first of the debounced puts was.
local function decide(mode, span, old, due)
	local waits = old and old[STATE] == WAITING
	if mode == 1 or mode == 5 then return old, due end
	local left = waits and math.max(0, old[DUE] - now)
	if mode == 2 then return waits and left <= due - now, due end
	if mode == 3 then return waits and left >= due - now, due end
	local first = waits and old[RESERVES] == 0 and old[FIRST] or now
	return false, math.min(due, math.max(now, first + span)), first
end

local function put(a, group)
	local tube, key, version = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 14])
	local kind, due = string.lower(ARGV[a + 3]), tonumber(ARGV[a + 4])
	local period = tonumber(ARGV[a + 7])
	local mode, span, first, kept
	local flags, keep = string.match(ARGV[a + 13], '^(%d+)k?(%d*)$')
	if #kind > 1 then
		mode, span, kind = tonumber(string.sub(kind, 2, 2)), tonumber(string.sub(kind, 3)), string.sub(kind, 1, 1)
	end
	local id, old, set, field
	if kind == 'd' then
		due = now + due
	elseif due < now then
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
		1, WAITING, tonumber(flags), tonumber(ARGV[a + 5]), due, period > 0 and due or 0, now, due - now,
		tonumber(ARGV[a + 6]), period, tonumber(ARGV[a + 8]), tonumber(ARGV[a + 9]), tonumber(ARGV[a + 10]),
		tonumber(ARGV[a + 11]), tonumber(ARGV[a + 12]), 0, 0, 0, 0, 0, 0, 0, 0, 0, tube, key, '', ARGV[a + 2],
	}
	job[GROUP], job[FIRST], job[HOLD] = group or nil, first, mode == 5 and span or nil
	job[KEEP] = tonumber(keep)
	if old then
		displace(id, old)
		drop_report(id, old)
		job[VERSION] = old[VERSION] + 1
	else
		seq, fresh = seq + 1, fresh + 1
		id = string.format('%d', seq * head[5] + head[4])
		if field then redis.call('HSET', set, field, id) end
		tubes[tube] = (tubes[tube] or 0) + 1
	end
	store(id, job)
	place(id, job)
	return old and 1 or 0, id, job[VERSION]
end

local a = 3
while a < #ARGV do
	local n = #replies
	local has_group = string.find(ARGV[a + 3], '^%u')
	replies[n + 1], replies[n + 2], replies[n + 3] = put(a, has_group and ARGV[a + PUT])
	a = a + PUT + (has_group and 1 or 0)
end
for tube, number in pairs(tubes) do count('t' .. tube, number) end
if fresh > 0 then redis.call('HSET', tag .. ':m', 'seq', string.format('%d', seq)) end
return replies
