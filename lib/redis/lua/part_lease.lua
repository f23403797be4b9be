-- Part of a script that reserves: lease jobs.
-- Tokens grow with every delivery and with time, so they also grow in a Redis that was restored from an older copy.
local token = tonumber(head[8] or 0)
local soonest = NEVER

-- Lease a job that is in no set. Appends the sixteen values of the lease to replies; lease.c reads them.
local function lease(id, job, replies)
	token = math.max(token + 1, now)
	local passed = 0
	if job[PERIOD] > 0 and job[MISSED] == 0 and now > job[BASE] then
		passed = math.floor((now - job[BASE]) / job[PERIOD])
	end
	job[STATE], job[TOKEN], job[PASSED], job[ENDS] = RESERVED, token, passed, now + job[RUN]
	job[RESERVES] = job[RESERVES] + 1
	soonest = math.min(soonest, job[ENDS])
	local n = #replies
	replies[n + 1], replies[n + 2], replies[n + 3] = id, string.format('%d', token), job[ENDS]
	replies[n + 4], replies[n + 5], replies[n + 6] = job[TRIES] + 1, passed, job[TUBE]
	replies[n + 7], replies[n + 8], replies[n + 9] = job[BODY], job[PRIORITY], job[KEY]
	replies[n + 10], replies[n + 11] = job[BACKOFF], job[CREATED]
	replies[n + 12], replies[n + 13], replies[n + 14] = job[BASE], job[ATTEMPTS], job[KICKS]
	replies[n + 15], replies[n + 16] = math.max(0, now - job[DUE]), job[HEADERS] or ''
end
