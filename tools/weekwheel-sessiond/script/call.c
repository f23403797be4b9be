/* The table redis, by which scripts call commands. */
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/commands/rights.h"
#include "tools/weekwheel-sessiond/script/script_internal.h"

/* REDIS_VERSION, a byte for each number. */
enum { REDIS_VERSION_NUMBER = 0x07000f };

static int push_error(lua_State *lua, const char *text)
{
	lua_createtable(lua, 0, 1);
	lua_pushstring(lua, text);
	lua_setfield(lua, -2, "err");
	return 1;
}

/* Make the arguments of a command from those of the function. Returns NULL if one is neither text nor number. */
static const struct resp_arg *take_arguments(lua_State *lua, size_t count)
{
	struct resp_arg *arg = lua_newuserdata(lua, count * sizeof *arg);

	for (size_t i = 0; i < count; i++) {
		int type = lua_type(lua, (int)i + 1);
		char text[64];
		if (type != LUA_TSTRING && type != LUA_TNUMBER)
			return NULL;
		if (type == LUA_TNUMBER) {
			(void)snprintf(text, sizeof text, "%.17g", lua_tonumber(lua, (int)i + 1));
			lua_pushstring(lua, text);
			lua_replace(lua, (int)i + 1);
		}
		arg[i].data = lua_tolstring(lua, (int)i + 1, &arg[i].size);
	}
	return arg;
}

/* Commands about keys and strings, and a few that change nothing of the client. */
static int may_be_called(const struct command_entry *command)
{
	return strcmp(command->group, "string") == 0 || strcmp(command->group, "generic") == 0 ||
	       command->run == command_publish || command->run == command_time || command->run == command_dbsize ||
	       command->run == command_ping || command->run == command_echo;
}

/* Return why the script may not call it, or NULL. */
static const char *refuse(struct script_run *run, const struct request *request)
{
	const struct command_entry *command = request->command;
	int writes = command && command->flags & COMMAND_WRITE;
	const char *why;

	if (!command)
		return "ERR Unknown Redis command called from script";
	if (!may_be_called(command))
		return "ERR This Redis command is not allowed from script";
	if (!command_has_arity(command->arity, request->count))
		return "ERR Wrong number of args calling Redis command from script";
	if (run->is_readonly && (writes || command->run == command_publish))
		return "ERR Write commands are not allowed from read-only scripts.";
	if ((why = rights_refuse(request->conn, command, request->arg, request->count)))
		return why;
	if (writes && (why = data_refuses(request->data, !command_adds(command))))
		return why;
	if (events_take_long(&run->weight, request->conn->database, command, request->arg, request->count))
		return "ERR " EVENTS_LONG;
	return NULL;
}

/* Whether the stripes of its keys are held. A message cannot be taken back, so before it all are. */
static int is_covered(const struct script_run *run, const struct request *request)
{
	struct data_stripes needed = {0};

	if (request->command->run == command_publish)
		data_stripes_all(&needed);
	command_stripes(request->command, request->arg, request->count, &needed);
	for (size_t i = 0; i < sizeof needed.bits / sizeof *needed.bits; i++)
		if (needed.bits[i] & ~run->stripes.bits[i])
			return 0;
	return 1;
}

static void carry_out(struct script_run *run, struct request *request)
{
	struct conn *conn = request->conn;
	struct reply_silence silence = conn->silence;

	conn->silence = (struct reply_silence){0};
	if (request->command->run == command_publish) {
		events_release(1);
		events_hold();
	}
	if (!(request->command->flags & COMMAND_WRITE) || undo_note(&run->undo, request) == 0)
		request_call(conn, request->command, request->arg, request->count);
	conn->silence = silence;
}

/*
 * Push the answer, and take it out of what the client gets. Messages of channels that the client listens to may stand around
 * it, and stay.
 */
static void take_answer(lua_State *lua, struct script_run *run, const struct command_entry *command)
{
	/* In RESP2 a message looks like an answer, but not like one to PUBLISH. SUBSCRIBE in a transaction leads here. */
	const char *kinds = command->run == command_publish ? ">*" : ">";
	struct buffer *out = &run->request->conn->stream.out;
	size_t at = run->answers;
	size_t from;

	while (strchr(kinds, out->data[at]))
		convert_skip(out->data, &at);
	from = at;
	convert_answer(lua, out->data, &at);
	memmove(out->data + from, out->data + at, out->size - at);
	out->size -= at - from;
	run->answers = out->size;
}

/* Raise the error on top of the stack, or return it to the script. */
static int fail(lua_State *lua, int is_caught)
{
	return is_caught ? 1 : lua_error(lua);
}

static int call(lua_State *lua, int is_caught)
{
	struct script_run *run = sandbox_context(lua);
	struct request request = *run->request;
	const char *why;

	sandbox_check(lua);
	request.count = (size_t)lua_gettop(lua);
	request.arg = take_arguments(lua, request.count);
	if (request.count == 0 || !request.arg) {
		(void)push_error(lua, request.count == 0
		                          ? "ERR Please specify at least one argument for this redis lib call"
		                          : "ERR Lua redis lib command arguments must be strings or integers");
		return fail(lua, is_caught);
	}
	request.command = command_find(&request.arg[0]);
	if ((why = refuse(run, &request))) {
		(void)push_error(lua, why);
		return fail(lua, is_caught);
	}
	run->needs_all = !is_covered(run, &request);
	if (run->needs_all)
		return sandbox_end(lua);
	/* What an earlier call has left, for lack of memory. */
	request.conn->stream.out.size = run->answers;
	carry_out(run, &request);
	if (request.conn->life >= CONN_DEAD)
		return sandbox_end(lua);
	take_answer(lua, run, request.command);
	sandbox_check(lua);
	if (!lua_istable(lua, -1))
		return 1;
	lua_getfield(lua, -1, "err");
	if (lua_isnil(lua, -1)) {
		lua_pop(lua, 1);
		return 1;
	}
	lua_pop(lua, 1);
	return fail(lua, is_caught);
}

static int call_raising(lua_State *lua)
{
	return call(lua, 0);
}

static int call_caught(lua_State *lua)
{
	return call(lua, 1);
}

/* ---- The other functions */

static int make_reply(lua_State *lua, const char *field, const char *prefix)
{
	if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING)
		return push_error(lua, "ERR wrong number or type of arguments");
	lua_createtable(lua, 0, 1);
	lua_pushstring(lua, prefix);
	lua_pushvalue(lua, 1);
	lua_concat(lua, 2);
	lua_setfield(lua, -2, field);
	return 1;
}

/* An error without a code gets one. */
static int reply_error_of(lua_State *lua)
{
	const char *text = lua_type(lua, 1) == LUA_TSTRING ? lua_tostring(lua, 1) : "";

	if (text[0] == '-') {
		lua_pushstring(lua, text + 1);
		lua_replace(lua, 1);
		text = lua_tostring(lua, 1);
	}
	return make_reply(lua, "err", strchr(text, ' ') ? "" : "ERR ");
}

static int reply_status_of(lua_State *lua)
{
	return make_reply(lua, "ok", "");
}

static int digest(lua_State *lua)
{
	char name[SCRIPT_NAME];
	size_t size;
	const char *text;

	if (lua_gettop(lua) != 1) {
		(void)push_error(lua, "ERR wrong number of arguments");
		return lua_error(lua);
	}
	text = lua_tolstring(lua, 1, &size);
	cache_name(text ? text : "", text ? size : 0, name);
	lua_pushstring(lua, name);
	return 1;
}

/* Older scripts ask for what has become a matter of course. */
static int agree(lua_State *lua)
{
	lua_pushboolean(lua, 1);
	return 1;
}

enum { LOG_DEBUG, LOG_VERBOSE, LOG_NOTICE, LOG_WARNING };

/* Any client could fill the log, so this is for those who look for a fault. */
static int write_log(lua_State *lua)
{
	int count = lua_gettop(lua);
	lua_Number level = lua_tonumber(lua, 1);
	char excerpt[256];
	size_t size;
	const char *text;
	const char *why = count < 2               ? "ERR redis.log() requires two arguments or more."
	                  : !lua_isnumber(lua, 1) ? "ERR First argument must be a number (log level)."
	                  : !(level >= LOG_DEBUG && level <= LOG_WARNING) ? "ERR Invalid debug level."
	                                                                  : NULL;

	if (why) {
		(void)push_error(lua, why);
		return lua_error(lua);
	}
	for (int i = 2; i <= count; i++)
		if ((text = lua_tolstring(lua, i, &size)))
			message_debug("a script says %s", message_excerpt(excerpt, sizeof excerpt, text, size));
	return 0;
}

void call_install(lua_State *lua)
{
	static const luaL_Reg functions[] = {{"call", call_raising}, {"pcall", call_caught},
	    {"error_reply", reply_error_of}, {"status_reply", reply_status_of}, {"sha1hex", digest}, {"log", write_log},
	    {"replicate_commands", agree}};
	static const char *const levels[] = {[LOG_DEBUG] = "LOG_DEBUG",
	    [LOG_VERBOSE] = "LOG_VERBOSE",
	    [LOG_NOTICE] = "LOG_NOTICE",
	    [LOG_WARNING] = "LOG_WARNING"};

	lua_newtable(lua);
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		lua_pushcfunction(lua, functions[i].func);
		lua_setfield(lua, -2, functions[i].name);
	}
	for (int i = 0; i <= LOG_WARNING; i++) {
		lua_pushinteger(lua, i);
		lua_setfield(lua, -2, levels[i]);
	}
	lua_pushliteral(lua, REDIS_VERSION);
	lua_setfield(lua, -2, "REDIS_VERSION");
	lua_pushinteger(lua, REDIS_VERSION_NUMBER);
	lua_setfield(lua, -2, "REDIS_VERSION_NUM");
	sandbox_protect(lua);
	lua_setfield(lua, -2, "redis");
}
