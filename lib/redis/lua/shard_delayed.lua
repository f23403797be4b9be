-- require part_shard
-- Look for delayed jobs of the tube ARGV[3] in order of due times, from the place ARGV[5] in slice ARGV[4] on, at most ARGV[6] of them. Replies
-- the slice and place where to go on (slice -1: that was all), then due time and id of each.
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
