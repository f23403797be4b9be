/* What scripts have of Lua's libraries. Left out is what reaches out of the sandbox, and what its hook does not see. */
#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/sandbox/sandbox_internal.h"

/* The longest text that string.rep makes, in bytes. */
enum { REPEATED_MOST = 8 << 20 };
/* As in Redis. The largest number of nrand48 would make 1, and is left out. */
enum { RANDOM_MOST = 2147483647 };

/*
 * In Lua itself, so that the hook sees how long it takes. Errors become what they are in Redis, whose pcall returns the text
 * of an error that is a table, and a handler of xpcall runs after its error, as the hook would not see it within.
 */
static const char prelude[] =
    "local pcall, rawget, rawset, select, type, error, tonumber = pcall, rawget, rawset, select, type, error, tonumber\n"
    "local g = ...\n"
    "local function caught(ok, e, ...)\n"
    "  if not ok and type(e) == 'table' and rawget(e, 'err') then return ok, rawget(e, 'err') end\n"
    "  return ok, e, ...\n"
    "end\n"
    "local function handled(handler, ok, ...)\n"
    "  if ok then return ok, ... end\n"
    "  return ok, handler(...)\n"
    "end\n"
    "function g.pcall(...) return caught(pcall(...)) end\n"
    "function g.xpcall(f, handler) return handled(handler, pcall(f)) end\n"
    "function g.table.insert(t, ...)\n"
    "  local n, at, value = #t, ...\n"
    "  if select('#', ...) == 1 then return rawset(t, n + 1, at) and nil end\n"
    "  if select('#', ...) ~= 2 then error(\"wrong number of arguments to 'insert'\", 2) end\n"
    "  at = tonumber(at) or error(\"bad argument #2 to 'insert' (number expected)\", 2)\n"
    "  at = at - at % 1\n"
    "  for i = n, at, -1 do rawset(t, i + 1, rawget(t, i)) end\n"
    "  rawset(t, at, value)\n"
    "end\n"
    "local function less(a, b) return a < b end\n"
    "local function sink(t, at, n, before)\n"
    "  local value = t[at]\n"
    "  while 2 * at <= n do\n"
    "    local child = 2 * at\n"
    "    if child < n and before(t[child], t[child + 1]) then child = child + 1 end\n"
    "    if not before(value, t[child]) then break end\n"
    "    t[at] = t[child]\n"
    "    at = child\n"
    "  end\n"
    "  t[at] = value\n"
    "end\n"
    "function g.table.sort(t, before)\n"
    "  local n = #t\n"
    "  before = before or less\n"
    "  for at = n - n % 2, 2, -2 do sink(t, at / 2, n, before) end\n"
    "  for last = n, 2, -1 do\n"
    "    t[1], t[last] = t[last], t[1]\n"
    "    sink(t, 1, last - 1, before)\n"
    "  end\n"
    "end\n";

static int set_raw(lua_State *lua)
{
	luaL_checktype(lua, 1, LUA_TTABLE);
	luaL_checkany(lua, 3);
	if (sandbox_is_protected(lua, 1))
		return luaL_error(lua, "Attempt to modify a readonly table");
	lua_settop(lua, 3);
	lua_rawset(lua, 1);
	return 1;
}

/* Of an empty text there may be as many as one likes, and all of a large one would be made before memory is over. */
static int repeat(lua_State *lua)
{
	size_t size;
	const char *text = luaL_checklstring(lua, 1, &size);
	lua_Number count = luaL_checknumber(lua, 2);
	size_t all;
	size_t part;
	char *made;

	if (size == 0 || !(count >= 1)) {
		lua_pushliteral(lua, "");
		return 1;
	}
	if (count > (lua_Number)(REPEATED_MOST / size))
		return luaL_error(lua, "not enough memory");
	all = size * (size_t)count;
	made = lua_newuserdata(lua, all);
	memcpy(made, text, size);
	for (size_t done = size; done < all; done += part) {
		part = done < all - done ? done : all - done;
		memcpy(made + done, made, part);
	}
	lua_pushlstring(lua, made, all);
	return 1;
}

/* Lua's own counts the values in an int: compilers take the test for its overflow away, and the stack is left. */
static int unpack(lua_State *lua)
{
	int64_t first;
	int64_t last;

	luaL_checktype(lua, 1, LUA_TTABLE);
	first = luaL_optint(lua, 2, 1);
	last = lua_isnoneornil(lua, 3) ? (int64_t)lua_objlen(lua, 1) : luaL_checkint(lua, 3);
	if (first > last)
		return 0;
	if (last - first >= LUAI_MAXCSTACK || !lua_checkstack(lua, (int)(last - first) + 1))
		return luaL_error(lua, "too many results to unpack");
	for (int64_t i = first; i <= last; i++)
		lua_rawgeti(lua, 1, (int)i);
	return (int)(last - first) + 1;
}

/* The same numbers in each script, as in Redis. */
static int random_number(lua_State *lua)
{
	lua_Number number = (lua_Number)(nrand48(sandbox_random(lua)) % RANDOM_MOST) / RANDOM_MOST;
	int count = lua_gettop(lua);
	lua_Number low = count > 1 ? luaL_checkint(lua, 1) : 1;
	lua_Number high;

	if (count == 0) {
		lua_pushnumber(lua, number);
		return 1;
	}
	if (count > 2)
		return luaL_error(lua, "wrong number of arguments");
	high = luaL_checkint(lua, count);
	luaL_argcheck(lua, low <= high, count, "interval is empty");
	number = number * (high - low + 1);
	lua_pushnumber(lua, (lua_Number)(long long)number + low);
	return 1;
}

static int seed_random(lua_State *lua)
{
	unsigned seed = (unsigned)luaL_checkint(lua, 1);
	unsigned short *random = sandbox_random(lua);

	random[0] = 0x330e;
	random[1] = (unsigned short)seed;
	random[2] = (unsigned short)(seed >> 16);
	return 0;
}

static void open_one(lua_State *lua, lua_CFunction open, const char *name)
{
	lua_pushcfunction(lua, open);
	lua_pushstring(lua, name);
	lua_call(lua, 1, 0);
}

/* Remove these from the library of this name, among the globals of Lua. */
static void leave_out(lua_State *lua, const char *library, const char *const *names)
{
	lua_getglobal(lua, library);
	for (; *names; names++) {
		lua_pushnil(lua);
		lua_setfield(lua, -2, *names);
	}
	lua_pop(lua, 1);
}

static void set(lua_State *lua, const char *library, const char *name, lua_CFunction function)
{
	lua_getglobal(lua, library);
	lua_pushcfunction(lua, function);
	lua_setfield(lua, -2, name);
	lua_pop(lua, 1);
}

/* Copy these globals of Lua into the table on top of the stack. */
static void take(lua_State *lua, const char *const *names)
{
	for (; *names; names++) {
		lua_getglobal(lua, *names);
		lua_setfield(lua, -2, *names);
	}
}

/* Scripts reach this table through every string, but not as a table. */
static void protect_strings(lua_State *lua)
{
	lua_pushliteral(lua, "");
	lua_getmetatable(lua, -1);
	lua_pushboolean(lua, 0);
	lua_setfield(lua, -2, "__metatable");
	lua_pop(lua, 2);
}

static void run_prelude(lua_State *lua)
{
	if (luaL_loadbuffer(lua, prelude, sizeof prelude - 1, "=sandbox") != 0)
		lua_error(lua);
	lua_pushvalue(lua, -2);
	lua_call(lua, 1, 0);
}

void library_open(lua_State *lua)
{
	static const char *const kept[] = {"_VERSION", "assert", "error", "getmetatable", "ipairs", "next", "pairs",
	    "rawequal", "rawget", "rawset", "select", "setmetatable", "tonumber", "tostring", "type", "unpack", NULL};
	static const char *const libraries[] = {"string", "table", "math", NULL};
	static const char *const no_strings[] = {"dump", "gfind", NULL};
	static const char *const no_tables[] = {"foreach", "foreachi", "setn", NULL};

	open_one(lua, luaopen_base, "");
	open_one(lua, luaopen_string, LUA_STRLIBNAME);
	open_one(lua, luaopen_table, LUA_TABLIBNAME);
	open_one(lua, luaopen_math, LUA_MATHLIBNAME);
	leave_out(lua, "string", no_strings);
	leave_out(lua, "table", no_tables);
	lua_pushcfunction(lua, set_raw);
	lua_setglobal(lua, "rawset");
	lua_pushcfunction(lua, unpack);
	lua_setglobal(lua, "unpack");
	set(lua, "string", "rep", repeat);
	set(lua, "math", "random", random_number);
	set(lua, "math", "randomseed", seed_random);
	lua_getglobal(lua, "string");
	pattern_open(lua);
	lua_pop(lua, 1);
	protect_strings(lua);
	take(lua, kept);
	take(lua, libraries);
	run_prelude(lua);
	for (const char *const *name = libraries; *name; name++) {
		lua_getfield(lua, -1, *name);
		sandbox_protect(lua);
		lua_setfield(lua, -2, *name);
	}
}
