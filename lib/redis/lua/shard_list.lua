-- List some jobs. ARGV[3]: the cursor, ARGV[4]: about how many jobs, ARGV[5]: 1 with bodies, ARGV[6]: the number of
-- places, ARGV[7]: the place where to begin.
-- The jobs of one cursor come in the order of their places (a job's number modulo ARGV[6]). A list can end among them.
-- Replies the next cursor, '0' at the end; 1 if the reply became too long for all jobs of this cursor, or 0; then the
-- jobs, each as part_show has it, or its bare id if its record cannot be read.
-- require part_shard
-- require part_show
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
