/* Reads the inbox of a store in PostgreSQL. */
#include "lib/postgres/intake.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/time.h"
#include "lib/postgres/postgres_internal.h"
#include "lib/postgres/request.h"
#include "lib/postgres/ring.h"
#include "lib/postgres/state.h"

/* How many rows, and of how many bytes, the engine gets as one batch: they become one row of the ring. */
enum { BATCH = 500, BATCH_BYTES = 16 << 20 };
/* Readings without a row, after which the thread tries to sleep, and after which it reads less often. */
enum { EMPTY_FEW = 1, EMPTY_MANY = 50 };

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
	/* The parts of a row with many jobs, while it is read. */
	PGresult *row;
	struct ids ids;
	size_t next;
};

/* Give the gathered rows to the engine, as one batch. *asked is how many were taken; on error perhaps not all. */
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
			result = ww_postgres_request_take(postgres, request);
			if (result < 0 && !ww_postgres_request_can_wait(result))
				result = ww_postgres_request_refuse(postgres, request, result);
			if (result < 0)
				postgres->taken.count--;
		}
		/* The ring does not turn into this part before its rows are counted. */
		postgres->parts[request_ring(request->row)].has_rows = 1;
		error = result < 0 ? result : WW_OK;
		*asked += !error;
	}
	ended = ww_jobs_commit(postgres->jobs);
	if (ended)
		*asked = 0;
	return ended ? ended : error;
}

/* ---- Reading */

/* A row counts once the last of its requests is taken, which follows the others. */
static int note_taken(struct reading *reading, const struct request *request)
{
	struct postgres *postgres = reading->postgres;
	struct taken_rows *rows = &postgres->taken_of[request_ring(request->row)];

	if (request->is_last) {
		rows->count++;
		rows->ids ^= request_number(request->row, REQUEST_ID, 0);
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
		/* Rows that a former opening took count, too. */
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

/* WW_ECORRUPT: not every id has a body. */
static int check_many(struct reading *reading, const PGresult *row)
{
	size_t size, ids_size;
	const void *ids = request_bytes(row, REQUEST_IDS, &ids_size);
	const void *bodies = request_bytes(row, REQUEST_BODY, &size);
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
	const void *bodies = request_bytes(row, REQUEST_BODY, &size);
	int error;

	reading->row = row;
	reading->next = 0;
	error = ww_postgres_array_each_bytes(bodies, size, read_body, reading);
	/* It was not handled to its end. */
	if (reading->next < reading->ids.count)
		PQclear(row);
	return error;
}

/* ---- Rows */

/* A row now belongs to the reading, or is cleared. */
static int read_row(struct reading *reading, PGresult *row)
{
	struct request request = {.row = row, .is_last = 1};
	int error = WW_OK;

	if (!reading->xmax) {
		ww_postgres_state_clock(reading->postgres, ww_postgres_link_number(row, 0, REQUEST_CLOCK));
		error = read_snapshot(reading, PQgetvalue(row, 0, REQUEST_SNAPSHOT));
	}
	if (error || PQgetisnull(row, 0, REQUEST_ID)) {
		PQclear(row);
		return error;
	}
	request.id = request_number(row, REQUEST_ID, 0);
	request.body = request_bytes(row, REQUEST_BODY, &request.size);
	if (!PQgetisnull(row, 0, REQUEST_IDS))
		request.wrong = check_many(reading, row);
	return PQgetisnull(row, 0, REQUEST_IDS) || request.wrong ? read_request(reading, &request)
	                                                         : read_many(reading, row);
}

/* The reading is complete: the next one begins where it ends. */
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
	unsigned char verb[2] = {0, postgres->has_ends ? 0 : REQUESTS_OF_ENDS};
	struct array open = {.allocator = postgres->allocator, .element = LINK_XID8};
	struct link_argument arguments[3] = {{LINK_XID8, xmax, sizeof xmax}, [2] = {LINK_INT2, verb, sizeof verb}};
	int error = WW_OK;

	store_write64(xmax, postgres->xmax);
	for (size_t i = 0; i < postgres->open.count && !error; i++)
		error = ww_postgres_array_number(&open, postgres->open.all[i]);
	if (!error)
		error = ww_postgres_array_argument(&open, &arguments[1]);
	if (!error)
		error = ww_postgres_link_stream(&postgres->reader, ww_postgres_request_statement, arguments, 3);
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

	/* Rows counted by a failed first reading are counted again. */
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
	/* The very first reading is preceded by one of ends alone. */
	if (error || !postgres->has_ends) {
		postgres->has_ends |= !error;
		error = keep_known(&reading, error);
	} else
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
 * Wait for a notification or the end, at most this many ms. Returns whether the thread has to end. The writer's socket
 * becomes readable when its connection ends, and during writes also with each answer. *woken: a notification came.
 */
static int wait_for(struct postgres *postgres, int ms, int *woken)
{
	struct pollfd watched[3] = {{.fd = postgres->stop[0], .events = POLLIN},
	    {.fd = PQsocket(postgres->reader.connection), .events = POLLIN},
	    {.fd = PQsocket(postgres->writer.connection), .events = POLLIN}};

	/* Notifications that came with an answer are in libpq's memory, and the socket does not show them. */
	*woken = take_notifications(postgres);
	if (!*woken) {
		(void)poll(watched, 3, ms);
		(void)PQconsumeInput(postgres->reader.connection);
		*woken = take_notifications(postgres);
	}
	return watched[0].revents != 0;
}

/*
 * The session holds the lock: release it, whatever came. It has no other, and may have this one more than once: a statement
 * can be cancelled when it has taken it.
 */
static int give_lock_back(struct postgres *postgres)
{
	return ww_postgres_link_execute(&postgres->reader, "SELECT pg_advisory_unlock_all()");
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

/* Nothing came lately: sleep until something does, or for a second. *more: after the sleep, read at once. */
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
		/* The cause of the waking need not wait until the lock is released. */
		if (woken && !*is_over)
			error = read_inbox(postgres, taken);
	}
	may = give_lock_back(postgres);
	return error ? error : may;
}

/*
 * Turn the ring even while nothing is written, and notice when the writer's connection ends. Returns whether there is
 * more to do at once.
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
		(void)give_lock_back(postgres);
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

/* Standbys look at this connection: while it is in use, the owner does not hang. */
static int name_session(struct postgres *postgres)
{
	char statement[150];

	(void)snprintf(statement, sizeof statement,
	    "SET application_name = 'weekwheel reads for %d'; SET plan_cache_mode = force_generic_plan; LISTEN weekwheel",
	    PQbackendPID(postgres->writer.connection));
	return ww_postgres_link_execute(&postgres->reader, statement);
}

int ww_postgres_intake_start(struct postgres *postgres)
{
	static const enum link_type types[] = {LINK_XID8, LINK_XID8S};
	int error = ww_postgres_link_open(&postgres->reader, postgres->config.url, "on");

	if (!error)
		error = name_session(postgres);
	if (!error)
		error = ww_postgres_link_prepare(&postgres->reader, ww_postgres_request_statement, types, 2);
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
