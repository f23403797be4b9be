/* Limits: how many jobs of a tube run at once and how often one starts. They are set, stored and kept here. */
#include <string.h>

#include "lib/jobs/local/local_internal.h"

/* So much lateness of a start is made up while jobs wait. */
#define SLACK (10 * WW_MILLISECOND)

/*
 * A limit in META, under "limit" and a number of its own. Its value:
 *
 *     | format, 1 | running, starts, per, burst | even | epoch | length of the tube's name, 1 | name |
 *
 * `even` is valid if the store was closed in that epoch and has not been opened since.
 */
enum {
	FORMAT = 1,
	NUMBERS = 6,
	NAME_AT = 1 + NUMBERS * 8 + 1,
	VALUE_MAX = NAME_AT + WW_TUBE_MAX,
	KEY_SIZE = sizeof LIMIT_KEY - 1 + 8
};

/* ---- The rate */

/* From one start to the next. */
static uint64_t interval_of(const struct ww_limit *limit)
{
	return limit->starts ? (limit->per + limit->starts - 1) / limit->starts : 0;
}

/* When the next start is allowed. */
static uint64_t allowed_at(const struct ww_limit *limit, const struct meter *meter)
{
	uint64_t early = (limit->burst - 1) * interval_of(limit);

	return limit->starts && meter->even > early ? meter->even - early : 0;
}

static void use_up(const struct ww_limit *limit, struct meter *meter, uint64_t now)
{
	meter->even = limit->starts ? now + limit->burst * interval_of(limit) : 0;
	meter->waits = 0;
}

static void count_start(const struct ww_limit *limit, struct meter *meter, uint64_t now)
{
	uint64_t from = meter->waits && now > SLACK ? now - SLACK : now;

	if (limit->starts)
		meter->even = (meter->even > from ? meter->even : from) + interval_of(limit);
}

/* ---- Holding jobs */

static int is_set(const struct rule *rule)
{
	return rule->limit.running || rule->limit.starts;
}

static int end_hold(struct jobs_local *jobs, struct jobs_call *firing)
{
	struct limits *limits = firing->context;

	if (ww_jobs_take_firing(jobs, firing, &limits->meter.timer))
		ww_jobs_tube_notify(limits->tube);
	return WW_OK;
}

static void on_hold_end(struct ww_driver *driver, const struct ww_firing *firing, void *user)
{
	struct limits *limits = user;

	(void)driver;
	ww_jobs_submit_firing(limits->tube->jobs, end_hold, limits, firing);
}

int ww_jobs_limit_holds(const struct tube *tube)
{
	const struct limits *limits = tube->limits;

	if (!limits)
		return 0;
	if (limits->rule.limit.running && tube->reserved >= limits->rule.limit.running)
		return 1;
	return ww_jobs_time(&tube->jobs->elapsed) < allowed_at(&limits->rule.limit, &limits->meter);
}

int ww_jobs_limit_hold(struct tube *tube)
{
	struct limits *limits = tube->limits;
	struct timeline *line = &tube->jobs->elapsed;

	if (!ww_jobs_limit_holds(tube))
		return 0;
	uint64_t at = allowed_at(&limits->rule.limit, &limits->meter);
	/* The end of a lease will tell. */
	limits->meter.waits = ww_jobs_time(line) < at;
	if (!limits->meter.waits || limits->meter.timer)
		return 1;
	int error = ww_driver_schedule_at(line->driver, at - line->offset, on_hold_end, limits, &limits->meter.timer);
	return error ? error : 1;
}

void ww_jobs_limit_start(struct tube *tube)
{
	struct limits *limits = tube->limits;

	count_start(&limits->rule.limit, &limits->meter, ww_jobs_time(&tube->jobs->elapsed));
	if (!tube->ready)
		limits->meter.waits = 0;
}

void ww_jobs_limit_return(struct tube *tube)
{
	uint64_t interval = interval_of(&tube->limits->rule.limit);

	if (tube->limits->meter.even > interval)
		tube->limits->meter.even -= interval;
}

void ww_jobs_limit_end(struct tube *tube)
{
	if (tube->limits->rule.limit.running && tube->ready)
		ww_jobs_tube_notify(tube);
}

int ww_jobs_limit_is_set(const struct tube *tube)
{
	return tube->limits && is_set(&tube->limits->rule);
}

/* ---- Stored */

static struct store_bytes pair_key(unsigned char key[KEY_SIZE], uint64_t number)
{
	memcpy(key, LIMIT_KEY, sizeof LIMIT_KEY - 1);
	store_write64(key + sizeof LIMIT_KEY - 1, number);
	return (struct store_bytes){key, KEY_SIZE};
}

static int store_rule(struct jobs_local *jobs, const struct tube *tube, const struct rule *rule, uint64_t epoch)
{
	const struct ww_limit *limit = &rule->limit;
	const uint64_t numbers[NUMBERS] = {
	    limit->running, limit->starts, limit->per, limit->burst, tube->limits->meter.even, epoch};
	unsigned char key[KEY_SIZE];
	unsigned char value[VALUE_MAX];

	value[0] = FORMAT;
	for (int i = 0; i < NUMBERS; i++)
		store_write64(value + 1 + 8 * i, numbers[i]);
	value[NAME_AT - 1] = (unsigned char)tube->name_length;
	memcpy(value + NAME_AT, tube->name, tube->name_length);
	return jobs->store.ops->put(jobs->store.self, STORE_META, pair_key(key, rule->number),
	    (struct store_bytes){value, NAME_AT + tube->name_length});
}

int ww_jobs_limits_store(struct jobs_local *jobs)
{
	int error = WW_OK;

	for (const struct tube *tube = jobs->tubes; tube && !error; tube = tube->hh.next)
		if (ww_jobs_limit_is_set(tube))
			error = store_rule(jobs, tube, &tube->limits->rule, jobs->meta.epoch);
	return error;
}

static int limits_of(struct tube *tube, struct limits **limits)
{
	if (!tube->limits)
		tube->limits = ww_jobs_resize(tube->jobs, NULL, 0, sizeof *tube->limits);
	if (!tube->limits)
		return WW_ENOMEM;
	tube->limits->tube = tube;
	*limits = tube->limits;
	return WW_OK;
}

static int read_rule(struct jobs_local *jobs, uint64_t number, struct store_bytes value)
{
	const unsigned char *bytes = value.data;
	char name[WW_TUBE_MAX + 1] = "";
	uint64_t numbers[NUMBERS];
	struct limits *limits;
	struct tube *tube;

	if (value.size <= NAME_AT || value.size > VALUE_MAX || bytes[0] != FORMAT ||
	    bytes[NAME_AT - 1] != value.size - NAME_AT)
		return WW_ECORRUPT;
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = store_read64(bytes + 1 + 8 * i);
	memcpy(name, bytes + NAME_AT, value.size - NAME_AT);
	if (ww_jobs_tube_get(jobs, name, &tube) || limits_of(tube, &limits))
		return WW_ENOMEM;
	limits->rule = (struct rule){{numbers[0], numbers[1], numbers[2], numbers[3]}, number};
	limits->meter.even = numbers[4];
	if (numbers[5] != jobs->meta.epoch)
		use_up(&limits->rule.limit, &limits->meter, ww_jobs_time(&jobs->elapsed));
	if (number > jobs->limit_numbers)
		jobs->limit_numbers = number;
	return WW_OK;
}

int ww_jobs_limits_open(struct jobs_local *jobs)
{
	unsigned char from[KEY_SIZE];
	struct store_bytes key;
	struct store_bytes value;
	int error = jobs->store.ops->seek(jobs->store.self, STORE_META, pair_key(from, 0), &key, &value);

	while (!error && ww_jobs_is_limit(key)) {
		error = read_rule(jobs, store_read64((const char *)key.data + KEY_SIZE - 8), value);
		if (!error)
			error = jobs->store.ops->next(jobs->store.self, STORE_META, &key, &value);
	}
	return error == WW_ENOTFOUND ? WW_OK : error;
}

int ww_jobs_is_limit(struct store_bytes key)
{
	return key.size == KEY_SIZE && memcmp(key.data, LIMIT_KEY, sizeof LIMIT_KEY - 1) == 0;
}

/* ---- Set and told */

static int write_rule(struct jobs_local *jobs, struct tube *tube, const struct rule *rule)
{
	unsigned char key[KEY_SIZE];
	int error;

	if (is_set(rule))
		return store_rule(jobs, tube, rule, 0);
	error = jobs->store.ops->remove(jobs->store.self, STORE_META, pair_key(key, rule->number));
	return error == WW_ENOTFOUND ? WW_OK : error;
}

int ww_jobs_local_limit_set(struct jobs_local *jobs, struct jobs_call *call)
{
	int sets = call->limit->running || call->limit->starts;
	struct tube *tube = ww_jobs_tube_find(jobs, call->tube);
	struct limits *limits;
	int error;

	if (!sets && (!tube || !ww_jobs_limit_is_set(tube)))
		return WW_OK;
	error = sets ? ww_jobs_writing_more(jobs, VALUE_MAX) : ww_jobs_writing(jobs);
	if (!error)
		error = ww_jobs_tube_get(jobs, call->tube, &tube);
	if (!error)
		error = limits_of(tube, &limits);
	if (error)
		return error;
	struct undo undo = {.kind = UNDO_RULE, .tube = tube, .rule = limits->rule};
	error = ww_jobs_note(jobs, &undo);
	if (error)
		return ww_jobs_broken(jobs, error);
	if (!limits->rule.number)
		limits->rule.number = ++jobs->limit_numbers;
	if (limits->rule.limit.starts)
		use_up(call->limit, &limits->meter, ww_jobs_time(&jobs->elapsed));
	limits->rule.limit = *call->limit;
	ww_jobs_limit_changed(tube);
	return ww_jobs_broken(jobs, write_rule(jobs, tube, &limits->rule));
}

void ww_jobs_limit_changed(struct tube *tube)
{
	ww_jobs_cancel_timer(tube->jobs, tube->jobs->elapsed.driver, &tube->limits->meter.timer);
	ww_jobs_tube_touch(tube);
	ww_jobs_tube_notify(tube);
}

static void fill_info(const struct tube *tube, struct ww_limit_info *info)
{
	const struct limits *limits = tube->limits;
	uint64_t at = allowed_at(&limits->rule.limit, &limits->meter);
	uint64_t now = ww_jobs_time(&tube->jobs->elapsed);

	*info = (struct ww_limit_info){.ref = {.tube = tube->name},
	    .limit = limits->rule.limit,
	    .running = tube->reserved,
	    .held = ww_jobs_limit_holds(tube) ? tube->ready : 0,
	    .left = at > now ? at - now : 0};
}

int ww_jobs_local_limit_get(struct jobs_local *jobs, struct jobs_call *call)
{
	const struct tube *tube = ww_jobs_tube_find(jobs, call->tube);

	if (!tube || !ww_jobs_limit_is_set(tube))
		return WW_ENOTFOUND;
	fill_info(tube, call->limit_info);
	call->limit_info->ref = *call->ref;
	return WW_OK;
}

int ww_jobs_local_limit_list(struct jobs_local *jobs, struct jobs_call *call)
{
	struct ww_limit_info info;
	const struct tube *only = call->tube ? ww_jobs_tube_find(jobs, call->tube) : NULL;
	int result = 0;

	for (const struct tube *tube = call->tube ? only : jobs->tubes; tube && !result; tube = tube->hh.next) {
		if (ww_jobs_limit_is_set(tube)) {
			fill_info(tube, &info);
			result = call->limit_fn(&info, call->context);
		}
		if (only)
			break;
	}
	return result;
}
