-- ARGV[3]: an id or, if that is 0, ARGV[4]: a tube, ARGV[5]: a key; ARGV[6]: the version that it must have, or 0.
-- Gives id and job, or replies that there is none.
local id = ARGV[3]
if id == '0' then id = redis.call('HGET', index(ARGV[4], ARGV[5])) end
local job = id and load(id)
if not job then return -11 end
if ARGV[6] ~= '0' and job[VERSION] ~= tonumber(ARGV[6]) then return -9 end
