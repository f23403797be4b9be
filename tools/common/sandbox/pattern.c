/*
 * Bounds the search for patterns. Lua tries each way in which repetitions may match, so a text of n bytes may take n steps for
 * each repetition that has something behind it, multiplied. Nothing can stop that halfway: what may take too long is refused
 * before it begins.
 */
#include <ctype.h>
#include <lauxlib.h>

#include "tools/common/sandbox/sandbox_internal.h"

/* Some tens of ms. */
enum { STEPS_MOST = 1 << 23 };
/* The most bytes of a text in which gsub replaces: it may do so at each. */
enum { REPLACED_MOST = 1 << 20 };

/* Behind a set, which begins at `at`; or behind the pattern. */
static size_t skip_set(const char *pattern, size_t size, size_t at)
{
	at += at + 1 < size && pattern[at + 1] == '^' ? 2 : 1;
	do
		at += at < size && pattern[at] == '%' ? 2 : 1;
	while (at < size && pattern[at] != ']');
	return at + 1;
}

/* Behind one item of the pattern, without what repeats it. *takes is 1 for those that take more than a step. */
static size_t skip_item(const char *pattern, size_t size, size_t at, int *takes)
{
	*takes = 0;
	if (pattern[at] == '[')
		return skip_set(pattern, size, at);
	if (pattern[at] != '%' || at + 1 >= size)
		return at + 1;
	*takes = pattern[at + 1] == 'b' || isdigit((unsigned char)pattern[at + 1]);
	return at + (pattern[at + 1] == 'b' ? 4 : 2);
}

/* Whether nothing but ends of captures is left: then the first way is taken. */
static int is_end(const char *pattern, size_t size, size_t at)
{
	while (at < size && pattern[at] == ')')
		at++;
	return at >= size;
}

/* How many items of the pattern may match in many ways. */
static unsigned count_ways(const char *pattern, size_t size)
{
	unsigned count = 0;

	for (size_t at = 0; at < size;) {
		int takes;
		at = skip_item(pattern, size, at, &takes);
		if (at < size && (pattern[at] == '*' || pattern[at] == '+' || pattern[at] == '-' || pattern[at] == '?'))
			takes |= !is_end(pattern, size, ++at);
		count += (unsigned)takes;
	}
	return count;
}

/* How the function reads its pattern: for gmatch, and in plain text, ^ is a character like others. */
enum pattern_kind { PATTERN, NO_ANCHOR, PLAIN };

static int is_too_long(const char *pattern, size_t length, size_t size, enum pattern_kind kind)
{
	int is_anchored = length > 0 && pattern[0] == '^' && kind == PATTERN;
	unsigned factors = (kind == PLAIN ? 0 : count_ways(pattern, length)) + !is_anchored;
	double steps = (double)(length / 8 + 1);

	while (factors-- > 0 && steps <= STEPS_MOST)
		steps *= size < 2 ? 2 : (double)size;
	return steps > STEPS_MOST;
}

static void refuse(lua_State *lua, size_t size)
{
	luaL_error(lua, "this pattern may take too long with a text of %d bytes", (int)size);
}

static void check(lua_State *lua, enum pattern_kind kind)
{
	size_t size;
	size_t length;
	const char *pattern;

	(void)luaL_checklstring(lua, 1, &size);
	pattern = luaL_checklstring(lua, 2, &length);
	if (is_too_long(pattern, length, size, kind))
		refuse(lua, size);
	sandbox_check(lua);
}

/* Call Lua's own function, which is the first upvalue. */
static int call(lua_State *lua)
{
	lua_pushvalue(lua, lua_upvalueindex(1));
	lua_insert(lua, 1);
	lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
	return lua_gettop(lua);
}

static int find(lua_State *lua)
{
	check(lua, lua_toboolean(lua, 4) ? PLAIN : PATTERN);
	return call(lua);
}

static int search(lua_State *lua)
{
	check(lua, PATTERN);
	return call(lua);
}

static int step(lua_State *lua)
{
	sandbox_check(lua);
	return call(lua);
}

static int search_each(lua_State *lua)
{
	check(lua, NO_ANCHOR);
	(void)call(lua);
	lua_pushcclosure(lua, step, 1);
	return 1;
}

/* In the table that is the first upvalue. */
static int look_up(lua_State *lua)
{
	sandbox_check(lua);
	lua_settop(lua, 1);
	lua_gettable(lua, lua_upvalueindex(1));
	return 1;
}

/* Lua's own functions may be called, and a table be asked, for each byte of the text, and no hook sees them. */
static int replace(lua_State *lua)
{
	check(lua, PATTERN);
	if (lua_iscfunction(lua, 3) || lua_istable(lua, 3)) {
		lua_pushvalue(lua, 3);
		lua_pushcclosure(lua, lua_istable(lua, 3) ? look_up : step, 1);
		lua_replace(lua, 3);
	} else if (!lua_isfunction(lua, 3) && lua_objlen(lua, 1) > REPLACED_MOST) {
		refuse(lua, lua_objlen(lua, 1));
	}
	return call(lua);
}

static void wrap(lua_State *lua, const char *name, lua_CFunction function)
{
	lua_getfield(lua, -1, name);
	lua_pushcclosure(lua, function, 1);
	lua_setfield(lua, -2, name);
}

void pattern_open(lua_State *lua)
{
	wrap(lua, "find", find);
	wrap(lua, "match", search);
	wrap(lua, "gsub", replace);
	wrap(lua, "gmatch", search_each);
}
