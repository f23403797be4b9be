-- Count the jobs that are due in each span of time from now on. ARGV[3]: the span in us, ARGV[4]: how many spans.
-- Jobs that are already due count in the first. Replies the counts.
-- require part_shard
local span, spans = tonumber(ARGV[3]), tonumber(ARGV[4])
local counts = {}
for i = 1, spans do counts[i] = 0 end

local function add(i, number)
	if i < spans then counts[i + 1] = counts[i + 1] + number end
end

local all = redis.call('HGETALL', tag .. ':c')
for i = 1, #all, 2 do
	local what = string.sub(all[i], 1, 1)
	if what == 't' then add(0, redis.call('ZCARD', tag .. ':r:' .. string.sub(all[i], 2))) end
	if what == 'g' then add(0, tonumber(all[i + 1])) end
end
add(0, redis.call('ZCARD', tag .. ':f'))
for _, name in ipairs(redis.call('ZRANGE', tag .. ':s', '-inf', math.floor((now + span * spans) / slice), 'BYSCORE')) do
	local from = tonumber(name) * slice
	local first = math.max(0, math.floor((from - now) / span))
	local last = math.max(0, math.floor((from + slice - 1 - now) / span))
	local set = tag .. ':d:' .. name
	local number = redis.call('ZCARD', set)
	last = math.min(last, spans - 1)
	if first == last and (from + slice - 1 - now) / span < spans then
		add(first, number)
	elseif last - first < number then
		-- Let Redis count: there may be millions.
		for i = first, last do
			local low = i == 0 and '-inf' or string.format('%.0f', now + i * span)
			add(i, redis.call('ZCOUNT', set, low, string.format('%.0f', now + (i + 1) * span - 1)))
		end
	else
		local found = redis.call('ZRANGE', set, 0, -1, 'WITHSCORES')
		for i = 2, #found, 2 do add(math.max(0, math.floor((found[i] - now) / span)), 1) end
	end
end
return counts
