-- Make delayed or buried jobs ready. ARGV[3]: 'job' and ARGV[4]: the id, or 'tube' and ARGV[4]: the tube, ARGV[5]: how
-- many buried jobs at most. Replies how many were kicked.
-- require part_shard
local function kick(id, job)
	if not job or job[STATE] == RESERVED or (job[STATE] == WAITING and job[DUE] <= now) then return 0 end
	displace(id, job)
	job[DUE], job[TRIES], job[KICKS], job[VERSION] = now, 0, job[KICKS] + 1, job[VERSION] + 1
	place(id, job)
	store(id, job)
	return 1
end

if ARGV[3] == 'job' then return kick(ARGV[4], load(ARGV[4])) end
local buried, most, kicked = tag .. ':b:' .. ARGV[4], tonumber(ARGV[5]), 0
repeat
	local found = redis.call('ZRANGE', buried, 0, most - kicked - 1)
	for _, id in ipairs(found) do
		local job = read(redis.call('HGET', tag .. ':j', id))
		if job and job[STATE] == BURIED then
			kicked = kicked + kick(id, job)
		else
			-- A job that cannot be read leaves the set: it must not hold up those behind it. Its record stays.
			redis.call('ZREM', buried, id)
		end
	end
until kicked >= most or #found == 0
return kicked
