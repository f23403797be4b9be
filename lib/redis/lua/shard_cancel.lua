-- Delete a job. Takes the arguments of part_refer. Replies 1, or 0 if the job was reserved; then its tube.
-- require part_shard
-- require part_refer
-- require part_erase
local in_time = job[STATE] ~= RESERVED
displace(id, job)
erase(id, job)
return {in_time and 1 or 0, job[TUBE]}
