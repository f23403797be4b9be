-- Note what a worker says of a run. ARGV[3]: the id, ARGV[4]: the token, ARGV[5]: what it says.
-- require part_shard
local id = ARGV[3]
local job = load(id)
if not job or job[STATE] ~= RESERVED or job[TOKEN] ~= tonumber(ARGV[4]) then return -9 end
if job[KEEP] then redis.call('HSET', tag .. ':n', id, ARGV[5]) end
return 0
