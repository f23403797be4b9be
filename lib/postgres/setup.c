/* Makes, checks and removes the tables and functions in a database, in one transaction each. */
#include <libpq-fe.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/postgres/schema.h"
#include "weekwheel/jobs_postgres.h"

/* A session that reports errors. After an error it executes nothing more. */
struct session {
	PGconn *connection;
	ww_jobs_problem_fn *report;
	void *context;
	int error;
	int problems;
};

static void say(struct session *session, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct session *session, const char *format, ...)
{
	char sentence[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof sentence, format, arguments);
	va_end(arguments);
	session->problems++;
	if (session->report)
		session->report(sentence, session->context);
}

/* ---- Errors of libpq. The first entry that begins as the state does is taken. */

static const struct {
	const char *state;
	int error;
	const char *remedy;
} states[] = {
    {"25006", WW_EDENIED,
        "it takes no writes: connect to the primary, for instance by target_session_attrs=read-write"},
    {"42501", WW_EDENIED,
        "connect as the owner of the schema weekwheel; the first setup needs a role that may make "
        "schemas: GRANT CREATE ON DATABASE"},
    {"28", WW_EDENIED, "the role may not log in so"},
    {"53300", WW_EAGAIN, "it has no connection left: try again, or raise max_connections"},
    {"53200", WW_ENOMEM, "it has too little memory or max_locks_per_transaction"},
    {"53", WW_EFULL, "make room for it"},
    {"57P", WW_EAGAIN, "it is starting or stopping, or has ended this session: try again"},
    {"08", WW_EIO, "the connection was lost"},
    {"2BP01", WW_EBUSY, "something else in the database uses what is to be removed: remove that first"},
    {"42P01", WW_ENOTFOUND,
        "tables are missing: 'weekwheel postgres remove' and 'weekwheel postgres setup' make them anew"},
    {"40", WW_EAGAIN, "try again"},
    {"55P03", WW_EAGAIN, "a lock is held by another session: try again, or end that"},
    {"", WW_ESYSTEM, "PostgreSQL refuses it"},
};

static void fail_by_state(struct session *session, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	size_t i = 0;

	state = state ? state : "08";
	while (strncmp(states[i].state, state, strlen(states[i].state)) != 0)
		i++;
	session->error = states[i].error;
	say(session, "%s: %s%s%.300s", message ? message : PQerrorMessage(session->connection), states[i].remedy,
	    detail ? "; " : "", detail ? detail : "");
}

/* There is no SQLSTATE of a server that cannot be reached. */
static void fail_to_connect(struct session *session, const char *url)
{
	const char *message = PQerrorMessage(session->connection);
	int length = (int)strcspn(message, "\n");
	PGPing ping = PQping(url);

	session->error = ping == PQPING_OK ? WW_EDENIED : ping == PQPING_REJECT ? WW_EAGAIN : WW_EIO;
	if (ping == PQPING_NO_ATTEMPT)
		session->error = WW_EINVAL;
	if (strstr(message, "database \"") && strstr(message, "does not exist"))
		say(session, "%.*s: make it by 'createdb', or name another in the URL", length, message);
	else
		say(session, "%.*s: %s", length, message,
		    ping == PQPING_OK       ? "the server is there: see the user, the password and pg_hba.conf"
		    : ping == PQPING_REJECT ? "it starts or stops: try again"
		                            : "see the host, the port and whether PostgreSQL runs");
}

/* ---- Asking */

static PGresult *ask(struct session *session, const char *sql)
{
	PGresult *result = session->error ? NULL : PQexec(session->connection, sql);
	ExecStatusType status = PQresultStatus(result);

	if (session->error || status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
		return result;
	fail_by_state(session, result);
	PQclear(result);
	return NULL;
}

static void execute(struct session *session, const char *sql)
{
	PQclear(ask(session, sql));
}

/* The number that a statement returns; 0 after an error. */
static long long number(struct session *session, const char *sql)
{
	PGresult *result = ask(session, sql);
	long long value = result && PQntuples(result) ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : 0;

	PQclear(result);
	return value;
}

/* A file; no NUL ends it. */
static void run_file(struct session *session, const char *text, size_t size)
{
	char *copy = malloc(size + 1);

	if (!copy) {
		session->error = WW_ENOMEM;
		return;
	}
	memcpy(copy, text, size);
	copy[size] = 0;
	execute(session, copy);
	free(copy);
}

static void ignore(void *context, const char *notice)
{
	(void)context;
	(void)notice;
}

static void demand_server(struct session *session)
{
	if (PQserverVersion(session->connection) < 150000) {
		session->error = WW_EVERSION;
		say(session, "this is PostgreSQL %d: weekwheel needs 15 or later",
		    PQserverVersion(session->connection) / 10000);
	}
}

/* libpq would take any other text without = for the name of a database. */
static int is_url(const char *url)
{
	return strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0 || strchr(url, '=');
}

/* Connect and begin a transaction. What follows does nothing if that fails. */
static struct session open_session(const char *url, ww_jobs_problem_fn *report, void *context, const char *begin)
{
	/* Parameters in the URL override the URL. */
	const char *const names[] = {"connect_timeout", "dbname", "fallback_application_name", "client_encoding", NULL};
	const char *const values[] = {"10", url, "weekwheel", "UTF8", NULL};
	struct session session = {.report = report, .context = context, .error = WW_EINVAL};

	if (!url || !is_url(url)) {
		say(&session, "the URL of a database is expected, such as postgresql:///shop, or \"service=shop\"");
		return session;
	}
	session.error = WW_OK;
	session.connection = PQconnectdbParams(names, values, 1);
	if (!session.connection)
		session.error = WW_ENOMEM;
	else if (PQstatus(session.connection) != CONNECTION_OK)
		fail_to_connect(&session, url);
	else
		demand_server(&session);
	if (session.connection)
		(void)PQsetNoticeProcessor(session.connection, ignore, NULL);
	execute(&session, begin);
	/* Our files qualify all names; those of PostgreSQL must not resolve to others. */
	execute(&session, "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL lock_timeout = '10s'");
	return session;
}

/* Commit if nothing failed. Returns the error. */
static int close_session(struct session *session)
{
	execute(session, "COMMIT");
	PQfinish(session->connection);
	return session->error;
}

static int has_schema(struct session *session)
{
	return (int)number(session, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('weekwheel.about')");
}

/* Nobody else owns the store, or can become its owner, until the transaction ends. */
static void demand_no_owner(struct session *session, const char *what)
{
	if (session->error || number(session, "SELECT pg_try_advisory_xact_lock(1463900017, 1)::int") || session->error)
		return;
	session->error = WW_EINUSE;
	say(session, "a weekwheeld has the jobs of this database open: end it first, to %s", what);
}

static void demand_version(struct session *session)
{
	long long version = number(session, "SELECT version FROM weekwheel.about");

	if (session->error || version == SCHEMA_VERSION)
		return;
	session->error = WW_EVERSION;
	say(session, "the tables are of version %lld, and this weekwheel knows version %d: %s", version, SCHEMA_VERSION,
	    version > SCHEMA_VERSION ? "use the later version of weekwheel"
	                             : "'weekwheel postgres remove' and 'weekwheel postgres setup' make them anew");
}

/* ---- Setup */

/* A dump was read into another cluster, which counts its transactions anew. */
static void adopt(struct session *session)
{
	if (session->error ||
	    !number(session,
	        "SELECT count(*) FROM weekwheel.about, pg_control_system() WHERE cluster <> system_identifier"))
		return;
	demand_no_owner(session, "take over what a dump has brought");
	execute(session, "ALTER SEQUENCE weekwheel.opened RESTART;"
	                 "UPDATE weekwheel.inbox SET xid = pg_current_xact_id();"
	                 "UPDATE weekwheel.about SET cluster = system_identifier FROM pg_control_system()");
}

/* A running server keeps the members of the options as they were when it first read the inbox. */
static void demand_owner_knows(struct session *session)
{
	if (!session->error && !number(session, SCHEMA_IS_WHOLE))
		demand_no_owner(session, "bring the tables up to date");
}

int ww_jobs_postgres_setup(const char *url, ww_jobs_problem_fn *report, void *context)
{
	struct session session = open_session(url, report, context, "BEGIN");

	/* One after the other. */
	execute(&session, "SELECT pg_advisory_xact_lock(1463900017, 3)");
	if (!has_schema(&session))
		run_file(&session, schema_sql, schema_sql_size);
	demand_version(&session);
	demand_owner_knows(&session);
	run_file(&session, finish_sql, finish_sql_size);
	adopt(&session);
	run_file(&session, schedules_sql, schedules_sql_size);
	run_file(&session, views_sql, views_sql_size);
	run_file(&session, functions_sql, functions_sql_size);
	return close_session(&session);
}

/* ---- Check */

static void check_parts(struct session *session, struct ww_jobs_postgres_facts *facts)
{
	PGresult *rows = ask(session,
	    "SELECT (SELECT coalesce(sum(coalesce(cardinality((options).ids), 1)), 0) FROM weekwheel.inbox WHERE ring = part),"
	    "(SELECT count(*) FROM weekwheel.turn WHERE ring = part) FROM generate_series(0, 3) part");

	for (int i = 0; rows && i < WW_JOBS_POSTGRES_PARTS; i++) {
		facts->inbox[i] = strtoull(PQgetvalue(rows, i, 0), NULL, 10);
		facts->turns[i] = strtoull(PQgetvalue(rows, i, 1), NULL, 10);
	}
	PQclear(rows);
	facts->part = (uint32_t)number(session, "SELECT last_value % 4 FROM weekwheel.current");
	facts->bytes =
	    (uint64_t)number(session, "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' "
	                              "AND relnamespace = 'weekwheel'::regnamespace");
}

static void check_tables(struct session *session)
{
	long long missing = number(session,
	    "SELECT count(*) FROM (SELECT name || '_' || part FROM unnest('{inbox,turn,ended}'::text[]) name, generate_series(0, 3) "
	    "part UNION ALL SELECT name || '_' || slot FROM unnest('{job,gone}'::text[]) name, generate_series(0, 168) slot) "
	    "wanted (name) WHERE to_regclass('weekwheel.' || name) IS NULL");
	long long vacuumed = number(session,
	    "SELECT count(*) FROM pg_class WHERE relnamespace = 'weekwheel'::regnamespace AND relkind = 'r' AND relispartition "
	    "AND NOT coalesce('autovacuum_enabled=off' = ANY (reloptions), false)");
	long long functions = number(session,
	    "SELECT count(*) FROM pg_proc WHERE pronamespace = 'weekwheel'::regnamespace AND prosecdef AND proname IN "
	    "('put', 'put_many', 'cancel', 'move', 'finish', 'release', 'bury', 'put_schedule', 'remove_schedule', 'read_jobs', "
	    "'read_runs', 'allow', 'forbid')");
	long long unchecked = number(session,
	    "SELECT count(*) FROM pg_class LEFT JOIN pg_trigger ON tgrelid = pg_class.oid AND tgname = 'check_floor' AND tgenabled = 'A' "
	    "WHERE relnamespace = 'weekwheel'::regnamespace AND relname ~ '^ended(_[0-3])?$' AND tgname IS NULL");

	if (missing)
		say(session, "%lld tables are missing: restore the schema weekwheel from a backup", missing);
	if (vacuumed)
		say(session,
		    "autovacuum is on for %lld tables, where it holds locks that TRUNCATE needs: "
		    "ALTER TABLE ... SET (autovacuum_enabled = off)",
		    vacuumed);
	if (unchecked)
		say(session,
		    "a finish that comes too late may commit, as the trigger check_floor of %lld tables does not fire ALWAYS: "
		    "'weekwheel postgres setup' mends that",
		    unchecked);
	if (!session->error && functions != SCHEMA_FUNCTIONS)
		say(session, "functions are missing or of another version: 'weekwheel postgres setup' makes them anew");
}

static void check_cluster(struct session *session, struct ww_jobs_postgres_facts *facts)
{
	PGresult *row =
	    ask(session, "SELECT version, cluster, cluster = system_identifier, current_setting('synchronous_commit')"
	                 " FROM weekwheel.about, pg_control_system()");

	if (row && PQntuples(row) == 1) {
		facts->version = (uint32_t)strtoul(PQgetvalue(row, 0, 0), NULL, 10);
		facts->cluster = (uint64_t)strtoll(PQgetvalue(row, 0, 1), NULL, 10);
		snprintf(facts->sync, sizeof facts->sync, "%s", PQgetvalue(row, 0, 3));
		if (*PQgetvalue(row, 0, 2) == 'f')
			say(session,
			    "the tables come from another cluster by a dump: 'weekwheel postgres setup' takes them over");
		if (strcmp(facts->sync, "remote_apply") == 0)
			say(session,
			    "synchronous_commit is remote_apply: a report on a standby then holds up each put for up to "
			    "max_standby_streaming_delay; set it to on, which loses nothing either");
	}
	PQclear(row);
}

/*
 * Sessions that have put in an open transaction: jobs wait for them, and so does the part. Locks of prepared ones have
 * no pid.
 */
static void check_writers(struct session *session, struct ww_jobs_postgres_facts *facts)
{
	PGresult *rows = ask(session,
	    "SELECT coalesce(pid, 0), coalesce(extract(epoch FROM clock_timestamp() - xact_start)::bigint, 0) FROM pg_locks "
	    "LEFT JOIN pg_stat_activity USING (pid) WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted AND "
	    "relation IN (SELECT oid FROM pg_class WHERE relnamespace = 'weekwheel'::regnamespace AND relname LIKE 'inbox\\__') "
	    "AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
	    "GROUP BY 1, 2 ORDER BY 2 DESC");

	facts->writers = rows ? (uint32_t)PQntuples(rows) : 0;
	for (int i = 0; rows && i < PQntuples(rows); i++) {
		const char *pid = PQgetvalue(rows, i, 0), *age = PQgetvalue(rows, i, 1);

		if (strcmp(pid, "0") == 0)
			say(session,
			    "a prepared transaction has put jobs: they wait until COMMIT PREPARED; see pg_prepared_xacts");
		else if (strtoll(age, NULL, 10) >= 60)
			say(session,
			    "process %s has put jobs and not ended its transaction, begun %s seconds ago: they wait for that",
			    pid, age);
	}
	PQclear(rows);
}

static void check_refused(struct session *session)
{
	long long refused = number(session, "SELECT count(*) FROM weekwheel.refused");

	if (!session->error && refused)
		say(session,
		    "%lld rows of the inbox made no sense to the server: weekwheel.refused has them, and why; put them anew, "
		    "then delete them there",
		    refused);
}

static void fail_not_found(struct session *session)
{
	if (session->error)
		return;
	session->error = WW_ENOTFOUND;
	say(session, "the database has no jobs of weekwheel: 'weekwheel postgres setup' makes the tables");
}

int ww_jobs_postgres_check(
    const char *url, struct ww_jobs_postgres_facts *facts, ww_jobs_problem_fn *report, void *context)
{
	struct session session = open_session(url, report, context, "BEGIN READ ONLY");
	struct ww_jobs_postgres_facts found = {.version = 0};

	if (!has_schema(&session))
		fail_not_found(&session);
	demand_version(&session);
	check_cluster(&session, &found);
	check_tables(&session);
	check_parts(&session, &found);
	check_writers(&session, &found);
	check_refused(&session);
	found.is_owned =
	    (int)number(&session, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = "
	                          "1463900017 AND objid = 1 AND objsubid = 2 AND mode = 'ExclusiveLock' AND "
	                          "database = (SELECT oid FROM pg_database WHERE datname = current_database())");
	if (!close_session(&session) && facts)
		*facts = found;
	return session.error ? session.error : session.problems;
}

/* ---- Remove */

static void demand_no_jobs(struct session *session)
{
	long long rows =
	    number(session, "SELECT (SELECT count(*) FROM weekwheel.inbox) + (SELECT count(*) FROM weekwheel.turn) + "
	                    "(SELECT count(*) FROM weekwheel.job)");

	if (session->error || rows == 0)
		return;
	session->error = WW_EBUSY;
	say(session, "the tables have %lld rows, and there may be jobs in them", rows);
}

/* By name and all at once, so that objects that others have built on them are not removed, as CASCADE would. */
static const char drop[] =
    "DO $$ BEGIN "
    "DROP TRIGGER IF EXISTS check_floor ON weekwheel.ended;"
    "DROP VIEW weekwheel.jobs, weekwheel.buried, weekwheel.tubes, weekwheel.runs, weekwheel.puts;"
    "EXECUTE (SELECT 'DROP FUNCTION ' || string_agg(oid::regprocedure::text, ', ') FROM pg_proc WHERE pronamespace = "
    "'weekwheel'::regnamespace);"
    "EXECUTE (SELECT 'DROP TABLE ' || string_agg(oid::regclass::text, ', ') FROM pg_class WHERE relnamespace = "
    "'weekwheel'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition);"
    "EXECUTE (SELECT 'DROP SEQUENCE ' || string_agg(oid::regclass::text, ', ') FROM pg_class WHERE relnamespace = "
    "'weekwheel'::regnamespace AND relkind = 'S');"
    "DROP TYPE weekwheel.options; DROP SCHEMA weekwheel; END $$";

int ww_jobs_postgres_remove(const char *url, int with_jobs, ww_jobs_problem_fn *report, void *context)
{
	struct session session = open_session(url, report, context, "BEGIN");

	if (!has_schema(&session))
		fail_not_found(&session);
	demand_no_owner(&session, "remove them");
	/* Puts wait until they fail. */
	execute(&session, "LOCK TABLE weekwheel.inbox IN ACCESS EXCLUSIVE MODE");
	if (!with_jobs)
		demand_no_jobs(&session);
	execute(&session, drop);
	return close_session(&session);
}
