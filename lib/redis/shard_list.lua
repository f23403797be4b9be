-- require part_shard
-- require part_show
-- Some of the shard's jobs, in no order: from the cursor ARGV[3], about ARGV[4] of them, with bodies if ARGV[5] is 1. Replies the next cursor, '0' at the end,
-- and the jobs.
local page = redis.call('HSCAN', tag .. ':j', ARGV[3], 'COUNT', ARGV[4])
local replies = {page[1]}
for i = 1, #page[2], 2 do
	replies[#replies + 1] = show(page[2][i], cmsgpack.unpack(page[2][i + 1]), ARGV[5] == '1')
end
return replies
