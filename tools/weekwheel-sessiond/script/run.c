/* Carries out a script as a transaction: with the stripes of its keys, whole or, if the server ends it, not at all. */
#include <lauxlib.h>
#include <time.h>

#include "tools/service/state/state.h"
#include "tools/weekwheel-sessiond/script/script_internal.h"

struct sandbox *run_sandbox(struct request *request)
{
	struct loop *loop = request->conn->loop;

	if (!loop->sandbox)
		loop->sandbox = sandbox_open(loop->server->settings->script_memory, call_install);
	if (!loop->sandbox)
		(void)request_failed(request, WW_ENOMEM);
	return loop->sandbox;
}

static void push_arguments(lua_State *lua, const char *name, const struct resp_arg *arg, size_t count)
{
	lua_createtable(lua, (int)count, 0);
	for (size_t i = 0; i < count; i++) {
		lua_pushlstring(lua, arg[i].data, arg[i].size);
		lua_rawseti(lua, -2, (int)i + 1);
	}
	lua_setfield(lua, -2, name);
}

static void begin(lua_State *lua, void *context)
{
	const struct script_run *run = context;

	push_arguments(lua, "KEYS", run->keys, run->key_count);
	push_arguments(lua, "ARGV", run->args, run->arg_count);
}

static void take(lua_State *lua, void *context)
{
	struct script_run *run = context;

	run->request->conn->stream.out.size = run->answers;
	convert_value(lua, run->request->conn);
}

/* A script that has written is given time to come to its end, as it could hardly be repeated. */
static uint64_t over(void *context)
{
	struct script_run *run = context;

	if (run->was_long || !run->undo.last)
		return 0;
	run->was_long = 1;
	state_seen("scripts",
	    "a script takes longer than --script-time and has changed keys: it gets ten times as much, and is then undone");
	return (SCRIPT_LONGER - 1) * run->request->conn->loop->server->settings->script_time;
}

static void answer_end(struct script_run *run, enum sandbox_end end, const struct sandbox_script *script)
{
	struct conn *conn = run->request->conn;
	const char *error = sandbox_error(conn->loop->sandbox);

	if (end == SANDBOX_FAILED)
		reply_error(conn, "%s", error);
	else if (end == SANDBOX_ENDED)
		reply_error(conn, "ERR Error running script %s: %s, so it was ended, and has changed nothing",
		    script->name, error);
}

/* Run it once. Its keys are held. */
static enum sandbox_end run_held(struct script_run *run, const struct sandbox_script *script, uint64_t time_ns)
{
	const struct sandbox_task task = {*script, time_ns, over, begin, take, run};
	enum sandbox_end end;

	events_hold();
	end = sandbox_run(run->request->conn->loop->sandbox, &task);
	if (end == SANDBOX_ENDED)
		undo_all(&run->undo, run->request->data);
	else
		undo_forget(&run->undo);
	/* Messages of channels stay, and more may follow. */
	if (end != SANDBOX_OK)
		run->request->conn->stream.out.size = run->answers;
	events_release(end != SANDBOX_ENDED);
	return end;
}

/* In a transaction, all is held already, and its changes are one record. */
static enum sandbox_end run_once(struct script_run *run, const struct sandbox_script *script, uint64_t time_ns)
{
	struct data *data = run->request->data;
	struct conn *conn = run->request->conn;
	enum sandbox_end end;

	if (conn->is_in_exec)
		return run_held(run, script, time_ns);
	data_lock(data, &run->stripes);
	data_begin(data);
	request_bound(conn);
	conn->is_in_exec = 1;
	end = run_held(run, script, time_ns);
	conn->is_in_exec = 0;
	data_commit(data);
	data_unlock(data, &run->stripes);
	return end;
}

static void hold_keys(struct script_run *run)
{
	if (run->request->conn->is_in_exec)
		data_stripes_all(&run->stripes);
	for (size_t i = 0; i < run->key_count; i++)
		data_stripes_add(&run->stripes, run->keys[i].data, run->keys[i].size);
}

uint64_t run_clock(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * WW_SECOND + (uint64_t)time.tv_nsec;
}

int run_is_over(struct request *request)
{
	const struct conn *conn = request->conn;

	if (!conn->is_in_exec || conn->exec_ns <= conn->loop->server->settings->script_time)
		return 0;
	reply_error(
	    request->conn, "ERR the scripts of this transaction have taken longer than --script-time: use several");
	return 1;
}

void run_script(struct script_run *run, const struct sandbox_script *script)
{
	struct conn *conn = run->request->conn;
	uint64_t most = conn->loop->server->settings->script_time;
	uint64_t began = run_clock();
	enum sandbox_end end;

	run->answers = conn->stream.out.size;
	hold_keys(run);
	end = run_once(run, script, most);
	if (run->needs_all) {
		/* Which keys it uses is only known now. It has changed nothing, and so gets its time anew. */
		run->was_long = 0;
		run->weight = (struct events_weight){0};
		data_stripes_all(&run->stripes);
		end = run_once(run, script, most);
	}
	answer_end(run, end, script);
	conn->exec_ns += run_clock() - began;
	conn->last = run->request->command;
}
