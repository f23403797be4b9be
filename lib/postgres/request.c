/* Passes the requests of the inbox to the engine of a store in PostgreSQL. */
#include "lib/postgres/request.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/time.h"
#include "lib/postgres/state.h"

const char ww_postgres_request_statement[] =
    "SELECT s.snapshot, s.clock, i.ring, i.verb, i.id, i.due, i.tube, i.body, (i.options).* "
    "FROM (SELECT pg_current_snapshot()::text AS snapshot, "
    "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock) AS s "
    "LEFT JOIN weekwheel.inbox AS i ON (i.xid >= $1 OR i.xid = ANY ($2)) AND i.verb >= $3 ORDER BY i.id";

enum verb { VERB_PUT, VERB_CANCEL, VERB_MOVE, VERB_FINISH = REQUESTS_OF_ENDS, VERB_RELEASE, VERB_BURY };

/* How long until a moment by PostgreSQL's clock. */
static uint64_t delay_until(const struct postgres *postgres, int64_t due)
{
	uint64_t now = postgres->ahead + time_now(CLOCK_BOOTTIME);

	return due > 0 && (uint64_t)due > now ? (uint64_t)due - now : 0;
}

/* Unix time in ns, of a timestamptz: µs since 2000. */
static int64_t time_of(const PGresult *row, enum request_column column)
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
	int64_t due = time_of(row, REQUEST_DUE);

	*flags = ww_postgres_link_number(row, 0, REQUEST_WALL) ? WW_JOB_WALL | WW_JOB_AT : 0;
	return *flags ? (uint64_t)due : delay_until(postgres, due);
}

static int put_job(struct postgres *postgres, const struct request *request)
{
	const PGresult *row = request->row;
	struct ww_job_spec spec;

	(void)ww_job_spec_default(&spec);
	spec.tube = PQgetvalue(row, 0, REQUEST_TUBE);
	spec.key = request_bytes(row, REQUEST_KEY, &spec.key_length);
	spec.group = request_bytes(row, REQUEST_GROUP, &spec.group_length);
	spec.body = request->body;
	spec.body_length = request->size;
	spec.due = due_of(postgres, row, &spec.flags);
	spec.priority = (uint32_t)request_number(row, REQUEST_PRIORITY, spec.priority);
	spec.run = request_number(row, REQUEST_RUN, spec.run);
	spec.period = request_number(row, REQUEST_PERIOD, 0);
	spec.missed = (enum ww_missed)request_number(row, REQUEST_MISSED, WW_MISSED_ONCE);
	spec.skip = request_number(row, REQUEST_SKIP, 0);
	spec.backoff = request_number(row, REQUEST_BACKOFF, 0);
	spec.backoff_max = request_number(row, REQUEST_BACKOFF_MAX, spec.backoff_max);
	spec.attempts = (uint32_t)request_number(row, REQUEST_ATTEMPTS, 0);
	spec.key_mode = (enum ww_key_mode)request_number(row, REQUEST_KEY_MODE, WW_KEY_REPLACE);
	spec.key_span = request_number(row, REQUEST_KEY_SPAN, 0);
	spec.keep = request_number(row, REQUEST_KEEP, 0);
	spec.expire = request_number(row, REQUEST_EXPIRE, 0);
	spec.expired = (enum ww_expired)request_number(row, REQUEST_EXPIRED, WW_EXPIRED_DROP);
	spec.headers = request_bytes(row, REQUEST_HEADERS, &spec.headers_length);
	spec.then = request_bytes(row, REQUEST_THEN, &spec.then_length);
	postgres->given = request->id;
	int result = ww_jobs_put(postgres->jobs, &spec, NULL, NULL);
	postgres->given = 0;
	return result;
}

static int end_delivery(struct postgres *postgres, const PGresult *row, enum port_how how)
{
	struct port_end end = {.how = how,
	    .id = request_number(row, REQUEST_JOB, 0),
	    .token = request_number(row, REQUEST_TOKEN, 0),
	    .delay = WW_JOB_BACKOFF,
	    .keeps_priority = PQgetisnull(row, 0, REQUEST_PRIORITY),
	    .priority = (uint32_t)request_number(row, REQUEST_PRIORITY, 0)};

	if (!PQgetisnull(row, 0, REQUEST_DUE))
		end.delay = delay_until(postgres, time_of(row, REQUEST_DUE));
	/* libpq ends each value with a NUL. */
	if (!PQgetisnull(row, 0, REQUEST_BODY))
		end.error = PQgetvalue(row, 0, REQUEST_BODY);
	return ww_jobs_port_end(postgres->jobs, &end);
}

int ww_postgres_request_take(struct postgres *postgres, const struct request *request)
{
	const PGresult *row = request->row;
	struct ww_job_ref ref = {.id = request_number(row, REQUEST_JOB, 0), .tube = PQgetvalue(row, 0, REQUEST_TUBE)};
	uint32_t flags;
	uint64_t due;
	int result;

	if (request->wrong)
		return request->wrong;
	ref.key = request_bytes(row, REQUEST_KEY, &ref.key_length);
	switch ((enum verb)ww_postgres_link_number(row, 0, REQUEST_VERB)) {
	case VERB_PUT:
		return put_job(postgres, request);
	case VERB_CANCEL:
		result = ww_jobs_cancel(postgres->jobs, &ref);
		break;
	case VERB_MOVE:
		due = due_of(postgres, row, &flags);
		result = ww_jobs_move(postgres->jobs, &ref, due, flags & WW_JOB_AT, NULL);
		break;
	case VERB_FINISH:
		result = end_delivery(postgres, row, PORT_FINISH);
		break;
	case VERB_RELEASE:
		result = end_delivery(postgres, row, PORT_RELEASE);
		break;
	case VERB_BURY:
		result = end_delivery(postgres, row, PORT_BURY);
		break;
	default:
		return WW_EVERSION;
	}
	/* The sender could not know: the job may have ended, be with a worker, or be buried. */
	return result == WW_ENOTFOUND || result == WW_ESTALE || result == WW_EINUSE || result == WW_EINVAL ? WW_OK
	                                                                                                   : result;
}

int ww_postgres_request_can_wait(int error)
{
	/* A far job is read by a statement, which can be cancelled. */
	return error == WW_EFULL || error == WW_ENOMEM || error == WW_EIO || error == WW_EAGAIN;
}

int ww_postgres_request_refuse(struct postgres *postgres, const struct request *request, int why)
{
	const char *text = ww_strerror(why);
	unsigned char row[8], id[8];
	const struct link_argument arguments[4] = {{LINK_TEXT, text, strlen(text)}, {LINK_INT8, row, sizeof row},
	    {LINK_INT8, id, sizeof id}, {LINK_BYTEA, request->body, request->size}};

	ww_postgres_report(postgres,
	    "a row of the inbox, id %" PRIu64 ", is refused, and kept in weekwheel.refused: %s", request->id, text);
	store_write64(row, request_number(request->row, REQUEST_ID, 0));
	store_write64(id, request->id);
	return ww_postgres_link_ask(&postgres->writer,
	    "INSERT INTO weekwheel.refused SELECT $1, clock_timestamp(), ring, verb, $3, xid, due, tube, options, "
	    "CASE WHEN body IS NOT NULL THEN $4 END FROM weekwheel.inbox WHERE id = $2",
	    arguments, 4, NULL);
}
