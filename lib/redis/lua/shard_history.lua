-- The last runs that are kept. ARGV[3]: not after this time in us, 0: any, ARGV[4]: how many, ARGV[5]: of this tube, ARGV[6]:
-- of the job with this id, ARGV[7]: with keys that begin like this; each may be empty.
-- Replies for each, the last one first: when it ended, the id, how, the attempt, tube, key, reason and report.
-- require part_shard
local most, tube, id, prefix = tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7]
local latest = tonumber(ARGV[3])
local PIECE = 64
local replies, last = {}, redis.call('LLEN', tag .. ':x') - 1

local function is_meant(run)
	return run[2] > now and (latest == 0 or run[1] <= latest) and (tube == '' or run[6] == tube)
		and (id == '' or run[3] == id) and string.sub(run[7], 1, #prefix) == prefix
end

-- Most callers want a few of the last ones.
while last >= 0 and #replies < most do
	local runs = redis.call('LRANGE', tag .. ':x', math.max(0, last - PIECE + 1), last)
	for i = #runs, 1, -1 do
		local run = cmsgpack.unpack(runs[i])
		if #replies < most and is_meant(run) then
			replies[#replies + 1] = {string.format('%d', run[1]), run[3], run[4], run[5], run[6], run[7], run[8], run[9]}
		end
	end
	last = last - PIECE
end
return replies
