-- require part_shard
-- Count what is due in each of ARGV[4] spans of ARGV[3] us from now on; what is due already counts for the first.
local span, spans = tonumber(ARGV[3]), tonumber(ARGV[4])
local counts = {}
for i = 1, spans do counts[i] = 0 end

local function add(i, number)
	if i < spans then counts[i + 1] = counts[i + 1] + number end
end

local all = redis.call('HGETALL', tag .. ':c')
for i = 1, #all, 2 do
	if string.sub(all[i], 1, 1) == 't' then add(0, redis.call('ZCARD', tag .. ':r:' .. string.sub(all[i], 2))) end
end
add(0, redis.call('ZCARD', tag .. ':f'))
for _, name in ipairs(redis.call('ZRANGE', tag .. ':s', '-inf', math.floor((now + span * spans) / slice), 'BYSCORE')) do
	local from = tonumber(name) * slice
	local first = math.max(0, math.floor((from - now) / span))
	local last = math.max(0, math.floor((from + slice - 1 - now) / span))
	if first == last then
		add(first, redis.call('ZCARD', tag .. ':d:' .. name))
	else
		for _, score in ipairs(redis.call('ZRANGE', tag .. ':d:' .. name, 0, -1, 'WITHSCORES')) do
			counts.odd = not counts.odd
			if not counts.odd then add(math.max(0, math.floor((score - now) / span)), 1) end
		end
	end
end
counts.odd = nil
return counts
