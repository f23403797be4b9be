-- Lease one job that waits or is buried. ARGV[3]: the id. Replies the lease, whether its tube has a limit, and its group.
-- require part_shard
-- require part_lease
local id = ARGV[3]
local job = load(id)
if not job then return -11 end
if job[STATE] == RESERVED then return -12 end
displace(id, job)
if job[STATE] == BURIED or job[DUE] > now then job[DUE] = now end
local replies = {}
lease(id, job, replies)
redis.call('ZADD', tag .. ':f', job[ENDS], id)
redis.call('HSET', tag .. ':m', 'token', token)
count('r' .. job[TUBE], 1)
store(id, job)
ring(soonest)
replies[#replies + 1] = head[9] and redis.call('HEXISTS', tag .. ':l', job[TUBE]) or 0
replies[#replies + 1] = job[GROUP] or ''
return replies
