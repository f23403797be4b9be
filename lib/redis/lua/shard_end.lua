-- End or lengthen a lease. ARGV[3]: the id, ARGV[4]: the token, ARGV[5]: 'return', 'release', 'bury' or 'touch',
-- ARGV[6]: the priority, ARGV[7]: the delay in us, below 0 for the job's own backoff, ARGV[8]: a chance from 0 to 1,
-- ARGV[9]: the reason, if there is one.
-- Replies the new end for 'touch'; otherwise 0, or 1 if a released job was buried. If the home counts the tube's jobs, a table
-- of this and the tube and group; for 'return', if it counts starts alone, of this and the tube.
-- require part_shard
local id, what = ARGV[3], ARGV[5]
local job = load(id)
if not job or job[STATE] ~= RESERVED or job[TOKEN] ~= tonumber(ARGV[4]) then return -9 end
local counts = counts_jobs(job[TUBE])
local function reply(value)
	return counts and {value, job[TUBE], job[GROUP] or ''} or value
end
if what == 'touch' then
	job[ENDS] = now + job[RUN]
	redis.call('ZADD', tag .. ':f', job[ENDS], id)
	store(id, job)
	ring(job[ENDS])
	return reply(job[ENDS])
end
displace(id, job)
if what == 'return' then
	drop_report(id, job)
	local delay = tonumber(ARGV[7])
	if delay > 0 then
		job[DELAY], job[DUE], job[VERSION] = delay, now + delay, job[VERSION] + 1
	end
	place(id, job)
	store(id, job)
	return counts == false and {0, job[TUBE]} or reply(0)
end
if ARGV[9] then job[REASON] = ARGV[9] end
job[PRIORITY] = tonumber(ARGV[6])
if what == 'bury' then
	bury(id, job, now, job[TRIES] + 1)
	return reply(0)
end
job[RELEASES] = job[RELEASES] + 1
return reply(try_again(id, job, tonumber(ARGV[7]), tonumber(ARGV[8]), now, 6))
