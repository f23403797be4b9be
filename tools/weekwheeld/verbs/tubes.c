/* The verbs of tubes: a client uses and watches them, or lets them pause. */
#include "tools/weekwheeld/verbs/verbs.h"

static int use(struct call *call)
{
	struct connection *connection = call->connection;
	struct server_tube *tube = tube_make(connection->server, call->command->tube);
	struct server_tube *former = connection->used;

	if (!tube) {
		answer_text(connection, "OUT_OF_MEMORY\r\n");
		return 0;
	}
	tube->users++;
	connection->used = tube;
	former->users--;
	tube_drop(connection->server, former);
	answer_format(connection, "USING %s\r\n", tube->name);
	return 0;
}

static int list_used(struct call *call)
{
	answer_format(call->connection, "USING %s\r\n", call->used);
	return 0;
}

static int watch(struct call *call)
{
	struct connection *connection = call->connection;
	struct server_tube *tube = tube_make(connection->server, call->command->tube);

	if (!tube || watch_add(connection, tube) != 0) {
		if (tube)
			tube_drop(connection->server, tube);
		answer_text(connection, "OUT_OF_MEMORY\r\n");
		return 0;
	}
	answer_format(connection, "WATCHING %zu\r\n", connection->watch_count);
	return 0;
}

static int ignore(struct call *call)
{
	struct connection *connection = call->connection;
	struct server_tube *tube = tube_find(connection->server, call->command->tube);

	if (tube && watch_has(connection, tube)) {
		if (connection->watch_count == 1) {
			answer_text(connection, "NOT_IGNORED\r\n");
			return 0;
		}
		watch_remove(connection, tube);
	}
	answer_format(connection, "WATCHING %zu\r\n", connection->watch_count);
	return 0;
}

static void pause_run(struct call *call)
{
	stats_tube_run(call);
	if (call->result == WW_OK)
		call->result = ww_jobs_pause(call_jobs(call), call->command->tube, call->command->delay);
}

static void pause_answer(struct call *call)
{
	answer_result(call->connection, call->result, "PAUSED\r\n");
}

const struct steps verb_use = {use, NULL, NULL, NULL};
const struct steps verb_list_used = {list_used, NULL, NULL, NULL};
const struct steps verb_watch = {watch, NULL, NULL, NULL};
const struct steps verb_ignore = {ignore, NULL, NULL, NULL};
const struct steps verb_pause = {stats_tube_prepare, pause_run, pause_answer, NULL};
