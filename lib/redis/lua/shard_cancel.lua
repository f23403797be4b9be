-- require part_shard
-- require part_refer
-- require part_erase
-- Replies 1, or 0 if it is being delivered, and the tube.
local in_time = job[STATE] ~= RESERVED
displace(id, job)
erase(id, job)
return {in_time and 1 or 0, job[TUBE]}
