-- Search the slices for delayed jobs of a tube, in the order of due times. ARGV[3]: the tube, ARGV[4], ARGV[5]: the
-- slice and the place in it where to begin, ARGV[6]: how many jobs at most.
-- Replies the slice and place where to go on (slice -1: the end), then due time and id of each job.
-- require part_shard
local want, looked = tonumber(ARGV[6]), 0
local slices = redis.call('ZRANGE', tag .. ':s', tonumber(ARGV[4]), '+inf', 'BYSCORE', 'LIMIT', 0, 64)
local from, replies = tonumber(ARGV[5]), {-1, 0}

for i, name in ipairs(slices) do
	if i > 1 or tonumber(name) ~= tonumber(ARGV[4]) then from = 0 end
	repeat
		local found = redis.call('ZRANGE', tag .. ':d:' .. name, from, from + 255, 'WITHSCORES')
		for f = 1, #found, 2 do
			local job = read(redis.call('HGET', tag .. ':j', found[f]))
			looked, from = looked + 1, from + 1
			if job and job[TUBE] == ARGV[3] then
				replies[#replies + 1], replies[#replies + 2] = tonumber(found[f + 1]), found[f]
			end
			if looked >= 2000 or #replies >= 2 + 2 * want then
				replies[1], replies[2] = tonumber(name), from
				return replies
			end
		end
	until #found < 512
end
if #slices == 64 then replies[1] = tonumber(slices[64]) + 1 end
return replies
