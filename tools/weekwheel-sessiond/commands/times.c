/* Reads deadlines in commands, and applies them. */
#include "tools/weekwheel-sessiond/commands/times.h"

#include "tools/weekwheel-sessiond/commands/events.h"

static int invalid(struct request *request, const struct times *times)
{
	reply_error(request->conn, "ERR invalid expire time in '%s' command", times->name);
	return -1;
}

int times_read_one(struct request *request, size_t number, int64_t unit_ms, int is_absolute, struct times *times)
{
	int64_t value;

	if (request_whole(request, number, &value) != 0)
		return -1;
	if (value <= 0 || value > INT64_MAX / unit_ms)
		return invalid(request, times);
	value *= unit_ms;
	/* A smaller one cannot overflow, whatever the time is. */
	if (!is_absolute && value > INT64_MAX / 2 && value > INT64_MAX - data_wall_ms(request->data))
		return invalid(request, times);
	times->ms = value;
	times->is_absolute = is_absolute;
	times->flags |= TIMES_GIVEN;
	return 0;
}

/* An option followed by a number. */
static const struct unit {
	const char *name;
	int64_t ms;
	int is_absolute;
} units[] = {{"EX", 1000, 0}, {"PX", 1, 0}, {"EXAT", 1000, 1}, {"PXAT", 1, 1}};

static const struct unit *unit_find(const struct request *request, size_t number)
{
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (request_is(request, number, units[i].name))
			return &units[i];
	return NULL;
}

/* An option that is a word. Returns its flag, or 0. */
static unsigned word_find(const struct request *request, size_t number, enum times_of of, unsigned given)
{
	if (of == TIMES_GETEX)
		return request_is(request, number, "PERSIST") && !(given & TIMES_GIVEN) ? TIMES_PERSIST : 0;
	if (request_is(request, number, "NX") && !(given & (TIMES_XX | TIMES_IF)))
		return TIMES_NX;
	if (request_is(request, number, "XX") && !(given & (TIMES_NX | TIMES_IF)))
		return TIMES_XX;
	if (request_is(request, number, "GET"))
		return TIMES_GET;
	return request_is(request, number, "KEEPTTL") && !(given & TIMES_GIVEN) ? TIMES_KEEPTTL : 0;
}

unsigned times_comparison(const struct request *request, size_t number)
{
	if (request_is(request, number, "IFEQ"))
		return TIMES_IFEQ;
	return request_is(request, number, "IFNE") ? TIMES_IFNE : 0;
}

static int read_lifetime(struct request *request, size_t number, struct times *times)
{
	int64_t seconds;

	if (request_whole(request, number, &seconds) != 0)
		return -1;
	if (seconds <= 0 || (uint64_t)seconds > WW_DRIVER_TIME_MAX / WW_SECOND)
		return invalid(request, times);
	if (!request->conn->loop->server->settings->has_lifetimes) {
		reply_error(request->conn, "ERR LIFETIME needs a server with --lifetime or --lifetimes");
		return -1;
	}
	times->lifetime = (uint64_t)seconds * WW_SECOND;
	times->flags |= TIMES_LIFETIME;
	return 0;
}

/* Only one kind of deadline is allowed; of the same kind the last counts, as in Redis. */
static int may_have(const struct times *times, const struct unit *unit)
{
	if (times->flags & (TIMES_KEEPTTL | TIMES_PERSIST))
		return 0;
	return !(times->flags & TIMES_GIVEN) || (times->unit_ms == unit->ms && times->is_absolute == unit->is_absolute);
}

int times_find(struct request *request, size_t number, enum times_of of, struct times *times)
{
	*times = (struct times){.name = of == TIMES_SET ? "set" : "getex"};
	for (; number < request->count; number++) {
		const struct unit *unit = unit_find(request, number);
		unsigned flag = unit ? 0 : word_find(request, number, of, times->flags);
		int has_number = number + 1 < request->count;
		if (flag) {
			times->flags |= flag;
		} else if (unit && has_number && may_have(times, unit)) {
			times->unit_ms = unit->ms;
			times->is_absolute = unit->is_absolute;
			times->deadline = ++number;
			times->flags |= TIMES_GIVEN;
		} else if (of == TIMES_SET && !times->limit && has_number && request_is(request, number, "LIFETIME")) {
			times->limit = ++number;
		} else if (of == TIMES_SET && has_number && !(times->flags & (TIMES_NX | TIMES_XX | TIMES_IF)) &&
		           times_comparison(request, number)) {
			times->flags |= times_comparison(request, number);
			times->compared = ++number;
		} else {
			request_syntax_error(request);
			return -1;
		}
	}
	return 0;
}

int times_read(struct request *request, struct times *times)
{
	if (times->limit && read_lifetime(request, times->limit, times) != 0)
		return -1;
	return times->deadline ? times_read_one(request, times->deadline, times->unit_ms, times->is_absolute, times)
	                       : 0;
}

/*
 * ns from now on, and the moment: a tick of the driver. What is found until then and what is counted would otherwise
 * differ for the rest of a tick.
 */
static void resolve(struct data *data, const struct times *times, uint64_t *ttl, uint64_t *deadline)
{
	uint64_t now = data_now(data);

	if (times->is_absolute)
		*deadline = data_from_wall_ms(data, times->ms);
	else if ((uint64_t)times->ms > (DATA_LAST - now) / WW_MILLISECOND - 1)
		*deadline = DATA_LAST;
	else
		*deadline =
		    (now + WW_MILLISECOND - 1) / WW_MILLISECOND * WW_MILLISECOND + (uint64_t)times->ms * WW_MILLISECOND;
	*ttl = *deadline > now ? *deadline - now : DATA_TTL_OVER;
}

void times_of_set(struct data *data, const struct times *times, struct data_times *to)
{
	*to = (struct data_times){.ttl = DATA_NEVER};
	if (times->flags & TIMES_GIVEN)
		resolve(data, times, &to->ttl, &to->deadline);
	if (times->flags & TIMES_LIFETIME)
		to->end = data_now(data) + times->lifetime;
}

int times_are_over(struct data *data, const struct times *times)
{
	return times->is_absolute ? times->ms <= data_wall_ms(data) : times->ms <= 0;
}

static int touch(struct request *request, const struct data_key *key, const struct data_entry *entry, uint64_t ttl,
    uint64_t deadline, const char *event)
{
	int result = data_touch(request->data, key, entry, ttl, deadline);

	if (result < 0)
		return request_failed(request, result) ? -1 : 0;
	if (result == 1)
		event_publish(EVENT_GENERIC, event, key);
	return result;
}

int times_move(
    struct request *request, const struct data_key *key, const struct data_entry *entry, const struct times *times)
{
	uint64_t ttl;
	uint64_t deadline;

	if (times_are_over(request->data, times)) {
		if (!data_delete(request->data, key))
			return 0;
		event_publish(EVENT_GENERIC, "del", key);
		return 1;
	}
	resolve(request->data, times, &ttl, &deadline);
	return touch(request, key, entry, ttl, deadline, "expire");
}

int times_persist(struct request *request, const struct data_key *key, const struct data_entry *entry)
{
	return entry->deadline == DATA_NEVER ? 0 : touch(request, key, entry, DATA_NEVER, 0, "persist");
}
