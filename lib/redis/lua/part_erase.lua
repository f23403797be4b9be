-- Part of a script that deletes jobs: forget a job that has already been taken from its set.
local function erase(id, job)
	redis.call('HDEL', tag .. ':j', id)
	if job[KEY] ~= '' then redis.call('HDEL', index(job[TUBE], job[KEY])) end
	count('t' .. job[TUBE], -1)
	redis.call('HINCRBY', tag .. ':m', 'ended', 1)
end
