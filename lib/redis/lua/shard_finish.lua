-- Finish leases. ARGV[3...]: ids and tokens in turn.
-- Replies for each the tube of a job that was deleted, 0 for a job that waits again, or an error. If the home counts
-- the tube's jobs, a table of this and the tube and group.
-- require part_shard
local ids, replies, gone, flight, tubes = {}, {}, {'HDEL', tag .. ':j'}, {'ZREM', tag .. ':f'}, {}
local kept = 0
for a = 3, #ARGV, 2 do ids[#ids + 1] = ARGV[a] end

-- Keep an ended job, so that its key is not free yet.
local function keep(id, job)
	displace(id, job)
	keep_ended(id, job, now, now + job[HOLD])
	count('t' .. job[TUBE], -1)
	kept = kept + 1
	return job[TUBE]
end

local function finish(id, job)
	end_run(id, job, 5, job[TRIES] + 1)
	if job[HOLD] then return keep(id, job) end
	if job[PERIOD] == 0 then
		gone[#gone + 1], flight[#flight + 1] = id, id
		if job[KEY] ~= '' then redis.call('HDEL', index(job[TUBE], job[KEY])) end
		tubes[job[TUBE]] = (tubes[job[TUBE]] or 0) + 1
		return job[TUBE]
	end
	local passed = job[PASSED]
	displace(id, job)
	-- A job that was kicked before its time still has this period before it.
	if job[BASE] <= now then job[BASE] = job[BASE] + (passed + 1) * job[PERIOD] end
	job[DUE], job[TRIES], job[REASON], job[VERSION] = job[BASE], 0, '', job[VERSION] + 1
	place(id, job)
	store(id, job)
	return 0
end

local seen = {}
for i, text in ipairs(redis.call('HMGET', tag .. ':j', unpack(ids))) do
	local job = not seen[ids[i]] and read(text)
	if job and job[STATE] == RESERVED and job[TOKEN] == tonumber(ARGV[2 + 2 * i]) then
		seen[ids[i]] = true
		replies[i] = finish(ids[i], job)
		if counts_jobs(job[TUBE]) then replies[i] = {replies[i], job[TUBE], job[GROUP] or ''} end
	else
		replies[i] = text and not read(text) and -7 or -9
	end
end
if #gone > 2 then
	redis.call(unpack(gone))
	redis.call(unpack(flight))
	for tube, number in pairs(tubes) do
		count('t' .. tube, -number)
		count('r' .. tube, -number)
	end
end
if #gone - 2 + kept > 0 then redis.call('HINCRBY', tag .. ':m', 'ended', #gone - 2 + kept) end
return replies
