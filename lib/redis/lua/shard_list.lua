-- require part_shard
-- require part_show
-- Some of the shard's jobs: from the cursor ARGV[3], about ARGV[4] of them, with bodies if ARGV[5] is 1. What one cursor leads to is in order of
-- places, a job's number modulo ARGV[6], so that a list can end in the midst of it; those with a place below ARGV[7] have been.
-- Replies the next cursor, '0' at the end, and whether more is here; then the jobs: of one that cannot be read its id alone.
local MUCH = 1048576
local page = redis.call('HSCAN', tag .. ':j', ARGV[3], 'COUNT', ARGV[4])
local found, size = {}, 0
for i = 1, #page[2], 2 do
	local at = math.floor(page[2][i] / head[5]) % ARGV[6]
	if at >= tonumber(ARGV[7]) then found[#found + 1] = {at, page[2][i], page[2][i + 1]} end
end
table.sort(found, function(a, b) return a[1] < b[1] end)

local replies = {page[1], 0}
for i, one in ipairs(found) do
	if size > MUCH then
		replies[2] = 1
		break
	end
	size = size + #one[3]
	local job = read(one[3])
	replies[i + 2] = job and show(one[2], job, ARGV[5] == '1') or one[2]
end
return replies
