/* Reads the inbox of a store in PostgreSQL. */
#include "lib/postgres/intake.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/time.h"
#include "lib/postgres/postgres_internal.h"
#include "lib/postgres/ring.h"
#include "lib/postgres/state.h"

/* Rows that are asked of the engine together, and of how many bytes: all of them become one row. */
enum { BATCH = 500, BATCH_BYTES = 16 << 20 };
/* Readings that found nothing, until the thread tries to sleep, and until it looks seldom. */
enum { EMPTY_FEW = 3, EMPTY_MANY = 50 };

enum column {
	C_SNAPSHOT,
	C_CLOCK,
	C_RING,
	C_VERB,
	C_ID,
	C_DUE,
	C_TUBE,
	C_BODY,
	C_JOB,
	C_IDS,
	C_WALL,
	C_KEY,
	C_PRIORITY,
	C_RUN,
	C_PERIOD,
	C_MISSED,
	C_SKIP,
	C_BACKOFF,
	C_BACKOFF_MAX,
	C_ATTEMPTS,
	C_KEY_MODE,
	C_KEY_SPAN,
	C_KEEP,
	C_GROUP
};

static const char read_statement[] =
    "SELECT s.snapshot, s.clock, i.ring, i.verb, i.id, i.due, i.tube, i.body, (i.options).* "
    "FROM (SELECT pg_current_snapshot()::text AS snapshot, "
    "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock) AS s "
    "LEFT JOIN weekwheel.inbox AS i ON i.xid >= $1 OR i.xid = ANY ($2) ORDER BY i.id";

enum verb { VERB_PUT, VERB_CANCEL, VERB_MOVE };

/* A request: a row, or one of the jobs that a row has together. */
struct request {
	PGresult *row;
	uint64_t id;
	const void *body;
	size_t size;
	int is_last; /* of its row, which ends with it */
	int wrong;   /* an error: the row is none */
};

/* A reading. */
struct reading {
	struct postgres *postgres;
	struct request requests[BATCH];
	size_t count; /* of them */
	size_t bytes;
	size_t taken;  /* requests in all */
	uint64_t xmax; /* of its snapshot */
	struct ids open;
	struct ids done; /* what it took */
	/* Of a row with many jobs, while it is read. */
	PGresult *row;
	struct ids ids;
	size_t next;
};

/* ---- What is asked of the engine */

/* How long until a moment by PostgreSQL's clock. */
static uint64_t delay_until(const struct postgres *postgres, int64_t due)
{
	uint64_t now = postgres->ahead + time_now(CLOCK_BOOTTIME);

	return due > 0 && (uint64_t)due > now ? (uint64_t)due - now : 0;
}

static uint64_t number_or(const PGresult *row, enum column column, uint64_t usual)
{
	return PQgetisnull(row, 0, (int)column) ? usual : (uint64_t)ww_postgres_link_number(row, 0, (int)column);
}

static const void *bytes_of(const PGresult *row, enum column column, size_t *size)
{
	return ww_postgres_link_bytes(row, 0, (int)column, size);
}

static unsigned ring_of(const PGresult *row)
{
	return (unsigned)(number_or(row, C_RING, 0) % RING_PARTS);
}

/* Unix time in ns, of a timestamptz: µs since 2000. */
static int64_t time_of(const PGresult *row, enum column column)
{
	static const int64_t since = INT64_C(946684800000000);
	int64_t us = ww_postgres_link_number(row, 0, (int)column);

	if (PQgetisnull(row, 0, (int)column) || us < -since)
		return 0;
	return us > INT64_MAX / 1000 - since ? INT64_MAX : (us + since) * 1000;
}

/* When it is due: a delay, or a time of the wall clock. */
static uint64_t due_of(const struct postgres *postgres, const PGresult *row, uint32_t *flags)
{
	int64_t due = time_of(row, C_DUE);

	*flags = ww_postgres_link_number(row, 0, C_WALL) ? WW_JOB_WALL | WW_JOB_AT : 0;
	return *flags ? (uint64_t)due : delay_until(postgres, due);
}

static int put_job(struct postgres *postgres, const struct request *request)
{
	const PGresult *row = request->row;
	struct ww_job_spec spec;

	(void)ww_job_spec_default(&spec);
	spec.tube = PQgetvalue(row, 0, C_TUBE);
	spec.key = bytes_of(row, C_KEY, &spec.key_length);
	spec.group = bytes_of(row, C_GROUP, &spec.group_length);
	spec.body = request->body;
	spec.body_length = request->size;
	spec.due = due_of(postgres, row, &spec.flags);
	spec.priority = (uint32_t)number_or(row, C_PRIORITY, spec.priority);
	spec.run = number_or(row, C_RUN, spec.run);
	spec.period = number_or(row, C_PERIOD, 0);
	spec.missed = (enum ww_missed)number_or(row, C_MISSED, WW_MISSED_ONCE);
	spec.skip = number_or(row, C_SKIP, 0);
	spec.backoff = number_or(row, C_BACKOFF, 0);
	spec.backoff_max = number_or(row, C_BACKOFF_MAX, spec.backoff_max);
	spec.attempts = (uint32_t)number_or(row, C_ATTEMPTS, 0);
	spec.key_mode = (enum ww_key_mode)number_or(row, C_KEY_MODE, WW_KEY_REPLACE);
	spec.key_span = number_or(row, C_KEY_SPAN, 0);
	spec.keep = number_or(row, C_KEEP, 0);
	postgres->given = request->id;
	int result = ww_jobs_put(postgres->jobs, &spec, NULL, NULL);
	postgres->given = 0;
	return result;
}

static int take_request(struct postgres *postgres, const struct request *request)
{
	const PGresult *row = request->row;
	struct ww_job_ref ref = {.id = number_or(row, C_JOB, 0), .tube = PQgetvalue(row, 0, C_TUBE)};
	uint32_t flags;
	uint64_t due;
	int result;

	if (request->wrong)
		return request->wrong;
	ref.key = bytes_of(row, C_KEY, &ref.key_length);
	switch ((enum verb)ww_postgres_link_number(row, 0, C_VERB)) {
	case VERB_PUT:
		return put_job(postgres, request);
	case VERB_CANCEL:
		result = ww_jobs_cancel(postgres->jobs, &ref);
		break;
	case VERB_MOVE:
		due = due_of(postgres, row, &flags);
		result = ww_jobs_move(postgres->jobs, &ref, due, flags & WW_JOB_AT, NULL);
		break;
	default:
		return WW_EVERSION;
	}
	/* Whoever asked could not know: it may have ended, be in a worker's hands, or be buried. */
	return result == WW_ENOTFOUND || result == WW_EINUSE || result == WW_EINVAL ? WW_OK : result;
}

/* Whether the row cannot be taken now, but later: there is no room, or no memory. */
static int is_passing(int error)
{
	return error == WW_EFULL || error == WW_ENOMEM || error == WW_EIO;
}

/* What makes no sense is kept where a person finds it. */
static int refuse(struct postgres *postgres, const struct request *request, int result)
{
	const char *why = ww_strerror(result);
	unsigned char row[8], id[8];
	const struct link_argument arguments[4] = {{LINK_TEXT, why, strlen(why)}, {LINK_INT8, row, sizeof row},
	    {LINK_INT8, id, sizeof id}, {LINK_BYTEA, request->body, request->size}};

	ww_postgres_report(postgres,
	    "a row of the inbox, id %" PRIu64 ", is refused, and kept in weekwheel.refused: %s", request->id, why);
	store_write64(row, number_or(request->row, C_ID, 0));
	store_write64(id, request->id);
	return ww_postgres_link_ask(&postgres->writer,
	    "INSERT INTO weekwheel.refused SELECT $1, clock_timestamp(), ring, verb, $3, xid, due, tube, options, "
	    "CASE WHEN body IS NOT NULL THEN $4 END FROM weekwheel.inbox WHERE id = $2",
	    arguments, 4, NULL);
}

/* Ask the engine for the rows that were gathered, as one batch. *asked is how many count; on error maybe not all. */
static int ask_engine(struct reading *reading, size_t *asked)
{
	struct postgres *postgres = reading->postgres;
	int error = ww_jobs_begin(postgres->jobs);
	int ended;

	*asked = 0;
	if (error)
		return error;
	for (size_t i = 0; i < reading->count && !error; i++) {
		const struct request *request = &reading->requests[i];
		int result = ww_postgres_ids_add(&postgres->taken, postgres->allocator, request->id);
		if (!result) {
			result = take_request(postgres, request);
			if (result < 0 && !is_passing(result))
				result = refuse(postgres, request, result);
			if (result < 0)
				postgres->taken.count--;
		}
		/* The ring does not turn into this part before its rows are counted. */
		postgres->parts[ring_of(request->row)].has_rows = 1;
		error = result < 0 ? result : WW_OK;
		*asked += !error;
	}
	ended = ww_jobs_commit(postgres->jobs);
	if (ended)
		*asked = 0;
	return ended ? ended : error;
}

/* ---- Reading */

/* A row counts when the last of its requests is taken: those before it were. */
static int note_taken(struct reading *reading, const struct request *request)
{
	struct postgres *postgres = reading->postgres;
	struct taken_rows *rows = &postgres->taken_of[ring_of(request->row)];

	if (request->is_last) {
		rows->count++;
		rows->ids ^= number_or(request->row, C_ID, 0);
	}
	return ww_postgres_ids_add(&reading->done, postgres->allocator, request->id);
}

static void end_request(const struct request *request)
{
	if (request->is_last)
		PQclear(request->row);
}

static int take_gathered(struct reading *reading)
{
	size_t asked = 0;
	int error = reading->count ? ask_engine(reading, &asked) : WW_OK;
	int bad = WW_OK;

	for (size_t i = 0; i < reading->count; i++) {
		if (i < asked && !bad)
			bad = note_taken(reading, &reading->requests[i]);
		end_request(&reading->requests[i]);
	}
	reading->taken += asked;
	reading->count = 0;
	reading->bytes = 0;
	return error ? error : bad;
}

/* "xmin:xmax:xid,xid,..." */
static int read_snapshot(struct reading *reading, const char *text)
{
	const char *at = strchr(text, ':');
	char *end;
	int error = WW_OK;

	if (!at)
		return WW_ECORRUPT;
	reading->xmax = strtoull(at + 1, &end, 10);
	for (at = end; *at == ':' || *at == ','; at = end) {
		uint64_t xid = strtoull(at + 1, &end, 10);
		if (end == at + 1)
			break;
		error = ww_postgres_ids_add(&reading->open, reading->postgres->allocator, xid);
		if (error)
			return error;
	}
	return error;
}

/* The reading gathers it, unless it was taken before. */
static int read_request(struct reading *reading, const struct request *request)
{
	struct postgres *postgres = reading->postgres;
	int error = WW_OK;

	if (ww_postgres_ids_has(&postgres->known, request->id)) {
		/* What a former opening took counts, too. */
		if (postgres->is_first)
			error = note_taken(reading, request);
		end_request(request);
		return error;
	}
	reading->requests[reading->count++] = *request;
	reading->bytes += request->size;
	return reading->count == BATCH || reading->bytes >= BATCH_BYTES ? take_gathered(reading) : WW_OK;
}

/* ---- A row that has many jobs */

static int add_id(void *context, uint64_t id)
{
	struct reading *reading = context;

	return ww_postgres_ids_add(&reading->ids, reading->postgres->allocator, id);
}

static int count_body(void *context, const void *bytes, size_t size)
{
	(void)bytes;
	(void)size;
	((struct reading *)context)->next++;
	return WW_OK;
}

static int read_body(void *context, const void *bytes, size_t size)
{
	struct reading *reading = context;
	struct request request = {
	    .row = reading->row, .id = reading->ids.all[reading->next++], .body = bytes, .size = size};

	request.is_last = reading->next == reading->ids.count;
	return read_request(reading, &request);
}

/* WW_ECORRUPT: each of the ids does not have a body. */
static int check_many(struct reading *reading, const PGresult *row)
{
	size_t size, ids_size;
	const void *ids = bytes_of(row, C_IDS, &ids_size);
	const void *bodies = bytes_of(row, C_BODY, &size);
	int error;

	reading->ids.count = reading->next = 0;
	error = ww_postgres_array_each(ids, ids_size, add_id, reading);
	if (!error)
		error = ww_postgres_array_each_bytes(bodies, size, count_body, reading);
	if (!error && (!reading->ids.count || reading->ids.count != reading->next))
		error = WW_ECORRUPT;
	return error;
}

static int read_many(struct reading *reading, PGresult *row)
{
	size_t size;
	const void *bodies = bytes_of(row, C_BODY, &size);
	int error;

	reading->row = row;
	reading->next = 0;
	error = ww_postgres_array_each_bytes(bodies, size, read_body, reading);
	/* It was not passed on to its end. */
	if (reading->next < reading->ids.count)
		PQclear(row);
	return error;
}

/* ---- Rows */

/* A row, which is the reading's or is cleared. */
static int read_row(struct reading *reading, PGresult *row)
{
	struct request request = {.row = row, .is_last = 1};
	int error = WW_OK;

	if (!reading->xmax) {
		ww_postgres_state_clock(reading->postgres, ww_postgres_link_number(row, 0, C_CLOCK));
		error = read_snapshot(reading, PQgetvalue(row, 0, C_SNAPSHOT));
	}
	if (error || PQgetisnull(row, 0, C_ID)) {
		PQclear(row);
		return error;
	}
	request.id = number_or(row, C_ID, 0);
	request.body = bytes_of(row, C_BODY, &request.size);
	if (!PQgetisnull(row, 0, C_IDS))
		request.wrong = check_many(reading, row);
	return PQgetisnull(row, 0, C_IDS) || request.wrong ? read_request(reading, &request) : read_many(reading, row);
}

/* The reading is done: the next one begins where it ends. */
static void settle(struct reading *reading)
{
	struct postgres *postgres = reading->postgres;
	struct ids open = postgres->open;

	postgres->xmax = reading->xmax;
	postgres->open = reading->open;
	reading->open = open;
	ww_postgres_ids_clear(&postgres->known, postgres->allocator);
	postgres->is_first = 0;
}

/* It failed: the next one reads the same again. */
static int keep_known(struct reading *reading, int error)
{
	struct postgres *postgres = reading->postgres;

	for (size_t i = 0; i < reading->done.count; i++)
		if (ww_postgres_ids_set(&postgres->known, postgres->allocator, reading->done.all[i]))
			return WW_ENOMEM;
	return error;
}

static int begin_reading(struct postgres *postgres)
{
	unsigned char xmax[8];
	struct array open = {.allocator = postgres->allocator, .element = LINK_XID8};
	struct link_argument arguments[2] = {{LINK_XID8, xmax, sizeof xmax}};
	int error = WW_OK;

	store_write64(xmax, postgres->xmax);
	for (size_t i = 0; i < postgres->open.count && !error; i++)
		error = ww_postgres_array_number(&open, postgres->open.all[i]);
	if (!error)
		error = ww_postgres_array_argument(&open, &arguments[1]);
	if (!error)
		error = ww_postgres_link_stream(&postgres->reader, read_statement, arguments, 2);
	ww_postgres_array_free(&open);
	return error;
}

/* Read what is new in the inbox. *taken is the number of rows. */
static int read_inbox(struct postgres *postgres, size_t *taken)
{
	struct reading reading = {.postgres = postgres};
	PGresult *row;
	int bad = WW_OK;
	uint64_t began = time_now(CLOCK_BOOTTIME);
	int error = begin_reading(postgres);

	/* What a first reading that failed has counted is counted again. */
	if (postgres->is_first)
		memset(postgres->taken_of, 0, sizeof postgres->taken_of);

	while (!error) {
		error = ww_postgres_link_row(&postgres->reader, &row);
		if (!error && !bad)
			bad = read_row(&reading, row);
		else
			PQclear(row);
	}
	if (error == LINK_END) {
		error = bad ? bad : reading.xmax ? WW_OK : WW_ECORRUPT;
		postgres->alive = began;
	}
	if (!error)
		error = take_gathered(&reading);
	for (size_t i = 0; i < reading.count; i++)
		end_request(&reading.requests[i]);
	if (error)
		error = keep_known(&reading, error);
	else
		settle(&reading);
	*taken = reading.taken;
	ww_postgres_ids_free(&reading.open, postgres->allocator);
	ww_postgres_ids_free(&reading.done, postgres->allocator);
	ww_postgres_ids_free(&reading.ids, postgres->allocator);
	return error;
}

/* ---- The thread */

/* Returns whether there were any. */
static int take_notifications(struct postgres *postgres)
{
	PGnotify *notify;
	int any = 0;

	while ((notify = PQnotifies(postgres->reader.connection)) != NULL) {
		PQfreemem(notify);
		any = 1;
	}
	return any;
}

/*
 * Wait for a notification or the end, at most so many ms. Returns whether the thread is to end. The writer's socket speaks
 * when its connection is ended; while somebody writes, it also does with each answer. *woken: a notification came.
 */
static int wait_for(struct postgres *postgres, int ms, int *woken)
{
	struct pollfd watched[3] = {{.fd = postgres->stop[0], .events = POLLIN},
	    {.fd = PQsocket(postgres->reader.connection), .events = POLLIN},
	    {.fd = PQsocket(postgres->writer.connection), .events = POLLIN}};

	/* What came with an answer lies in libpq's memory, and its socket stays silent. */
	*woken = take_notifications(postgres);
	if (!*woken) {
		(void)poll(watched, 3, ms);
		(void)PQconsumeInput(postgres->reader.connection);
		*woken = take_notifications(postgres);
	}
	return watched[0].revents != 0;
}

static int may_sleep(struct postgres *postgres, int *may)
{
	PGresult *result;
	int error =
	    ww_postgres_link_ask(&postgres->reader, "SELECT pg_try_advisory_lock(1463900017, 2)", NULL, 0, &result);

	*may = !error && ww_postgres_link_number(result, 0, 0);
	PQclear(result);
	return error;
}

/* Nothing came lately: sleep until something does, or for a second. *more: who slept looks at once what there is. */
static int sleep_if_quiet(struct postgres *postgres, size_t *taken, int *more, int *is_over)
{
	int may, woken;
	int error = may_sleep(postgres, &may);

	*taken = 0;
	if (error || !may)
		return error;
	error = read_inbox(postgres, taken);
	if (!error && !*taken) {
		*is_over = wait_for(postgres, 1000, &woken);
		*more = 1;
		/* What woke it does not wait for the lock's end. */
		if (woken && !*is_over)
			error = read_inbox(postgres, taken);
	}
	/* The lock is of the session: it must not be kept, whatever came. */
	may = ww_postgres_link_tell(&postgres->reader, "SELECT pg_advisory_unlock(1463900017, 2)");
	return error ? error : may;
}

/*
 * The ring turns also while nothing is written, and the writer's end is noticed. Returns whether there is more to do at
 * once.
 */
static int tend(struct postgres *postgres)
{
	int more = 0;

	if (ww_jobs_begin(postgres->jobs) != WW_OK)
		return 0;
	if (ww_postgres_link_has_ended(&postgres->writer))
		ww_postgres_lose(postgres, postgres->writer.why);
	else
		more = ww_postgres_ring_tend(postgres);
	(void)ww_jobs_commit(postgres->jobs);
	return more;
}

static void fail(struct postgres *postgres, int error)
{
	if (!ww_postgres_link_is_lost(&postgres->reader)) {
		ww_postgres_report(postgres, "the inbox cannot be read, and is tried again: %s",
		    *postgres->reader.why ? postgres->reader.why : ww_strerror(error));
		return;
	}
	ww_postgres_lose(postgres, postgres->reader.why);
}

static void *run(void *context)
{
	struct postgres *postgres = context;
	unsigned empty = 0;
	int is_over = 0;
	int woken;

	while (!is_over && !postgres->is_ending && !postgres->lost) {
		size_t taken = 0;
		int error = read_inbox(postgres, &taken);
		int more = !error && tend(postgres);
		if (!error && !taken && !more && ++empty > EMPTY_FEW)
			error = sleep_if_quiet(postgres, &taken, &more, &is_over);
		if (error)
			fail(postgres, error);
		if (taken)
			empty = 0;
		if (!is_over && !taken && !more)
			is_over = wait_for(postgres, error ? 100 : empty > EMPTY_MANY ? 10 : 1, &woken);
	}
	return NULL;
}

/* Those who wait for the store look at this connection: while it is in use, the owner does not hang. */
static int tell_name(struct postgres *postgres)
{
	char statement[150];

	(void)snprintf(statement, sizeof statement,
	    "SET application_name = 'weekwheel reads for %d'; SET plan_cache_mode = force_generic_plan; LISTEN weekwheel",
	    PQbackendPID(postgres->writer.connection));
	return ww_postgres_link_tell(&postgres->reader, statement);
}

int ww_postgres_intake_start(struct postgres *postgres)
{
	static const enum link_type types[] = {LINK_XID8, LINK_XID8S};
	int error = ww_postgres_link_open(&postgres->reader, postgres->config.url, "on");

	if (!error)
		error = tell_name(postgres);
	if (!error)
		error = ww_postgres_link_prepare(&postgres->reader, read_statement, types, 2);
	postgres->reader.patience = postgres->writer.patience;
	if (error) {
		ww_postgres_report(postgres, "%s", postgres->reader.why);
		return error;
	}
	if (pipe(postgres->stop))
		return WW_ESYSTEM;
	if (pthread_create(&postgres->thread, NULL, run, postgres)) {
		(void)close(postgres->stop[0]);
		(void)close(postgres->stop[1]);
		postgres->stop[0] = postgres->stop[1] = -1;
		return WW_ESYSTEM;
	}
	return WW_OK;
}

void ww_postgres_intake_stop(struct postgres *postgres)
{
	if (postgres->stop[1] < 0)
		return;
	postgres->is_ending = 1;
	(void)!write(postgres->stop[1], "", 1);
	(void)pthread_join(postgres->thread, NULL);
	(void)close(postgres->stop[0]);
	(void)close(postgres->stop[1]);
	postgres->stop[0] = postgres->stop[1] = -1;
}
