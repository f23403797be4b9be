-- Part of a script that shows jobs: the words that describe a job. look.c has the same list.
local function show(id, job, with_body)
	local state = job[STATE]
	if state == WAITING and job[DUE] <= now then state = 2 end
	local text = {id, now, state}
	for i = 1, KICKS do
		if i ~= STATE then text[#text + 1] = string.format('%.0f', job[i]) end
	end
	text[#text + 1] = string.format('%.0f', job[TOKEN])
	text[#text + 1] = string.format('%.0f', job[ENDS])
	text[#text + 1] = string.format('%.0f', job[FIRST] or 0)
	text[#text + 1] = string.format('%.0f', job[HOLD] or 0)
	text[#text + 1] = string.format('%.0f', job[KEEP] or 0)
	text[#text + 1] = job[TUBE]
	text[#text + 1] = job[KEY]
	text[#text + 1] = job[GROUP] or ''
	text[#text + 1] = job[REASON]
	text[#text + 1] = #job[BODY]
	text[#text + 1] = with_body and job[BODY] or ''
	text[#text + 1] = with_body and job[HEADERS] or ''
	return text
end
