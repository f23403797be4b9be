-- Move a waiting job to another due time. Takes the arguments of part_refer, ARGV[7]: 'd' if ARGV[8] is a delay, 't' if
-- it is a time. Replies the job's version.
-- require part_shard
-- require part_refer
if job[STATE] == RESERVED then return -12 end
if job[STATE] == BURIED then return -1 end
local due = tonumber(ARGV[8])
if ARGV[7] == 'd' then due = now + due end
due = math.max(due, now)
displace(id, job)
job[DUE], job[DELAY], job[VERSION] = due, due - now, job[VERSION] + 1
if job[PERIOD] > 0 then job[BASE] = due end
store(id, job)
place(id, job)
return job[VERSION]
