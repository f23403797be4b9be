-- Lease ready jobs. ARGV[3]: how many at most, ARGV[4]: the priority of the first ready job in another shard,
-- ARGV[5...]: the tubes.
-- If ARGV[3] goes on with a word for each tube, these are permits: of a tube with a limit (shard_limit.lua), only so many are
-- leased. 'g' and a number: so many groups of the tube follow after the tubes, each its name, how many, and if none, the time
-- until which its limit holds it, or 0.
-- Leases the jobs up to that priority, or else the first job alone: no other shard has a more urgent one. Of a tube with
-- groups, a job comes when it is its turn.
-- Replies the leases, then for each tube the priority of the first job that is left, or -1; -3 if it needs permits, -4 if it
-- needs permits for its groups. With permits, then for each tube of the leases: the place of its group among those given,
-- or 0; its id and its end.
-- require part_shard
-- require part_lease
local most, bound, last = tonumber(string.match(ARGV[3], '^%d+')), tonumber(ARGV[4]), #ARGV
local permits, needs, groups = {}, {}, {}

-- A limit lets no job of a group start until then.
local function hold_group(tube, group, time)
	-- Clocks of nodes differ: it is not asked for again and again.
	time = string.format('%d', math.max(time, now + 500))
	if redis.call('ZREM', tag .. ':o:' .. tube, group) == 0 then return end
	redis.call('ZADD', tag .. ':v:' .. tube, time, group)
	redis.call('ZADD', tag .. ':v', 'LT', time, tube)
	redis.call('HSET', tag .. ':m', 'limited', 1)
	count('h' .. tube, redis.call('ZCARD', ready_set(tube, group)))
	ring(tonumber(time))
end

local function read_permits()
	local given = {}
	for word in string.gmatch(ARGV[3], ' (%w+)') do given[#given + 1] = word end
	if #given == 0 then return end
	last = 4 + #given
	local at = last
	for t = 5, last do
		local listed = tonumber(string.match(given[t - 4], '^g(%d+)'))
		permits[t] = tonumber(given[t - 4]) or 0
		if listed then
			groups[t] = {}
			for i = 1, listed do
				local group, number, time = ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
				if time > 0 then hold_group(ARGV[t], group, time) end
				if number > 0 then table.insert(groups[t], {group, number, i}) end
				permits[t], at = permits[t] + number, at + 3
			end
		end
	end
end

read_permits()
if head[9] then
	for t = 5, last do
		local limit = redis.call('HGET', tag .. ':l', ARGV[t])
		if limit then
			needs[t] = string.match(limit, '^%d+ %d+ %d+ %d+ %d (%d+)') == '0' and -3 or -4
			if needs[t] == -4 and not groups[t] or not permits[t] then permits[t] = 0 end
		else
			permits[t] = groups[t] and permits[t] or nil
		end
	end
end
local found, leases, replies, firsts = {}, {}, {}, {}

-- The next jobs of a tube with groups, one of each in turn. A job comes after those before it, however urgent it is: it is
-- sorted by the least urgent of them.
local function in_turn(t, number)
	local tube, jobs, list, round, before = ARGV[t], {}, groups[t], 0
	local worst, after = -1, ''
	if not list then
		list = {}
		for i, group in ipairs(redis.call('ZRANGE', tag .. ':o:' .. tube, 0, number - 1)) do list[i] = {group, number, 0} end
	end
	repeat
		before = #jobs
		for _, one in ipairs(list) do
			local job = one[2] > round and #jobs < number and
				redis.call('ZRANGE', ready_set(tube, one[1]), round, round, 'WITHSCORES') or {}
			local priority = tonumber(job[2])
			if priority and (priority > worst or priority == worst and job[1] > after) then worst, after = priority, job[1] end
			if priority then jobs[#jobs + 1] = {t, worst, after, job[1], one[1], one[3], #jobs, priority} end
		end
		round = round + 1
	until #jobs == before or #jobs == number
	return jobs
end

-- Find ready jobs of all tubes that are not paused, up to that priority or only the first ones.
local function find(is_first)
	for t = 5, last do
		local tube, wanted = ARGV[t], math.min(permits[t] or most, most)
		local set = tag .. ':r:' .. tube
		local is_paused = head[6] and redis.call('HGET', tag .. ':p', tube)
		if not is_paused and (groups[t] or head[10] and redis.call('EXISTS', tag .. ':o:' .. tube) == 1) then
			for _, job in ipairs(wanted > 0 and in_turn(t, is_first and 1 or wanted) or {}) do
				if is_first or job[2] <= bound then found[#found + 1] = job end
			end
		elseif not is_paused then
			local ready = is_first and redis.call('ZRANGE', set, 0, 0, 'WITHSCORES') or
				redis.call('ZRANGE', set, '-inf', bound, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
			firsts[t] = tonumber(ready[2])
			for i = 1, math.min(#ready, 2 * wanted), 2 do
				local priority = tonumber(ready[i + 1])
				found[#found + 1] = {t, priority, ready[i], ready[i], nil, 0, 0, priority}
			end
		end
	end
end

find(false)
if #found == 0 then
	most = 1
	find(true)
end
if last > 5 then
	table.sort(found, function(a, b)
		if a[2] ~= b[2] then return a[2] < b[2] end
		if a[3] ~= b[3] then return a[3] < b[3] end
		return a[7] < b[7]
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
	ids[i] = string.sub(found[i][4], 2)
end
if #ids > 0 then texts = redis.call('HMGET', tag .. ':j', unpack(ids)) end

local taken, flight, records, tubes, used = {}, {'ZADD', tag .. ':f'}, {'HSET', tag .. ':j'}, {}, {}
for i, id in ipairs(ids) do
	local t, group = found[i][1], found[i][5]
	local tube = ARGV[t]
	local job, set = read(texts[i]), ready_set(tube, group)
	local remove = taken[set] or {tube = tube, group = group, urgent = 0, 'ZREM', set}
	remove[#remove + 1] = found[i][4]
	remove.urgent = remove.urgent + (found[i][8] < 1024 and 1 or 0)
	taken[set], firsts[t] = remove, nil
	if job and skip_old(job) then
		lease(id, job, leases)
		flight[#flight + 1], flight[#flight + 2] = string.format('%d', job[ENDS]), id
		records[#records + 1], records[#records + 2] = id, pack(job)
		tubes[tube] = (tubes[tube] or 0) + 1
		local of = used[t] or {}
		of[#of + 1], of[#of + 2], of[#of + 3] = found[i][6], id, string.format('%d', job[ENDS])
		used[t] = of
	elseif job then
		store(id, job)
		place(id, job)
	end
end
for _, remove in pairs(taken) do
	redis.call(unpack(remove))
	remove_ready(remove.tube, remove.group, #remove - 2, remove.urgent)
end
for i = 1, #ids do
	local group, row = found[i][5], tag .. ':o:' .. ARGV[found[i][1]]
	-- It has had its turn.
	if group and redis.call('ZSCORE', row, group) then join(ARGV[found[i][1]], group) end
end
if #flight > 2 then
	redis.call(unpack(flight))
	redis.call(unpack(records))
	redis.call('HSET', tag .. ':m', 'token', string.format('%d', token))
	for tube, number in pairs(tubes) do count('r' .. tube, number) end
	ring(soonest)
end

replies[1] = leases
for t = 5, last do
	-- What was found first is still the first, unless a job was taken.
	if not firsts[t] then
		local is_paused = head[6] and redis.call('HGET', tag .. ':p', ARGV[t])
		if not is_paused then firsts[t] = select(2, first_of(ARGV[t])) end
	end
	replies[#replies + 1] = firsts[t] or -1
	if firsts[t] and permits[t] == 0 and needs[t] then replies[#replies] = needs[t] end
end
if last < #ARGV or string.find(ARGV[3], ' ') then
	for t = 5, last do replies[#replies + 1] = used[t] or {} end
end
return replies
