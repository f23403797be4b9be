/* Makes values of Lua of answers, and the other way round, as Redis does. */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/script/script_internal.h"

/* How deep tables in tables may be. A client's parser gives up sooner. */
enum { DEPTH_MOST = 100 };

/* The bytes up to the end of the line; *at moves behind it. */
static struct resp_arg take_line(const char *answers, size_t *at)
{
	const char *begin = answers + *at;
	const char *end = strchr(begin, '\r');

	*at += (size_t)(end - begin) + 2;
	return (struct resp_arg){begin, (size_t)(end - begin)};
}

static void push_field(lua_State *lua, const char *name, struct resp_arg text)
{
	lua_createtable(lua, 0, 1);
	lua_pushlstring(lua, text.data, text.size);
	lua_setfield(lua, -2, name);
}

static void push_bulk(lua_State *lua, long size, const char *answers, size_t *at)
{
	if (size < 0) {
		lua_pushboolean(lua, 0);
		return;
	}
	lua_pushlstring(lua, answers + *at, (size_t)size);
	*at += (size_t)size + 2;
}

static void push_array(lua_State *lua, long count, const char *answers, size_t *at)
{
	if (count < 0) {
		lua_pushboolean(lua, 0);
		return;
	}
	luaL_checkstack(lua, 4, "too deep");
	lua_createtable(lua, (int)count, 0);
	for (long i = 1; i <= count; i++) {
		/* Lua looks at few of a text's bytes to find it among all, so tens of thousands may be alike. */
		sandbox_check(lua);
		convert_answer(lua, answers, at);
		lua_rawseti(lua, -2, (int)i);
	}
}

void convert_answer(lua_State *lua, const char *answers, size_t *at)
{
	struct resp_arg line = take_line(answers, at);
	const struct resp_arg text = {line.data + 1, line.size - 1};

	if (line.data[0] == '+')
		push_field(lua, "ok", text);
	else if (line.data[0] == '-')
		push_field(lua, "err", text);
	else if (line.data[0] == ':')
		lua_pushnumber(lua, (lua_Number)strtoll(text.data, NULL, 10));
	else if (line.data[0] == '$')
		push_bulk(lua, strtol(text.data, NULL, 10), answers, at);
	else if (line.data[0] == '_')
		lua_pushboolean(lua, 0);
	else
		push_array(lua, strtol(text.data, NULL, 10), answers, at);
}

void convert_skip(const char *answers, size_t *at)
{
	struct resp_arg line = take_line(answers, at);
	long count = strtol(line.data + 1, NULL, 10);

	if (line.data[0] == '$' && count >= 0)
		*at += (size_t)count + 2;
	for (long i = 0; strchr("*>~", line.data[0]) && i < count; i++)
		convert_skip(answers, at);
}

/* ---- Values */

/* The member of a table, if it is a text; on top of the stack. */
static const char *text_of(lua_State *lua, const char *name)
{
	lua_pushstring(lua, name);
	lua_rawget(lua, -2);
	return lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : NULL;
}

/* A status must be one line. */
static void reply_status(struct conn *conn, const char *text)
{
	reply_bytes(conn, "+", 1);
	for (size_t size; *text; text += size + (text[size] != 0)) {
		size = strcspn(text, "\r\n");
		reply_bytes(conn, text, size);
		if (text[size])
			reply_bytes(conn, " ", 1);
	}
	reply_text(conn, "\r\n");
}

static void reply_value(lua_State *lua, struct conn *conn, int depth);

/* Up to the first nil. */
static void reply_list(lua_State *lua, struct conn *conn, int depth)
{
	int count = 0;

	for (;; count++) {
		int is_nil;
		lua_rawgeti(lua, -1, count + 1);
		is_nil = lua_isnil(lua, -1);
		lua_pop(lua, 1);
		if (is_nil)
			break;
	}
	reply_array(conn, (size_t)count);
	for (int i = 1; i <= count; i++) {
		lua_rawgeti(lua, -1, i);
		reply_value(lua, conn, depth + 1);
		lua_pop(lua, 1);
	}
}

static void reply_table(lua_State *lua, struct conn *conn, int depth)
{
	const char *text;

	/* A table may contain itself, and two tables each other many times. */
	if (depth > DEPTH_MOST)
		luaL_error(lua, "ERR the result has tables in tables more than %d deep", DEPTH_MOST);
	if (conn->life >= CONN_DEAD)
		(void)sandbox_end(lua);
	sandbox_check(lua);
	luaL_checkstack(lua, 4, "too deep");
	if ((text = text_of(lua, "err"))) {
		reply_error(conn, "%s", text);
		lua_pop(lua, 1);
		return;
	}
	lua_pop(lua, 1);
	text = text_of(lua, "ok");
	if (text)
		reply_status(conn, text);
	lua_pop(lua, 1);
	if (!text)
		reply_list(lua, conn, depth);
}

/* As the processors do that Redis is used on: what is out of range becomes the smallest number. */
static int64_t whole(lua_Number number)
{
	return number >= -0x1p63 && number < 0x1p63 ? (int64_t)number : INT64_MIN;
}

static void reply_value(lua_State *lua, struct conn *conn, int depth)
{
	size_t size;
	const char *text;

	switch (lua_type(lua, -1)) {
	case LUA_TSTRING:
		text = lua_tolstring(lua, -1, &size);
		reply_bulk(conn, text, size);
		break;
	case LUA_TNUMBER:
		reply_integer(conn, whole(lua_tonumber(lua, -1)));
		break;
	case LUA_TBOOLEAN:
		if (lua_toboolean(lua, -1))
			reply_integer(conn, 1);
		else
			reply_null(conn);
		break;
	case LUA_TTABLE:
		reply_table(lua, conn, depth);
		break;
	default:
		reply_null(conn);
	}
}

void convert_value(lua_State *lua, struct conn *conn)
{
	reply_value(lua, conn, 0);
}
