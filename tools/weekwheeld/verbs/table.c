/* The table of all verbs that are carried out, and the two that belong to nothing else: auth and advance. */
#include "tools/weekwheeld/verbs/verbs.h"

static int advance(struct call *call)
{
	struct connection *connection = call->connection;
	struct server *server = connection->server;
	uint64_t now = 0;
	int error;

	if (!server->elapsed_clock) {
		answer_text(connection, "UNKNOWN_COMMAND\r\n");
		return 0;
	}
	/* Earlier commands are done before the time changes. */
	turn_commit(server);
	error = clock_advance(server, call->command->delay);
	if (error == WW_OK)
		error = ww_jobs_now(server->jobs, WW_JOB_WALL, &now);
	if (error != WW_OK)
		answer_result(connection, error, NULL);
	else
		answer_format(connection, "ADVANCED %llu\r\n", (unsigned long long)(now / WW_SECOND));
	return 0;
}

static const struct steps verb_advance = {advance, NULL, NULL, NULL};

static int login(struct call *call)
{
	login_answer(call->connection, call->command);
	return 0;
}

static const struct steps verb_auth = {login, NULL, NULL, NULL};

static int take_headers(struct call *call)
{
	call->connection->takes_headers = 1;
	call->text = "HEADERS\r\n";
	return 0;
}

static const struct steps verb_headers = {take_headers, NULL, NULL, NULL};

static int take_code(struct call *call)
{
	call->connection->code = (uint32_t)call->command->bound;
	call->text = "CODE\r\n";
	return 0;
}

static const struct steps verb_code = {take_code, NULL, NULL, NULL};

const struct steps *const verbs_table[VERBS] = {
    [VERB_PUT] = &verb_put,
    [VERB_PEEK] = &verb_peek,
    [VERB_PEEK_READY] = &verb_peek_next,
    [VERB_PEEK_DELAYED] = &verb_peek_next,
    [VERB_PEEK_BURIED] = &verb_peek_next,
    [VERB_RESERVE] = &verb_reserve,
    [VERB_RESERVE_TIMEOUT] = &verb_reserve,
    [VERB_RESERVE_JOB] = &verb_reserve_job,
    [VERB_DELETE] = &verb_delete,
    [VERB_RELEASE] = &verb_release,
    [VERB_BURY] = &verb_release,
    [VERB_TOUCH] = &verb_touch,
    [VERB_KICK] = &verb_kick,
    [VERB_KICK_JOB] = &verb_kick_job,
    [VERB_USE] = &verb_use,
    [VERB_WATCH] = &verb_watch,
    [VERB_IGNORE] = &verb_ignore,
    [VERB_LIST_TUBES] = &verb_list_tubes,
    [VERB_LIST_TUBE_USED] = &verb_list_used,
    [VERB_LIST_TUBES_WATCHED] = &verb_list_watched,
    [VERB_STATS] = &verb_stats,
    [VERB_STATS_JOB] = &verb_stats_job,
    [VERB_STATS_TUBE] = &verb_stats_tube,
    [VERB_PAUSE_TUBE] = &verb_pause,
    [VERB_PUT_KEY] = &verb_put,
    [VERB_PUT_AT] = &verb_put,
    [VERB_MOVE] = &verb_move,
    [VERB_MOVE_KEY] = &verb_move,
    [VERB_DELETE_KEY] = &verb_delete_key,
    [VERB_RELEASE_JOB] = &verb_release,
    [VERB_BURY_JOB] = &verb_release,
    [VERB_DELETE_JOB] = &verb_delete_job,
    [VERB_PEEK_KEY] = &verb_peek,
    [VERB_STATS_KEY] = &verb_stats_job,
    [VERB_LIST_DELAYED] = &verb_list,
    [VERB_FORECAST] = &verb_list,
    [VERB_ADVANCE] = &verb_advance,
    [VERB_AUTH] = &verb_auth,
    [VERB_LIMIT_TUBE] = &verb_limit,
    [VERB_REPORT] = &verb_report,
    [VERB_HISTORY] = &verb_history,
    [VERB_HEADERS] = &verb_headers,
    [VERB_CODE] = &verb_code,
    [VERB_LIST_LIMITS] = &verb_list_limits,
    [VERB_PUT_SCHEDULE] = &verb_put_schedule,
    [VERB_DELETE_SCHEDULE] = &verb_change_schedule,
    [VERB_PAUSE_SCHEDULE] = &verb_change_schedule,
    [VERB_RESUME_SCHEDULE] = &verb_change_schedule,
    [VERB_RUN_SCHEDULE] = &verb_run_schedule,
    [VERB_LIST_SCHEDULES] = &verb_list_schedules,
};
