-- Part of a script that works on one job: find it, and check its version.
-- ARGV[3]: the id, or 0 and ARGV[4]: the tube, ARGV[5]: the key. ARGV[6]: the version that it must have, or 0.
-- Leaves id and job, or replies the error.
local id = ARGV[3]
if id == '0' then id = redis.call('HGET', index(ARGV[4], ARGV[5])) end
local job = id and load(id)
if not job then return -11 end
if ARGV[6] ~= '0' and job[VERSION] ~= tonumber(ARGV[6]) then return -9 end
