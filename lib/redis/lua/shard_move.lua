-- require part_shard
-- require part_refer
-- Another due time: ARGV[7] says whether ARGV[8] is a delay ('d') or a time ('t'). Replies the version.
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
