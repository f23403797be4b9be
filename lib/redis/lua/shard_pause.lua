-- Pause a tube. ARGV[3]: the tube, ARGV[4]: for how many us; 0 ends a pause.
-- require part_shard
local span = tonumber(ARGV[4])
redis.call('HSET', tag .. ':p', ARGV[3], string.format('%.0f %.0f', now + span, span))
redis.call('HSET', tag .. ':m', 'paused', 1)
head[6] = '1'
if span == 0 then unpause() else ring(now + span) end
return 0
