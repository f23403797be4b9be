-- require part_shard
-- End or lengthen the lease of ARGV[3] with token ARGV[4]: ARGV[5] is 'return', 'release', 'bury' or 'touch'; ARGV[6] a priority, ARGV[7] a delay in us, less
-- than 0 for the job's own, ARGV[8] a chance, ARGV[9] the reason, if there is one.
local id, what = ARGV[3], ARGV[5]
local job = load(id)
if not job or job[STATE] ~= RESERVED or job[TOKEN] ~= tonumber(ARGV[4]) then return -9 end
if what == 'touch' then
	job[ENDS] = now + job[RUN]
	redis.call('ZADD', tag .. ':f', job[ENDS], id)
	store(id, job)
	ring(job[ENDS])
	return job[ENDS]
end
displace(id, job)
if what == 'return' then
	place(id, job)
	store(id, job)
	return 0
end
if ARGV[9] then job[REASON] = ARGV[9] end
job[PRIORITY] = tonumber(ARGV[6])
if what == 'bury' then
	bury(id, job, now)
	return 0
end
job[RELEASES] = job[RELEASES] + 1
return try_again(id, job, tonumber(ARGV[7]), tonumber(ARGV[8]), now)
