/* Sets, stores, reads and lists limits. limit.c enforces them. */
#include "lib/jobs/local/rule.h"

#include <string.h>

#include "lib/jobs/local/group.h"
#include "lib/jobs/local/limiter.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/local/writing.h"

#define LIMIT_KEY "limit"
#define WEIGHT_KEY "weight"

/*
 * A limit in META, under "limit" and a number of its own. Its value:
 *
 *     | format, 1 | running, starts, per, burst, even, epoch | whose, 1 | length of the tube's name, 1 | name | group |
 *
 * `even` is valid if the store was closed in that epoch and has not been opened since.
 *
 * A weight lies beside it, where 0.1 does not look, under "weight" and a number of its own. Its value:
 *
 *     | format, 1 | weight, 8 | length of the tube's name, 1 | name | group |
 */
enum {
	FORMAT = 1,
	NUMBERS = 6,
	NAME_AT = 1 + NUMBERS * 8 + 2,
	VALUE_MAX = NAME_AT + WW_TUBE_MAX + WW_JOB_GROUP_MAX,
	KEY_SIZE = sizeof LIMIT_KEY - 1 + 8,
	WEIGHT_KEY_SIZE = sizeof WEIGHT_KEY - 1 + 8,
	WEIGHT_NAME_AT = 1 + 8 + 1,
	WEIGHT_MAX = WEIGHT_NAME_AT + WW_TUBE_MAX + WW_JOB_GROUP_MAX
};

/* Whose a limit is. */
enum whose { OF_TUBE, OF_EACH, OF_GROUP };

/* A limit and where it belongs. */
struct found_rule {
	struct tube *tube;
	enum whose whose;
	struct rule *rule;
	struct limiter *limiter; /* NULL for OF_EACH */
};

static enum whose whose_is(const struct ww_limit_ref *ref)
{
	return ref->group_length ? OF_GROUP : ref->each ? OF_EACH : OF_TUBE;
}

/* Find the place of a limit in a tube. WW_ENOTFOUND: there is none of that group. */
static int find(struct tube *tube, enum whose whose, struct store_bytes name, struct found_rule *found)
{
	struct limits *limits = tube->limits;
	struct group *group = whose == OF_GROUP ? ww_jobs_group_find(tube, name) : NULL;

	if (!limits || (whose == OF_GROUP && !group))
		return WW_ENOTFOUND;
	found->tube = tube;
	found->whose = whose;
	found->limiter = whose == OF_TUBE ? &limits->whole : group ? &group->limiter : NULL;
	found->rule = found->limiter ? &found->limiter->rule : &limits->each;
	return WW_OK;
}

/* The same, but make what is missing. */
static int make(struct tube *tube, enum whose whose, struct store_bytes name, struct found_rule *found)
{
	struct limits *limits;
	uint32_t number;
	int error = ww_jobs_limits_make(tube, &limits);

	if (!error && whose == OF_GROUP)
		error = ww_jobs_group_get(tube, name, &number);
	return error ? error : find(tube, whose, name, found);
}

/* ---- Stored */

static struct store_bytes pair_key(unsigned char key[KEY_SIZE], uint64_t number)
{
	memcpy(key, LIMIT_KEY, sizeof LIMIT_KEY - 1);
	store_write64(key + sizeof LIMIT_KEY - 1, number);
	return (struct store_bytes){key, KEY_SIZE};
}

static int is_limit(struct store_bytes key)
{
	return key.size == KEY_SIZE && memcmp(key.data, LIMIT_KEY, sizeof LIMIT_KEY - 1) == 0;
}

static struct store_bytes weight_key(unsigned char key[WEIGHT_KEY_SIZE], uint64_t number)
{
	memcpy(key, WEIGHT_KEY, sizeof WEIGHT_KEY - 1);
	store_write64(key + sizeof WEIGHT_KEY - 1, number);
	return (struct store_bytes){key, WEIGHT_KEY_SIZE};
}

static int is_weight(struct store_bytes key)
{
	return key.size == WEIGHT_KEY_SIZE && memcmp(key.data, WEIGHT_KEY, sizeof WEIGHT_KEY - 1) == 0;
}

int ww_jobs_is_limit(struct store_bytes key)
{
	return is_limit(key) || is_weight(key);
}

static int write_rule(struct jobs_local *jobs, const struct found_rule *found, uint64_t epoch)
{
	const struct ww_limit *limit = &found->rule->limit;
	const struct group *group = found->limiter ? found->limiter->group : NULL;
	const uint64_t numbers[NUMBERS] = {
	    limit->running, limit->starts, limit->per, limit->burst, found->limiter ? found->limiter->even : 0, epoch};
	size_t size = NAME_AT + found->tube->name_length;
	unsigned char key[KEY_SIZE];
	unsigned char value[VALUE_MAX];

	value[0] = FORMAT;
	for (int i = 0; i < NUMBERS; i++)
		store_write64(value + 1 + 8 * i, numbers[i]);
	value[NAME_AT - 2] = (unsigned char)found->whose;
	value[NAME_AT - 1] = (unsigned char)found->tube->name_length;
	memcpy(value + NAME_AT, found->tube->name, found->tube->name_length);
	if (group) {
		memcpy(value + size, group->name, group->length);
		size += group->length;
	}
	return jobs->store.ops->put(
	    jobs->store.self, STORE_META, pair_key(key, found->rule->number), (struct store_bytes){value, size});
}

static int erase_pair(struct jobs_local *jobs, struct store_bytes key)
{
	int error = jobs->store.ops->remove(jobs->store.self, STORE_META, key);

	return error == WW_ENOTFOUND ? WW_OK : error;
}

static int erase_rule(struct jobs_local *jobs, const struct found_rule *found)
{
	unsigned char key[KEY_SIZE];

	return erase_pair(jobs, pair_key(key, found->rule->number));
}

/* Write the weight of a group, or erase it if it is 1. */
static int write_weight(struct jobs_local *jobs, const struct found_rule *found)
{
	const struct group *group = found->limiter->group;
	const struct tube *tube = found->tube;
	size_t size = WEIGHT_NAME_AT + tube->name_length + group->length;
	unsigned char key[WEIGHT_KEY_SIZE];
	unsigned char value[WEIGHT_MAX] = {FORMAT};

	if (!group->weighed)
		return WW_OK;
	if (found->rule->limit.weight <= 1)
		return erase_pair(jobs, weight_key(key, group->weighed->number));
	if (!group->weighed->number)
		group->weighed->number = ++jobs->limit_numbers;
	store_write64(value + 1, found->rule->limit.weight);
	value[WEIGHT_NAME_AT - 1] = (unsigned char)tube->name_length;
	memcpy(value + WEIGHT_NAME_AT, tube->name, tube->name_length);
	memcpy(value + WEIGHT_NAME_AT + tube->name_length, group->name, group->length);
	return jobs->store.ops->put(
	    jobs->store.self, STORE_META, weight_key(key, group->weighed->number), (struct store_bytes){value, size});
}

/* Call fn for each limit of a tube until it returns something else than 0, which is then the answer. */
typedef int rule_fn(struct found_rule *found, void *context);

static int each_rule(struct tube *tube, rule_fn *fn, void *context)
{
	const struct store_bytes none = {NULL, 0};
	struct found_rule found;
	int result = 0;

	if (!tube->limits || !tube->limits->rules)
		return 0;
	for (int whose = OF_TUBE; whose <= OF_EACH && !result; whose++)
		if (find(tube, (enum whose)whose, none, &found) == 0 && rule_is_set(found.rule))
			result = fn(&found, context);
	for (struct group *group = tube->limits->named; group && !result; group = group->hh.next)
		if (rule_is_set(&group->limiter.rule)) {
			found = (struct found_rule){tube, OF_GROUP, &group->limiter.rule, &group->limiter};
			result = fn(&found, context);
		}
	return result;
}

static int store_one(struct found_rule *found, void *context)
{
	struct jobs_local *jobs = context;

	return rule_limits(found->rule) ? write_rule(jobs, found, jobs->meta.epoch) : WW_OK;
}

int ww_jobs_rules_store(struct jobs_local *jobs)
{
	int error = WW_OK;

	for (struct tube *tube = jobs->tubes; tube && !error; tube = tube->hh.next)
		error = each_rule(tube, store_one, jobs);
	return error;
}

static int read_rule(struct jobs_local *jobs, uint64_t number, struct store_bytes value)
{
	const unsigned char *bytes = value.data;
	char name[WW_TUBE_MAX + 1] = "";
	uint64_t numbers[NUMBERS];
	struct found_rule found;
	struct tube *tube;
	size_t length;

	if (value.size <= NAME_AT || value.size > VALUE_MAX || bytes[0] != FORMAT || bytes[NAME_AT - 2] > OF_GROUP)
		return WW_ECORRUPT;
	length = bytes[NAME_AT - 1];
	if (!length || length > WW_TUBE_MAX || length > value.size - NAME_AT)
		return WW_ECORRUPT;
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = store_read64(bytes + 1 + 8 * i);
	memcpy(name, bytes + NAME_AT, length);
	struct store_bytes group = {bytes + NAME_AT + length, value.size - NAME_AT - length};
	if (ww_jobs_tube_get(jobs, name, &tube) || make(tube, (enum whose)bytes[NAME_AT - 2], group, &found))
		return WW_ENOMEM;
	*found.rule = (struct rule){{numbers[0], numbers[1], numbers[2], numbers[3], 1}, number};
	tube->limits->rules++;
	if (!found.limiter)
		tube->limits->each_used = ww_jobs_time(&jobs->elapsed);
	else if (numbers[5] == jobs->meta.epoch)
		found.limiter->even = numbers[4];
	else
		ww_jobs_limiter_use_up(found.limiter, ww_jobs_time(&jobs->elapsed));
	if (number > jobs->limit_numbers)
		jobs->limit_numbers = number;
	return WW_OK;
}

static int read_weight(struct jobs_local *jobs, uint64_t number, struct store_bytes value)
{
	const unsigned char *bytes = value.data;
	char name[WW_TUBE_MAX + 1] = "";
	struct found_rule found;
	struct tube *tube;

	if (value.size <= WEIGHT_NAME_AT || value.size > WEIGHT_MAX || bytes[0] != FORMAT)
		return WW_ECORRUPT;
	uint64_t weight = store_read64(bytes + 1);
	size_t length = bytes[WEIGHT_NAME_AT - 1];
	if (weight <= 1 || weight > WW_LIMIT_WEIGHT_MAX || !length || length > WW_TUBE_MAX ||
	    length >= value.size - WEIGHT_NAME_AT)
		return WW_ECORRUPT;
	memcpy(name, bytes + WEIGHT_NAME_AT, length);
	struct store_bytes group = {bytes + WEIGHT_NAME_AT + length, value.size - WEIGHT_NAME_AT - length};
	if (ww_jobs_tube_get(jobs, name, &tube) || make(tube, OF_GROUP, group, &found) ||
	    ww_jobs_group_weigh(found.limiter->group))
		return WW_ENOMEM;
	if (!rule_is_set(found.rule)) {
		(void)ww_jobs_limit_default(&found.rule->limit);
		tube->limits->rules++;
	}
	found.rule->limit.weight = weight;
	found.limiter->group->weighed->number = number;
	if (number > jobs->limit_numbers)
		jobs->limit_numbers = number;
	return WW_OK;
}

static int read_limits(struct jobs_local *jobs)
{
	unsigned char from[KEY_SIZE];
	struct store_bytes key;
	struct store_bytes value;
	int error = jobs->store.ops->seek(jobs->store.self, STORE_META, pair_key(from, 0), &key, &value);

	while (!error && is_limit(key)) {
		error = read_rule(jobs, store_read64((const char *)key.data + KEY_SIZE - 8), value);
		if (!error)
			error = jobs->store.ops->next(jobs->store.self, STORE_META, &key, &value);
	}
	return error == WW_ENOTFOUND ? WW_OK : error;
}

static int read_weights(struct jobs_local *jobs)
{
	unsigned char from[WEIGHT_KEY_SIZE];
	struct store_bytes key;
	struct store_bytes value;
	int error = jobs->store.ops->seek(jobs->store.self, STORE_META, weight_key(from, 0), &key, &value);

	while (!error && is_weight(key)) {
		error = read_weight(jobs, store_read64((const char *)key.data + WEIGHT_KEY_SIZE - 8), value);
		if (!error)
			error = jobs->store.ops->next(jobs->store.self, STORE_META, &key, &value);
	}
	return error == WW_ENOTFOUND ? WW_OK : error;
}

int ww_jobs_rules_open(struct jobs_local *jobs)
{
	int error = read_limits(jobs);

	return error ? error : read_weights(jobs);
}

/* ---- Set */

/* Another limit holds: jobs held by the former one try again. */
static void look_again(struct tube *tube)
{
	struct limits *limits = tube->limits;

	ww_jobs_limiter_cancel(&limits->whole);
	for (struct group *group = limits->named; group; group = group->hh.next) {
		ww_jobs_limiter_cancel(&group->limiter);
		if (group->place == GROUP_HELD)
			ww_jobs_group_let(group);
		if (!group->entries)
			ww_jobs_group_idle(group);
	}
	ww_jobs_tube_touch(tube);
	ww_jobs_tube_notify(tube);
}

void ww_jobs_rule_undo(struct tube *tube, struct rule *rule, const struct rule *was)
{
	tube->limits->rules += (uint64_t)rule_is_set(was) - (uint64_t)rule_is_set(rule);
	*rule = *was;
	look_again(tube);
}

/* Whether a new limit has another weight and is else the same. */
static int weighs_only(const struct ww_limit *was, const struct ww_limit *limit)
{
	int limits_nothing = !was->running && !was->starts && !limit->running && !limit->starts;

	return was->weight != limit->weight &&
	       (limits_nothing || (was->running == limit->running && was->starts == limit->starts &&
	                              was->per == limit->per && was->burst == limit->burst));
}

/* A changed rate begins with its burst used up: changing it gains nothing. */
static void change(struct found_rule *found, const struct ww_limit *limit)
{
	struct limits *limits = found->tube->limits;
	uint64_t had = found->rule->limit.starts ? ww_jobs_time(&found->tube->jobs->elapsed) : 0;
	int was = rule_is_set(found->rule);
	int is_weight = found->whose == OF_GROUP && weighs_only(&found->rule->limit, limit);

	found->rule->limit = *limit;
	limits->rules += (uint64_t)rule_is_set(found->rule) - (uint64_t)was;
	if (is_weight) {
		ww_jobs_group_idle(found->limiter->group);
		return;
	}
	if (found->limiter)
		ww_jobs_limiter_use_up(found->limiter, had);
	else {
		limits->each_used = had;
		for (struct group *group = limits->named; group; group = group->hh.next)
			if (!rule_limits(&group->limiter.rule))
				ww_jobs_limiter_use_up(&group->limiter, had);
	}
	look_again(found->tube);
}

static int set(struct jobs_local *jobs, struct found_rule *found, const struct ww_limit *limit)
{
	struct undo undo = {.kind = UNDO_RULE, .tube = found->tube, .rule = found->rule, .rule_was = *found->rule};
	int error = ww_jobs_note(jobs, &undo);

	if (error)
		return ww_jobs_broken(jobs, error);
	if (!found->rule->number)
		found->rule->number = ++jobs->limit_numbers;
	change(found, limit);
	error = rule_limits(found->rule) ? write_rule(jobs, found, 0) : erase_rule(jobs, found);
	if (!error && found->whose == OF_GROUP)
		error = write_weight(jobs, found);
	return ww_jobs_broken(jobs, error);
}

/* A call about one limit: a new one, or where the answer goes. */
struct limit_call {
	const struct ww_limit_ref *ref;
	const struct ww_limit *limit;
	struct ww_limit_info *info;
};

static int set_limit(struct jobs_local *jobs, void *arguments)
{
	const struct limit_call *call = arguments;
	const struct store_bytes name = {call->ref->group, call->ref->group_length};
	const enum whose whose = whose_is(call->ref);
	struct tube *tube = ww_jobs_tube_find(jobs, call->ref->tube);
	struct found_rule found;
	int error;

	if (!rule_is_set(&(struct rule){.limit = *call->limit})) {
		if (!tube || find(tube, whose, name, &found) || !rule_is_set(found.rule))
			return WW_OK;
		error = ww_jobs_writing(jobs);
	} else {
		error = ww_jobs_writing_more(jobs, VALUE_MAX + WEIGHT_MAX);
		if (!error)
			error = ww_jobs_tube_get(jobs, call->ref->tube, &tube);
		if (!error)
			error = make(tube, whose, name, &found);
		if (!error && call->limit->weight > 1)
			error = ww_jobs_group_weigh(found.limiter->group);
	}
	return error ? error : set(jobs, &found, call->limit);
}

int ww_jobs_local_limit_set(struct ww_jobs *handle, const struct ww_limit_ref *ref, const struct ww_limit *limit)
{
	struct limit_call call = {.ref = ref, .limit = limit};

	return ww_jobs_submit(local_of(handle), set_limit, &call);
}

/* ---- Shown */

static void fill_info(const struct found_rule *found, struct ww_limit_info *info)
{
	const struct limiter *limiter = found->limiter;
	const struct group *group = limiter ? limiter->group : NULL;
	uint64_t now = ww_jobs_time(&found->tube->jobs->elapsed);

	*info = (struct ww_limit_info){
	    .ref = {.tube = found->tube->name, .each = found->whose == OF_EACH}, .limit = found->rule->limit};
	if (!info->limit.weight)
		info->limit.weight = 1;
	if (!limiter)
		return;
	if (group) {
		info->ref.group = group->name;
		info->ref.group_length = group->length;
	}
	info->running = ww_jobs_limiter_running(limiter);
	if (ww_jobs_limiter_holds(limiter))
		info->held = group ? ww_jobs_group_ready(group) : found->tube->ready;
	if (ww_jobs_limiter_allows(limiter) > now)
		info->left = ww_jobs_limiter_allows(limiter) - now;
}

static int get_limit(struct jobs_local *jobs, void *arguments)
{
	const struct limit_call *call = arguments;
	const struct store_bytes name = {call->ref->group, call->ref->group_length};
	struct tube *tube = ww_jobs_tube_find(jobs, call->ref->tube);
	struct found_rule found;

	if (!tube || find(tube, whose_is(call->ref), name, &found) || !rule_is_set(found.rule))
		return WW_ENOTFOUND;
	fill_info(&found, call->info);
	call->info->ref = *call->ref;
	return WW_OK;
}

int ww_jobs_local_limit_get(struct ww_jobs *handle, const struct ww_limit_ref *ref, struct ww_limit_info *info)
{
	struct limit_call call = {.ref = ref, .info = info};

	return ww_jobs_submit(local_of(handle), get_limit, &call);
}

struct limit_list_call {
	const char *tube;
	ww_limit_fn *fn;
	void *context;
};

static int show(struct found_rule *found, void *context)
{
	const struct limit_list_call *call = context;
	struct ww_limit_info info;

	fill_info(found, &info);
	return call->fn(&info, call->context);
}

static int list(struct jobs_local *jobs, void *arguments)
{
	struct limit_list_call *call = arguments;
	struct tube *only = call->tube ? ww_jobs_tube_find(jobs, call->tube) : NULL;
	int result = 0;

	if (call->tube)
		return only ? each_rule(only, show, call) : 0;
	for (struct tube *tube = jobs->tubes; tube && !result; tube = tube->hh.next)
		result = each_rule(tube, show, call);
	return result;
}

int ww_jobs_local_limit_list(struct ww_jobs *handle, const char *tube, ww_limit_fn *fn, void *context)
{
	struct limit_list_call call = {tube, fn, context};

	return ww_jobs_submit(local_of(handle), list, &call);
}
