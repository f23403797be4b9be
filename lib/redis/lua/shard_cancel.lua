-- Delete a job. Takes the arguments of part_refer. Replies 1, or 0 if the job was reserved; then its tube, its id, whether the home
-- counts the tube's jobs, and its group.
-- require part_shard
if ARGV[3] == '0' then
	-- The key of a job that has ended is free from now on.
	local id = redis.call('HGET', index(ARGV[4], ARGV[5]))
	local ended = id and read(redis.call('HGET', tag .. ':j', id))
	if ended and ended[STATE] == ENDED and ended[ENDS] > now then
		forget(id, ended)
		return {1, 0, id, 0, ''}
	end
end
-- require part_refer
-- require part_erase
local in_time = job[STATE] ~= RESERVED
displace(id, job)
drop_report(id, job)
erase(id, job)
return {in_time and 1 or 0, job[TUBE], id, counts_jobs(job[TUBE]) and 1 or 0, job[GROUP] or ''}
