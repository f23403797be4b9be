-- Lease ready jobs. ARGV[3]: how many at most, ARGV[4]: the priority of the first ready job in another shard,
-- ARGV[5...]: the tubes.
-- ARGV[3] may go on with the permits for each tube; of a tube with a limit (shard_limit.lua), only so many are leased.
-- Leases the jobs up to that priority, or else the first job alone: no other shard has a more urgent one.
-- Replies the leases, then for each tube the priority of the first job that is left, or -1; -3 if it needs permits.
-- require part_shard
-- require part_lease
local most, bound = tonumber(string.match(ARGV[3], '^%d+')), tonumber(ARGV[4])
local permits = {}
if head[9] then
	local given = {}
	for number in string.gmatch(ARGV[3], ' (%d+)') do given[#given + 1] = tonumber(number) end
	for t = 5, #ARGV do
		if redis.call('HEXISTS', tag .. ':l', ARGV[t]) == 1 then permits[t] = given[t - 4] or 0 end
	end
end
local found, leases, replies, firsts = {}, {}, {}, {}

-- Find ready jobs of all tubes that are not paused; the arguments are ZRANGE's.
local function find(...)
	for t = 5, #ARGV do
		local pause = head[6] and redis.call('HGET', tag .. ':p', ARGV[t])
		local ready = pause and {} or redis.call('ZRANGE', tag .. ':r:' .. ARGV[t], ...)
		firsts[t] = ready[2]
		for i = 1, math.min(#ready, 2 * (permits[t] or most)), 2 do
			found[#found + 1] = {t, tonumber(ready[i + 1]), ready[i]}
		end
	end
end

find('-inf', bound, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
if #found == 0 then
	most = 1
	find(0, 0, 'WITHSCORES')
end
if #ARGV > 5 then
	table.sort(found, function(a, b)
		if a[2] ~= b[2] then return a[2] < b[2] end
		return a[3] < b[3]
	end)
end

-- If a periodic job skips, move it past the runs that are too old. Returns whether it is still due.
local function skip_old(job)
	if job[PERIOD] == 0 or job[MISSED] ~= 2 or now - job[BASE] <= job[SKIP] then return true end
	job[BASE] = job[BASE] + math.ceil((now - job[SKIP] - job[BASE]) / job[PERIOD]) * job[PERIOD]
	job[DUE] = job[BASE]
	return job[DUE] <= now
end

local ids, texts = {}, {}
for i = 1, math.min(most, #found) do
	ids[i] = string.sub(found[i][3], 2)
end
if #ids > 0 then texts = redis.call('HMGET', tag .. ':j', unpack(ids)) end

local taken, flight, records, tubes = {}, {'ZADD', tag .. ':f'}, {'HSET', tag .. ':j'}, {}
for i, id in ipairs(ids) do
	local tube = ARGV[found[i][1]]
	local job = read(texts[i])
	taken[tube] = taken[tube] or {'ZREM', tag .. ':r:' .. tube}
	table.insert(taken[tube], found[i][3])
	if job and skip_old(job) then
		lease(id, job, leases)
		flight[#flight + 1], flight[#flight + 2] = string.format('%d', job[ENDS]), id
		records[#records + 1], records[#records + 2] = id, pack(job)
		tubes[tube] = (tubes[tube] or 0) + 1
	elseif job then
		store(id, job)
		place(id, job)
	end
end
for _, remove in pairs(taken) do redis.call(unpack(remove)) end
if #flight > 2 then
	redis.call(unpack(flight))
	redis.call(unpack(records))
	redis.call('HSET', tag .. ':m', 'token', string.format('%d', token))
	for tube, number in pairs(tubes) do count('r' .. tube, number) end
	ring(soonest)
end

replies[1] = leases
for t = 5, #ARGV do
	-- What was found first is still the first, unless a job was taken.
	if not firsts[t] or taken[ARGV[t]] then
		local pause = head[6] and redis.call('HGET', tag .. ':p', ARGV[t])
		local first = pause and {} or redis.call('ZRANGE', tag .. ':r:' .. ARGV[t], 0, 0, 'WITHSCORES')
		firsts[t] = first[2]
	end
	replies[#replies + 1] = tonumber(firsts[t] or -1)
	if firsts[t] and permits[t] == 0 then replies[#replies] = -3 end
end
return replies
