/* Commands that read and set values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/commands/events.h"
#include "tools/weekwheel-sessiond/commands/times.h"

/* ---- Reading */

static void write_value(void *pointer, void *context)
{
	const struct value *value = pointer;

	reply_bulk(context, value->bytes, value->size);
}

/* For a command that has answered nothing and changed nothing yet, and so can run again. */
static void write_value_or_wait(void *pointer, void *context)
{
	const struct value *value = pointer;

	if (value->size < REQUEST_LARGE || !request_waits(context))
		write_value(pointer, context);
}

/* Answer with the value of a key. Returns 1, or 0 without an answer if there is none. */
static int reply_if_there(struct request *request, const struct data_key *key)
{
	return data_read(request->data, key, write_value, request->conn) == 1;
}

static void reply_value(struct request *request, const struct data_key *key)
{
	if (!reply_if_there(request, key))
		reply_null(request->conn);
}

/* Answer with a value that was taken out of the map, so that its expiry is not reported; or with null. Frees it. */
static void reply_taken(struct request *request, struct value *value)
{
	if (value)
		reply_bulk(request->conn, value->bytes, value->size);
	else
		reply_null(request->conn);
	free(value);
}

void command_get(struct request *request)
{
	struct data_key key = request_key(request, 1);

	if (data_read(request->data, &key, write_value_or_wait, request->conn) != 1)
		reply_null(request->conn);
}

void command_mget(struct request *request)
{
	reply_array(request->conn, request->count - 1);
	for (size_t i = 1; i < request->count; i++) {
		struct data_key key = request_key(request, i);
		reply_value(request, &key);
	}
}

void command_strlen(struct request *request)
{
	struct data_key key = request_key(request, 1);
	struct data_entry entry;
	int found = data_inspect(request->data, &key, &entry, NULL, NULL);

	reply_integer(request->conn, found == 1 ? (int64_t)entry.size : 0);
}

/* ---- Setting */

static const struct data_times no_times = {.ttl = DATA_NEVER};
/* Of what is made where nothing is known to have been. */
static const struct data_times anew = {.ttl = DATA_NEVER, .is_anew = 1};

/* The times of an entry, for one that takes its place. */
static struct data_times times_of(const struct data_entry *entry)
{
	return (struct data_times){.ttl = entry->ttl,
	    .deadline = entry->deadline == DATA_NEVER ? 0 : entry->deadline,
	    .end = entry->end,
	    .version = entry->version,
	    .disk = entry->disk};
}

/* KEEPTTL, perhaps with another lifetime. */
static void keep_times(const struct data_entry *entry, const struct times *times, struct data_times *to)
{
	uint64_t end = to->end;

	*to = times_of(entry);
	if (!(times->flags & TIMES_LIFETIME))
		return;
	to->end = end;
	/* Where the former lifetime would have ended first, the map has no idle deadline: the idle time begins anew. */
	if (entry->deadline >= entry->end)
		to->deadline = to->disk = 0;
}

/* Whether NX keeps the present value. If so, it has answered. */
static int is_kept(struct request *request, const struct data_key *key, unsigned flags)
{
	if (!(flags & TIMES_NX))
		return 0;
	if (flags & TIMES_GET && reply_if_there(request, key))
		return 1;
	if (flags & TIMES_LIFETIME ? !data_is_there(request->data, key) : !data_is_taken(request->data, key))
		return 0;
	/* With GET, a null means that the key was set: a lock would have two holders. */
	if (flags & TIMES_GET)
		reply_error(request->conn, "ERR the lifetime of the key has just ended");
	else
		reply_null(request->conn);
	return 1;
}

struct comparison {
	const struct resp_arg *with;
	int is_equal;
};

static void compare(void *pointer, void *context)
{
	const struct value *value = pointer;
	struct comparison *comparison = context;

	comparison->is_equal =
	    value->size == comparison->with->size && memcmp(value->bytes, comparison->with->data, value->size) == 0;
}

/* Whether IFEQ or IFNE, whose value is this argument, lets the command change the key. What is not there differs. */
static int is_as_wanted(
    struct request *request, const struct data_key *key, unsigned flags, size_t compared, struct data_entry *entry)
{
	struct comparison comparison = {&request->arg[compared], 0};

	(void)data_inspect(request->data, key, entry, compare, &comparison);
	return comparison.is_equal == !(flags & TIMES_IFNE);
}

/* Whether IFEQ or IFNE keeps what there is. If so, it has answered. */
static int is_refused(
    struct request *request, const struct data_key *key, const struct times *times, struct data_entry *entry)
{
	if (!(times->flags & TIMES_IF) || is_as_wanted(request, key, times->flags, times->compared, entry))
		return 0;
	if (times->flags & TIMES_GET)
		reply_value(request, key);
	else
		reply_null(request->conn);
	return 1;
}

void command_set(struct request *request)
{
	struct data_key key = request_key(request, 1);
	struct times times;
	struct data_times to;
	struct data_entry entry = {0};
	struct value *former;
	int error;

	if (times_find(request, 3, TIMES_SET, &times) != 0 || times_read(request, &times) != 0 ||
	    is_kept(request, &key, times.flags) || is_refused(request, &key, &times, &entry))
		return;
	if (times.flags & (TIMES_XX | TIMES_KEEPTTL))
		(void)data_inspect(request->data, &key, &entry, NULL, NULL);
	if (times.flags & TIMES_XX && !entry.version) {
		reply_null(request->conn);
		return;
	}
	times_of_set(request->data, &times, &to);
	if (times.flags & TIMES_KEEPTTL && entry.version)
		keep_times(&entry, &times, &to);
	to.version = entry.version;
	to.is_anew = (times.flags & TIMES_NX) != 0;
	error = data_swap(request->data, &key, request->arg[2].data, request->arg[2].size, &to, &former);
	if (error == WW_ESTALE || (error == WW_EBACKWARDS && times.flags & TIMES_NX)) {
		/* The value has expired meanwhile, so there is none now; or the one that NX would answer with has. */
		command_set(request);
		return;
	}
	if (error != WW_EBACKWARDS && request_failed(request, error))
		return;
	if (times.flags & TIMES_GET)
		reply_taken(request, former);
	else
		free(former);
	if (error == WW_OK)
		event_publish(EVENT_STRING, "set", &key);
	if (error == WW_OK && to.ttl != DATA_NEVER && !(times.flags & TIMES_KEEPTTL))
		event_publish(EVENT_GENERIC, "expire", &key);
	if (!(times.flags & TIMES_GET))
		reply_ok(request->conn);
}

void command_setex(struct request *request)
{
	int64_t unit_ms = request->command->way & COMMAND_MS ? 1 : 1000;
	struct data_key key = request_key(request, 1);
	struct times times = {.name = request->command->name};
	struct data_times to;
	int error;

	if (times_read_one(request, 2, unit_ms, 0, &times) != 0)
		return;
	times_of_set(request->data, &times, &to);
	error = data_set(request->data, &key, request->arg[3].data, request->arg[3].size, &to);
	if (error != WW_EBACKWARDS && request_failed(request, error))
		return;
	if (error == WW_OK) {
		event_publish(EVENT_STRING, "set", &key);
		event_publish(EVENT_GENERIC, "expire", &key);
	}
	reply_ok(request->conn);
}

void command_setnx(struct request *request)
{
	struct data_key key = request_key(request, 1);

	if (data_is_taken(request->data, &key)) {
		reply_integer(request->conn, 0);
		return;
	}
	if (request_failed(request, data_set(request->data, &key, request->arg[2].data, request->arg[2].size, &anew)))
		return;
	event_publish(EVENT_STRING, "set", &key);
	reply_integer(request->conn, 1);
}

void command_getset(struct request *request)
{
	struct data_key key = request_key(request, 1);
	struct value *former;
	int error = data_swap(request->data, &key, request->arg[2].data, request->arg[2].size, &no_times, &former);

	if (error != WW_EBACKWARDS && request_failed(request, error))
		return;
	reply_taken(request, former);
	if (error == WW_OK)
		event_publish(EVENT_STRING, "set", &key);
}

/* What a key of an MSET had. */
struct set_one {
	struct value *former;
	struct data_entry was;
	int is_set; /* not one that stays ended */
};

/* Set a key. If one after it is refused, this can be undone. */
static int set_one(struct request *request, size_t i, const struct data_times *times, struct set_one *one)
{
	struct data_key key = request_key(request, i);
	int error;

	(void)data_inspect(request->data, &key, &one->was, NULL, NULL);
	error = data_swap(request->data, &key, request->arg[i + 1].data, request->arg[i + 1].size, times, &one->former);
	one->is_set = error == WW_OK;
	return error == WW_EBACKWARDS ? WW_OK : error;
}

/* In reverse order, since a key may occur twice. */
static void undo_some(struct request *request, struct set_one *all, size_t count)
{
	while (count-- > 0) {
		struct data_key key = request_key(request, 1 + 2 * count);
		if (all[count].is_set)
			data_undo(request->data, &key, all[count].former, &all[count].was);
	}
}

/* With bounded memory: all or none. Nothing is reported before all of it is certain. Returns a WW_E*. */
static int set_all(struct request *request, const struct data_times *times)
{
	size_t count = request->count / 2;
	struct set_one *all = calloc(count, sizeof *all);

	if (!all)
		return WW_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int error = set_one(request, 1 + 2 * i, times, &all[i]);
		if (error) {
			undo_some(request, all, i);
			free(all);
			return error;
		}
	}
	for (size_t i = 0; i < count; i++) {
		struct data_key key = request_key(request, 1 + 2 * i);
		free(all[i].former);
		if (all[i].is_set)
			event_publish(EVENT_STRING, "set", &key);
	}
	free(all);
	return WW_OK;
}

static int set_each(struct request *request, const struct data_times *times)
{
	for (size_t i = 1; i < request->count; i += 2) {
		struct data_key key = request_key(request, i);
		int error = data_set(request->data, &key, request->arg[i + 1].data, request->arg[i + 1].size, times);
		if (error == WW_OK)
			event_publish(EVENT_STRING, "set", &key);
		else if (error != WW_EBACKWARDS)
			return error;
	}
	return WW_OK;
}

static int set_many(struct request *request, const struct data_times *times)
{
	int is_bounded = data_is_bounded(request->data);
	size_t bytes = 0;
	size_t largest = 0;

	/* Set nothing if not all of it can be set. */
	for (size_t i = 1; i < request->count; i++) {
		bytes += request->arg[i].size;
		largest = request->arg[i].size > largest ? request->arg[i].size : largest;
	}
	for (size_t i = 1; i < request->count; i += 2)
		if (request->arg[i].size > WW_SESSION_KEY_MAX)
			return request_failed(request, WW_EINVAL) ? -1 : 0;
	if (bytes - largest > REQUEST_BYTES || !data_takes(request->data, request->count / 2, bytes))
		return request_failed(request, WW_EFULL) ? -1 : 0;
	return request_failed(request, is_bounded ? set_all(request, times) : set_each(request, times)) ? -1 : 0;
}

static int is_odd(struct request *request, const char *name)
{
	if (request->count % 2 == 1)
		return 0;
	reply_error(request->conn, "ERR wrong number of arguments for '%s' command", name);
	return 1;
}

void command_mset(struct request *request)
{
	if (!is_odd(request, "mset") && set_many(request, &no_times) == 0)
		reply_ok(request->conn);
}

void command_msetnx(struct request *request)
{
	if (is_odd(request, "msetnx"))
		return;
	for (size_t i = 1; i < request->count; i += 2) {
		struct data_key key = request_key(request, i);
		if (data_is_taken(request->data, &key)) {
			reply_integer(request->conn, 0);
			return;
		}
	}
	if (set_many(request, &anew) == 0)
		reply_integer(request->conn, 1);
}

/* ---- Reading and changing */

/*
 * Set another value, with the times of before. Returns 0, -1 after an answer, WW_ESTALE (it has expired since), or
 * WW_EBACKWARDS (it stays ended).
 */
static int set_again(
    struct request *request, const struct data_key *key, const struct data_entry *entry, const void *bytes, size_t size)
{
	struct data_times times = entry->version ? times_of(entry) : anew;
	int error = data_set(request->data, key, bytes, size, &times);

	if (error == WW_ESTALE || error == WW_EBACKWARDS)
		return error;
	return request_failed(request, error) ? -1 : 0;
}

/* A copy of a value, from which to make another. */
struct value_copy {
	struct conn *conn;
	struct buffer bytes;
	int failed;
	int is_refused; /* with an answer */
};

/* If other clients wait already, handle a large value in another turn. */
static void copy_value(void *pointer, void *context)
{
	const struct value *value = pointer;
	struct value_copy *copy = context;

	copy->is_refused = !request_may_copy(copy->conn, value->size);
	if (!copy->is_refused && (value->size < REQUEST_LARGE || !request_waits(copy->conn)))
		copy->failed = buffer_append(&copy->bytes, value->bytes, value->size);
}

void command_append(struct request *request)
{
	struct data_key key = request_key(request, 1);
	const struct resp_arg *more = &request->arg[2];
	struct value_copy copy = {.conn = request->conn};
	struct data_entry entry;
	int result = -1;

	(void)data_inspect(request->data, &key, &entry, copy_value, &copy);
	if (request->conn->is_again || copy.is_refused)
		return;
	if (copy.bytes.size + more->size > request->conn->parser.bulk_max)
		reply_error(request->conn, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
	else if (copy.failed || buffer_append(&copy.bytes, more->data, more->size) != 0)
		(void)request_failed(request, WW_ENOMEM);
	else
		result = set_again(request, &key, &entry, copy.bytes.data, copy.bytes.size);
	if (result == 0)
		event_publish(EVENT_STRING, "append", &key);
	if (result == 0 || result == WW_EBACKWARDS)
		reply_integer(request->conn, (int64_t)copy.bytes.size);
	buffer_free(&copy.bytes);
	if (result == WW_ESTALE)
		command_append(request);
}

/* Read a value as a number. */
struct value_number {
	int64_t number;
	int is_none;
};

static void read_number(void *pointer, void *context)
{
	const struct value *value = pointer;
	struct value_number *read = context;

	read->is_none = resp_whole(value->bytes, value->size, &read->number) != 0;
}

static void add(struct request *request, int64_t more)
{
	struct data_key key = request_key(request, 1);
	struct value_number is = {0};
	struct data_entry entry;
	char text[24];
	int64_t number;
	int result;

	(void)data_inspect(request->data, &key, &entry, read_number, &is);
	if (is.is_none) {
		reply_error(request->conn, "ERR value is not an integer or out of range");
		return;
	}
	if (__builtin_add_overflow(is.number, more, &number)) {
		reply_error(request->conn, "ERR increment or decrement would overflow");
		return;
	}
	result = set_again(request, &key, &entry, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)number));
	if (result == WW_ESTALE)
		add(request, more);
	if (result == 0)
		event_publish(EVENT_STRING, "incrby", &key);
	if (result == 0 || result == WW_EBACKWARDS)
		reply_integer(request->conn, number);
}

void command_incr(struct request *request)
{
	add(request, request->command->way);
}

void command_incrby(struct request *request)
{
	int64_t more;

	if (request_whole(request, 2, &more) == 0)
		add(request, more);
}

void command_decrby(struct request *request)
{
	int64_t less;

	if (request_whole(request, 2, &less) != 0)
		return;
	if (less == INT64_MIN)
		reply_error(request->conn, "ERR decrement would overflow");
	else
		add(request, -less);
}

void command_getdel(struct request *request)
{
	struct data_key key = request_key(request, 1);
	struct value *value = data_take(request->data, &key);
	int is_there = value != NULL;

	reply_taken(request, value);
	if (is_there)
		event_publish(EVENT_GENERIC, "del", &key);
}

/* Delete the key if it is as wanted. */
static void delete_if(struct request *request, unsigned flags, size_t compared)
{
	struct data_key key = request_key(request, 1);
	struct data_entry entry;
	int is_deleted =
	    (!flags || is_as_wanted(request, &key, flags, compared, &entry)) && data_delete(request->data, &key);

	if (is_deleted)
		event_publish(EVENT_GENERIC, "del", &key);
	reply_integer(request->conn, is_deleted);
}

void command_delifeq(struct request *request)
{
	delete_if(request, TIMES_IFEQ, 2);
}

void command_delex(struct request *request)
{
	unsigned flags = request->count == 4 ? times_comparison(request, 2) : 0;

	if (request->count != 2 && !flags)
		request_syntax_error(request);
	else
		delete_if(request, flags, 3);
}

void command_getex(struct request *request)
{
	struct data_key key = request_key(request, 1);
	struct times times;
	struct data_entry entry;
	int result = 0;

	if (times_find(request, 2, TIMES_GETEX, &times) != 0)
		return;
	if (data_inspect(request->data, &key, &entry, NULL, NULL) != 1) {
		reply_null(request->conn);
		return;
	}
	if (times_read(request, &times) != 0)
		return;
	if (times.flags & TIMES_GIVEN && times_are_over(request->data, &times)) {
		command_getdel(request);
		return;
	}
	if (times.flags & TIMES_PERSIST)
		result = times_persist(request, &key, &entry);
	else if (times.flags & TIMES_GIVEN)
		result = times_move(request, &key, &entry, &times);
	/* Only now: if it has expired meanwhile, its value is reported, not answered. */
	if (result >= 0)
		reply_value(request, &key);
}
