-- Put jobs. ARGV[3...]: 15 arguments for each. Replies the result, id and version of each.
-- Out of memory, Redis still runs a script whose first write needs none, and what is due may write such things first.
-- Therefore this script begins with a write that needs memory in Redis's eyes, and changes nothing: it is refused then.
redis.call('SETRANGE', KEYS[1], 0, '')
-- require part_shard
local PUT = 15
local replies, fresh, tubes = {}, 0, {}
local seq = tonumber(head[7])

local function put(a)
	local tube, key, version = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 14])
	local kind, due = ARGV[a + 3], tonumber(ARGV[a + 4])
	local period = tonumber(ARGV[a + 7])
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
	end
	if version > 0 and not (old and old[VERSION] == version) then return -9, '0', 0 end
	local job = {
		1, WAITING, tonumber(ARGV[a + 13]), tonumber(ARGV[a + 5]), due, period > 0 and due or 0, now, due - now,
		tonumber(ARGV[a + 6]), period, tonumber(ARGV[a + 8]), tonumber(ARGV[a + 9]), tonumber(ARGV[a + 10]),
		tonumber(ARGV[a + 11]), tonumber(ARGV[a + 12]), 0, 0, 0, 0, 0, 0, 0, 0, 0, tube, key, '', ARGV[a + 2],
	}
	if old then
		displace(id, old)
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

for a = 3, #ARGV, PUT do
	local n = #replies
	replies[n + 1], replies[n + 2], replies[n + 3] = put(a)
end
for tube, number in pairs(tubes) do count('t' .. tube, number) end
if fresh > 0 then redis.call('HSET', tag .. ':m', 'seq', string.format('%d', seq)) end
return replies
