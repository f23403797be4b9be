/* Connections to PostgreSQL. */
#include "lib/postgres/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "weekwheel/error.h"

/* ---- Errors */

/* What the class or code of an SQLSTATE means here. */
static int error_of_state(const char *state)
{
	static const struct {
		const char *begins;
		int error;
	} meanings[] = {
	    {"25006", WW_EDENIED},   /* the server is a standby, or reads only */
	    {"28", WW_EDENIED},      /* authentication */
	    {"42501", WW_EDENIED},   /* no right */
	    {"3D", WW_ENOTFOUND},    /* no database */
	    {"3F", WW_ENOTFOUND},    /* no schema */
	    {"42P01", WW_ENOTFOUND}, /* no table */
	    {"42883", WW_ENOTFOUND}, /* no function */
	    {"55P03", WW_EAGAIN},    /* a lock is held */
	    {"57014", WW_EAGAIN},    /* the statement was cancelled */
	    {"40", WW_EAGAIN},       /* serialization, deadlock */
	    {"53", WW_EFULL},        /* disk, memory, connections */
	};

	for (size_t i = 0; state && i < sizeof meanings / sizeof *meanings; i++)
		if (strncmp(state, meanings[i].begins, strlen(meanings[i].begins)) == 0)
			return meanings[i].error;
	return WW_EIO;
}

/* Keep the sentence, on one line. */
static void note(struct link *link, const char *text)
{
	size_t length;

	(void)snprintf(link->why, sizeof link->why, "%s", text ? text : "");
	for (char *at = link->why; *at; at++)
		if (*at == '\n')
			*at = ' ';
	length = strlen(link->why);
	while (length && link->why[length - 1] == ' ')
		link->why[--length] = 0;
}

static int failed(struct link *link, const PGresult *result)
{
	const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	const char *hint = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_HINT) : NULL;
	char text[LINK_WHY_MAX];

	(void)snprintf(text, sizeof text, "%s%s%s",
	    state ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : PQerrorMessage(link->connection),
	    hint ? "; " : "", hint ? hint : "");
	note(link, link->is_silent ? "PostgreSQL does not answer" : text);
	return ww_postgres_link_is_lost(link) ? WW_EIO : error_of_state(state);
}

int ww_postgres_link_is_lost(const struct link *link)
{
	return !link->connection || link->is_silent || PQstatus(link->connection) != CONNECTION_OK;
}

int ww_postgres_link_has_ended(struct link *link)
{
	struct pollfd watched = {.fd = PQsocket(link->connection), .events = POLLIN};

	while (!ww_postgres_link_is_lost(link) && poll(&watched, 1, 0) > 0 && PQconsumeInput(link->connection))
		;
	if (ww_postgres_link_is_lost(link))
		note(link, PQerrorMessage(link->connection));
	return ww_postgres_link_is_lost(link);
}

/* ---- Opening */

/* libpq gives the reason of a failed connection only in words. */
static int why_not_connected(struct link *link)
{
	const char *text = PQerrorMessage(link->connection);

	note(link, text);
	if (strstr(text, "does not exist") && strstr(text, "database"))
		return WW_ENOTFOUND;
	if (PQconnectionNeedsPassword(link->connection) || PQconnectionUsedPassword(link->connection) ||
	    strstr(text, "authentication failed") || strstr(text, "does not exist") || strstr(text, "pg_hba.conf"))
		return WW_EDENIED;
	return strstr(text, "too many") || strstr(text, "remaining connection slots") ? WW_EFULL : WW_EIO;
}

static void ignore(void *context, const char *notice)
{
	(void)context;
	(void)notice;
}

/*
 * The store's locks and settings belong to a session, which a pool would hand to others. A pool shows its clients
 * another process id than the server does.
 */
static int refuse_pool(struct link *link)
{
	PGresult *result;
	int error = ww_postgres_link_ask(link, "SELECT pg_catalog.pg_backend_pid()", NULL, 0, &result);
	int is_direct = !error && ww_postgres_link_number(result, 0, 0) == PQbackendPID(link->connection);

	PQclear(result);
	if (error || is_direct)
		return error;
	note(link,
	    "the URL leads to a pool of connections: name PostgreSQL itself, as the store needs sessions of its own");
	return WW_EINVAL;
}

int ww_postgres_link_open(struct link *link, const char *url, const char *synchronous)
{
	/* The URL overrides what precedes it. */
	static const char *const words[] = {"connect_timeout", "tcp_user_timeout", "keepalives_idle",
	    "keepalives_interval", "keepalives_count", "fallback_application_name", "dbname", "client_encoding", NULL};
	const char *const values[] = {"10", "3000", "1", "1", "3", "weekwheel", url, "UTF8", NULL};
	char text[LINK_WHY_MAX];
	char *wrong = NULL;
	PQconninfoOption *options = PQconninfoParse(url, &wrong);
	int error;

	link->connection = NULL;
	link->patience = -1;
	link->is_silent = 0;
	link->prepared = NULL;
	note(link, wrong);
	PQfreemem(wrong);
	if (!options)
		return WW_EINVAL;
	PQconninfoFree(options);
	link->connection = PQconnectdbParams(words, values, 1);
	if (!link->connection)
		return WW_ENOMEM;
	if (ww_postgres_link_is_lost(link)) {
		error = why_not_connected(link);
		ww_postgres_link_close(link);
		return error;
	}
	(void)PQsetNoticeProcessor(link->connection, ignore, NULL);
	(void)snprintf(text, sizeof text,
	    "SET search_path = pg_catalog, pg_temp; SET synchronous_commit = %s; SET statement_timeout = 0; "
	    "SET idle_in_transaction_session_timeout = 0; SET idle_session_timeout = 0; SET lock_timeout = 0; "
	    "SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off; SET enable_seqscan = off; SET jit = off",
	    synchronous);
	error = refuse_pool(link);
	if (!error)
		error = ww_postgres_link_execute(link, text);
	if (error)
		ww_postgres_link_close(link);
	return error;
}

void ww_postgres_link_close(struct link *link)
{
	PQfinish(link->connection);
	link->connection = NULL;
}

/* ---- Answers */

/* Wait until libpq has a complete answer. A server that is silent for too long counts as lost. */
static int wait_for_answer(struct link *link)
{
	struct pollfd watched = {.fd = PQsocket(link->connection), .events = POLLIN};

	while (PQisBusy(link->connection)) {
		int ready = poll(&watched, 1, link->patience);
		if (ready == 0) {
			link->is_silent = 1;
			(void)shutdown(watched.fd, SHUT_RDWR);
			(void)PQconsumeInput(link->connection);
		}
		if ((ready < 0 && errno != EINTR) || (ready > 0 && !PQconsumeInput(link->connection)) || ready == 0)
			return WW_EIO;
	}
	return WW_OK;
}

static PGresult *next_answer(struct link *link)
{
	return PQflush(link->connection) < 0 || wait_for_answer(link) ? NULL : PQgetResult(link->connection);
}

/* The last answer to what was sent: of several statements, that of the last one, or of the one that failed. */
static PGresult *last_answer(struct link *link)
{
	PGresult *last = NULL;
	PGresult *answer;

	while ((answer = next_answer(link)) != NULL) {
		PQclear(last);
		last = answer;
	}
	return last;
}

/* ---- Statements */

enum { ARGUMENTS_MAX = 8, FIELD_MAX = 1000 << 20 };
static const char NAME[] = "prepared";

/* The arguments as libpq takes them. */
struct arguments {
	Oid types[ARGUMENTS_MAX];
	const char *values[ARGUMENTS_MAX];
	int lengths[ARGUMENTS_MAX];
	int formats[ARGUMENTS_MAX];
};

/* WW_ETOOBIG: too many bytes for a field of PostgreSQL. */
static int pass(struct arguments *to, const struct link_argument *arguments, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (arguments[i].size > FIELD_MAX)
			return WW_ETOOBIG;
		to->types[i] = (Oid)arguments[i].type;
		to->values[i] = arguments[i].bytes ? arguments[i].bytes : "";
		to->lengths[i] = (int)arguments[i].size;
		to->formats[i] = 1;
	}
	return WW_OK;
}

int ww_postgres_link_prepare(struct link *link, const char *statement, const enum link_type *types, size_t count)
{
	Oid oids[ARGUMENTS_MAX];
	PGresult *answer;
	int error = WW_OK;

	for (size_t i = 0; i < count; i++)
		oids[i] = (Oid)types[i];
	answer = PQsendPrepare(link->connection, NAME, statement, (int)count, oids) ? last_answer(link) : NULL;
	if (PQresultStatus(answer) != PGRES_COMMAND_OK)
		error = failed(link, answer);
	PQclear(answer);
	link->prepared = error ? NULL : statement;
	return error;
}

/* Returns 0 if that fails. */
static int send_statement(struct link *link, const char *statement, const struct arguments *to, size_t count)
{
	if (statement == link->prepared)
		return PQsendQueryPrepared(link->connection, NAME, (int)count, to->values, to->lengths, to->formats, 1);
	return PQsendQueryParams(
	    link->connection, statement, (int)count, to->types, to->values, to->lengths, to->formats, 1);
}

int ww_postgres_link_ask(
    struct link *link, const char *statement, const struct link_argument *arguments, size_t count, PGresult **result)
{
	struct arguments to;
	PGresult *answer;
	int error = pass(&to, arguments, count);

	if (result)
		*result = NULL;
	if (error)
		return error;
	answer = send_statement(link, statement, &to, count) ? last_answer(link) : NULL;
	if (PQresultStatus(answer) != PGRES_COMMAND_OK && PQresultStatus(answer) != PGRES_TUPLES_OK)
		error = failed(link, answer);
	if (result)
		*result = error ? NULL : answer;
	if (error || !result)
		PQclear(answer);
	return error;
}

int ww_postgres_link_execute(struct link *link, const char *statement)
{
	PGresult *answer = PQsendQuery(link->connection, statement) ? last_answer(link) : NULL;
	ExecStatusType status = PQresultStatus(answer);
	int error = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? WW_OK : failed(link, answer);

	PQclear(answer);
	return error;
}

int ww_postgres_link_stream(
    struct link *link, const char *statement, const struct link_argument *arguments, size_t count)
{
	struct arguments to;
	int error = pass(&to, arguments, count);

	if (error)
		return error;
	if (!send_statement(link, statement, &to, count))
		return failed(link, NULL);
	(void)PQsetSingleRowMode(link->connection);
	return WW_OK;
}

int ww_postgres_link_row(struct link *link, PGresult **row)
{
	PGresult *answer = next_answer(link);
	int error = LINK_END;

	*row = NULL;
	if (PQresultStatus(answer) == PGRES_SINGLE_TUPLE) {
		*row = answer;
		return WW_OK;
	}
	if (PQresultStatus(answer) != PGRES_TUPLES_OK && PQresultStatus(answer) != PGRES_COMMAND_OK)
		error = failed(link, answer);
	/* The end of the answer. */
	while (answer) {
		PQclear(answer);
		answer = next_answer(link);
	}
	return error;
}

int64_t ww_postgres_link_number(const PGresult *result, int row, int column)
{
	const unsigned char *bytes = (const unsigned char *)PQgetvalue(result, row, column);
	int size = PQgetisnull(result, row, column) ? 0 : PQgetlength(result, row, column);
	uint64_t number = size && bytes[0] & 0x80 ? UINT64_MAX : 0;

	for (int i = 0; i < size; i++)
		number = number << 8 | bytes[i];
	return (int64_t)number;
}

const void *ww_postgres_link_bytes(const PGresult *result, int row, int column, size_t *size)
{
	*size = PQgetisnull(result, row, column) ? 0 : (size_t)PQgetlength(result, row, column);
	return PQgetvalue(result, row, column);
}
