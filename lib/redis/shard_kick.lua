-- require part_shard
-- Make jobs ready: the job ARGV[4] ('job' in ARGV[3]) if it is delayed or buried, or up to ARGV[5] buried ones of the tube ARGV[4] ('tube').
-- Replies how many.
local function kick(id)
	local job = load(id)
	if not job or job[STATE] == RESERVED or (job[STATE] == WAITING and job[DUE] <= now) then return 0 end
	displace(id, job)
	job[DUE], job[TRIES], job[KICKS], job[VERSION] = now, 0, job[KICKS] + 1, job[VERSION] + 1
	place(id, job)
	store(id, job)
	return 1
end

if ARGV[3] == 'job' then return kick(ARGV[4]) end
local kicked = 0
for _, id in ipairs(redis.call('ZRANGE', tag .. ':b:' .. ARGV[4], 0, tonumber(ARGV[5]) - 1)) do
	kicked = kicked + kick(id)
end
return kicked
