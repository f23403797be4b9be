/* Says in Lua how BullMQ, Laravel, Resque and Celery keep delayed jobs in Redis, and how one is removed. */
#include "tools/weekwheel/moving/library.h"

#include <stddef.h>
#include <string.h>

/* A member that a script fails to read stays, with this reason; the others move. */
#define ODD "'what Redis keeps of it cannot be read: mend or remove it'"

/* By rank: to look behind a score for an offset takes as long as the offset is large. Those of +inf, the last, are never due. */
#define FOUND                                                                                                          \
	" local found = redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1] + ARGV[2] - 1, 'WITHSCORES')"                   \
	" while found[#found] == 'inf' do found[#found] = nil found[#found] = nil end"                                 \
	" local rows = {#found / 2}"

/* The priority of a job whose library says 0 for the first, or nothing. */
#define PRIORITY                                                                                                       \
	" local function priority_of(text) local n = tonumber(text) or 0"                                              \
	"  return string.format('%.0f', 1024 + (n >= 0 and math.min(n, 4294966271) or 0)) end"

/*
 * BullMQ: the members of bull:QUEUE:delayed are ids, the scores have milliseconds in front of 12 bits that order what is
 * due together. Each job is a hash. One without a priority is before those of priority 1. The members of
 * bull:QUEUE:repeat are job schedulers, with the milliseconds of their next jobs, which are jobs already: a scheduler
 * moves before its next job, and the schedule begins behind that. BullMQ tries a job again only if it has more than one
 * attempt.
 */
static const char bullmq_take[] =
    "local base, queue, set = KEYS[1]:match('^(.*:([^:]+)):(%w+)$')"
    " if set ~= 'delayed' and set ~= 'repeat' then return {0} end" PRIORITY
    " local function encoded(text) return (text:gsub('[^%w]', function(c) return ('%%%02X'):format(c:byte()) end)) end"
    " local function body(name, data, opts) return '\"name\":' .. cjson.encode(name or '')"
    "  .. ',\"data\":' .. (data or 'null') .. ',\"opts\":' .. (opts or '{}') .. '}' end" FOUND
    " local function add(...) for i = 1, 9 do rows[#rows + 1] = (select(i, ...)) end end"
    " local waits = {fixed = ' backoff=%.3f backoff-max=%.3f', exponential = ' backoff=%.3f backoff-max=30000000'}"
    " local function limits_of(opts, made)"
    "  local own = cjson.decode(opts or '{}')"
    "  local most = math.min((tonumber(own.attempts) or 1) - (tonumber(made) or 0), 1000000)"
    "  local how = type(own.backoff) == 'table' and own.backoff or {type = 'fixed', delay = own.backoff}"
    "  local wait = math.min(tonumber(how.delay) or 0, 3e10) / 1000"
    "  return (' attempts=%.0f' .. (wait > 0 and waits[how.type] or '')):format(math.max(1, most), wait, wait)"
    " end"
    " local function add_job(id, score)"
    "  local name, data, opts, priority, parent, schedule, made, old_made = unpack(redis.call('HMGET',"
    "   base .. ':' .. id, 'name', 'data', 'opts', 'priority', 'parentKey', 'rjk', 'atm', 'attemptsMade'))"
    "  local text, reason, limits = '{\"id\":' .. cjson.encode(id) .. ',' .. body(name, data, opts), '', ''"
    "  local next = schedule and redis.call('ZSCORE', base .. ':repeat', schedule)"
    "  if next and id == 'repeat:' .. schedule .. ':' .. next then return"
    "  elseif not data then reason = 'its hash is missing: remove that member'"
    "  elseif parent then reason = 'its parent in a flow waits for it: let BullMQ do both'"
    "  elseif redis.call('EXISTS', base .. ':' .. id .. ':processed') == 1 then"
    "   reason = 'the results of its children in a flow are in Redis: let BullMQ do it'"
    "  elseif not pcall(cjson.decode, text) then reason = 'its data are no JSON that Redis can read: mend or remove that job'"
    "  else limits = limits_of(opts, made or old_made) end"
    "  add(id, score, text, queue, ('%.3f'):format(math.max(0, math.floor(tonumber(score) / 4096) / 1000)),"
    "   priority_of(priority), reason, '', limits)"
    " end"
    " local function add_scheduler(id, score)"
    "  local name, data, opts, every, pattern, zone, last, limit = unpack(redis.call('HMGET', KEYS[1] .. ':' .. id,"
    "   'name', 'data', 'opts', 'every', 'pattern', 'tz', 'endDate', 'limit'))"
    "  local next = redis.call('HMGET', KEYS[1] .. ':' .. id .. ':' .. score, 'data', 'priority')"
    "  zone = zone or ARGV[3]"
    "  local text, words, reason = '{' .. body(name, data or next[1], opts), 'none', ''"
    "  if not name or not (every or pattern) then reason = 'its hash is missing: remove that job scheduler'"
    "  elseif not (data or next[1]) or not pcall(cjson.decode, text) then"
    "   reason = 'its data are missing or no JSON that Redis can read: mend or remove that job scheduler'"
    "  elseif limit then reason = 'it has a limit of runs: let it run, or give it an endDate'"
    "  elseif pattern and not zone then reason = 'it has no tz: name one with --tz'"
    "  elseif every and tonumber(every) % 1000 ~= 0 then reason = 'it repeats by parts of seconds: give it whole ones'"
    "  else"
    "   words = 'cron=' .. encoded(pattern or '@every ' .. ('%d'):format(every / 1000) .. 's')"
    "    .. ' zone=' .. encoded(zone or 'UTC') .. ' start=' .. ('%.3f'):format((score + (every or 1000)) / 1000)"
    "    .. (last and (' end=%.3f'):format(last / 1000) or '') .. limits_of(opts)"
    "  end"
    "  add(id, score, text, queue, '0', priority_of(next[2]), reason, words, '')"
    " end"
    " for i = 1, #found, 2 do"
    "  if not pcall(set == 'repeat' and add_scheduler or add_job, found[i], found[i + 1]) then"
    "   add(found[i], found[i + 1], found[i], queue, '0', '1024', " ODD ", '', '') end"
    " end"
    " return rows";

/* What has been changed meanwhile is something else. */
static const char bullmq_drop[] =
    "if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end"
    " local base, set = KEYS[1]:match('^(.*):(%w+)$')"
    " local key = (set == 'repeat' and KEYS[1] or base) .. ':' .. ARGV[1]"
    " local data, single = unpack(redis.call('HMGET', key, 'data', 'deid'))"
    " if not (data or set == 'repeat') then return 0 end"
    " if data and not ARGV[3]:find(',\"data\":' .. data .. ',\"opts\":', 1, true) then return 0 end"
    " redis.call('ZREM', KEYS[1], ARGV[1])"
    " redis.call('DEL', key, key .. ':logs')"
    " if single and redis.call('GET', base .. ':de:' .. single) == ARGV[1] then"
    "  redis.call('DEL', base .. ':de:' .. single) end"
    " return 1";

/* Laravel: the members of queues:QUEUE:delayed are payloads, the scores seconds. */
static const char laravel_take[] =
    "local queue = KEYS[1]:match('queues:(.+):delayed$'):gsub('^{(.*)}$', '%1')" FOUND " for i = 1, #found, 2 do"
    "  local is_read, payload = pcall(cjson.decode, found[i])"
    "  local is_one = is_read and type(payload) == 'table' and type(payload.job) == 'string'"
    "  local id = is_one and (payload.uuid or payload.id)"
    "  for _, word in ipairs({type(id) == 'string' and id or '', found[i + 1], found[i], queue,"
    "   string.format('%.9f', math.max(0, tonumber(found[i + 1]))), '1024',"
    "   is_one and '' or 'it is no payload of Laravel that Redis can read: mend or remove that member', '', ''}) do rows[#rows + 1] = word end"
    " end"
    " return rows";

static const char laravel_drop[] =
    "return redis.call('ZSCORE', KEYS[1], ARGV[3]) == ARGV[2] and redis.call('ZREM', KEYS[1], ARGV[3]) or 0";

/*
 * Resque: the list resque:delayed:SECONDS has the jobs of that second, and may have the same one several times. What
 * has moved is counted for two days, so that the next of them has another key than the one before.
 */
static const char resque_take[] =
    "local base, due = KEYS[1]:match('^(.*):delayed:(%d+)$')"
    " local found = redis.call('LRANGE', KEYS[1], ARGV[1], ARGV[1] + ARGV[2] - 1)"
    " local rows, seen = {#found}, {}"
    " for _, item in ipairs(found) do"
    "  local hash = redis.sha1hex(item)"
    "  local before = tonumber(redis.call('HGET', base .. ':weekwheel:moved', due .. hash) or 0) + (seen[hash] or 0)"
    "  seen[hash] = (seen[hash] or 0) + 1"
    "  local is_read, job = pcall(cjson.decode, item)"
    "  local is_one = is_read and type(job) == 'table'"
    "  for _, word in ipairs({'', tostring(before), item, is_one and type(job.queue) == 'string' and job.queue or '', due,"
    "   '1024', is_one and '' or 'it is no object of JSON that Redis can read: mend or remove it', '', ''}) do rows[#rows + 1] = word end"
    " end"
    " return rows";

static const char resque_drop[] =
    "local base, due = KEYS[1]:match('^(.*):delayed:(%d+)$')"
    " local moved = base .. ':weekwheel:moved'"
    " redis.call('HINCRBY', moved, due .. redis.sha1hex(ARGV[3]), 1)"
    " redis.call('EXPIRE', moved, 172800)"
    " local removed = redis.call('LREM', KEYS[1], 1, ARGV[3])"
    " redis.pcall('SREM', base .. ':timestamps:' .. ARGV[3], 'delayed:' .. due)"
    " if redis.call('LLEN', KEYS[1]) == 0 then redis.pcall('ZREM', base .. ':delayed_queue_schedule', due) end"
    " return removed";

/*
 * Celery: a message with an ETA is in the list of its queue, or, once a worker has it, in the hash unacked. Behind the
 * name of a queue may be a priority. Other lists and other messages are left alone.
 */
static const char celery_take[] =
    "local base = KEYS[1]:match('^(.*)unacked_index$')"
    " local found = redis.call(base and 'ZRANGE' or 'LRANGE', KEYS[1], ARGV[1], ARGV[1] + ARGV[2] - 1)"
    " local rows = {#found}" PRIORITY
    " local function add(...) for i = 1, 9 do rows[#rows + 1] = (select(i, ...)) end end"
    " local function add_message(text)"
    "  local queue = KEYS[1]:gsub('\\6\\22.*', '')"
    "  local tag = text"
    "  if base then"
    "   text = redis.call('HGET', base .. 'unacked', tag) or ''"
    "   local message, exchange, key = text:match('^%[({.*}),%s*\"([^\"]*)\",%s*\"([^\"]*)\"%]$')"
    "   text, queue = message or text, key or ''"
    "   for _, binding in ipairs(message and redis.call('SMEMBERS', base .. '_kombu.binding.' .. exchange) or {}) do"
    "    local from, to = binding:match('^(.*)\\6\\22.*\\6\\22(.*)$')"
    "    if from == key then queue = to end"
    "   end"
    "  end"
    "  local is_read, message = pcall(cjson.decode, text)"
    "  local headers = is_read and type(message) == 'table' and message.headers"
    "  if type(headers) == 'table' and type(headers.eta) == 'string' and type(headers.id) == 'string' then"
    "   local properties = type(message.properties) == 'table' and message.properties or {}"
    "   add(headers.id, headers.eta, text, queue, headers.eta, priority_of(properties.priority),"
    "    base and properties.delivery_tag ~= tag and 'its delivery_tag is not its field in unacked: remove it' or '', '', '')"
    "  end"
    " end"
    " for _, text in ipairs(found) do"
    "  if not pcall(add_message, text) then add(text, '', text, '', '', '1024', " ODD ", '', '') end"
    " end"
    " return rows";

static const char celery_drop[] = "local base = KEYS[1]:match('^(.*)unacked_index$')"
                                  " if not base then return redis.call('LREM', KEYS[1], 1, ARGV[3]) end"
                                  " local tag = cjson.decode(ARGV[3]).properties.delivery_tag"
                                  " redis.call('ZREM', KEYS[1], tag)"
                                  " return redis.call('HDEL', base .. 'unacked', tag)";

/* Of the sorted sets of BullMQ, delayed and repeat alone have such names. */
static const struct library libraries[] = {
    {"bullmq", "bull", ":*:[dr]e[lp]*", "zset", NULL, NULL, 0, 0, bullmq_take, bullmq_drop},
    {"celery", "", "*", "list", "unacked_index", NULL, 0, 1, celery_take, celery_drop},
    {"laravel", "*", "queues:?*:delayed", "zset", NULL, "ZCOUNT", 0, 0, laravel_take, laravel_drop},
    {"resque", "resque", ":delayed:*", "list", NULL, "LLEN", 1, 0, resque_take, resque_drop},
};

const struct library *library_find(const char *scheme)
{
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
		if (strcmp(libraries[i].scheme, scheme) == 0)
			return &libraries[i];
	return NULL;
}
