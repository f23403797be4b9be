/* The state of Lua, with its bounds, and how a script runs in it: see sandbox.h. */
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/sandbox/sandbox_internal.h"

/* How many instructions run between two looks at the clock. */
enum { LOOK_EACH = 100 };
/* An instruction about a block of this size may take long. */
enum { LARGE = 65536 };
/* A state that has more than this after a script is given up: compiled scripts and garbage. */
enum { KEPT = 2 << 20 };
enum { ERROR_MOST = 1024 };
/* How many calls an error may come from within functions that are not the script's own. */
enum { LEVELS = 8 };
/* How much of a text is compiled between two looks at the clock. */
enum { PIECE = 256 };

struct sandbox {
	lua_State *lua; /* NULL: the next script makes it */
	sandbox_install_fn *install;
	size_t most;
	size_t used;
	const struct sandbox_task *task; /* NULL: none runs */
	uint64_t began_wall;
	uint64_t began;
	uint64_t time_ns;
	int is_ended;
	int status; /* of the script's own call */
	unsigned short random[3];
	char error[ERROR_MOST];
};

/* Keys of the registry. */
static char protected_mark, compiled_key, globals_key;

static struct sandbox *box_of(lua_State *lua)
{
	void *box;

	(void)lua_getallocf(lua, &box);
	return box;
}

void *sandbox_context(lua_State *lua)
{
	return box_of(lua)->task->context;
}

unsigned short *sandbox_random(lua_State *lua)
{
	return box_of(lua)->random;
}

/* ---- Time */

static uint64_t now(clockid_t clock)
{
	struct timespec time;

	(void)clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* On a busy machine others may have had the processor meanwhile. The thread's own time is slow to read. */
static int is_over(struct sandbox *box)
{
	uint64_t more;

	if (now(CLOCK_MONOTONIC) - box->began_wall < box->time_ns ||
	    now(CLOCK_THREAD_CPUTIME_ID) - box->began < box->time_ns)
		return 0;
	more = box->task->over ? box->task->over(box->task->context) : 0;
	box->time_ns += more;
	return more == 0;
}

static void hook(lua_State *lua, lua_Debug *what);

int sandbox_end(lua_State *lua)
{
	box_of(lua)->is_ended = 1;
	/* A pcall of the script that catches this is followed by an instruction. */
	lua_sethook(lua, hook, LUA_MASKCOUNT, 1);
	return luaL_error(lua, "ended");
}

void sandbox_check(lua_State *lua)
{
	struct sandbox *box = box_of(lua);

	if (box->task && (box->is_ended || is_over(box)))
		(void)sandbox_end(lua);
}

static void hook(lua_State *lua, lua_Debug *what)
{
	(void)what;
	sandbox_check(lua);
}

/* ---- Memory */

static void *allocate(void *context, void *block, size_t former, size_t size)
{
	struct sandbox *box = context;
	void *made;

	if (size == 0) {
		box->used -= former;
		free(block);
		return NULL;
	}
	if (size > former && box->used + (size - former) > box->most)
		return NULL;
	made = realloc(block, size);
	if (!made)
		return NULL;
	box->used += size - former;
	if (size > LARGE && box->task)
		lua_sethook(box->lua, hook, LUA_MASKCOUNT, 1);
	return made;
}

/* ---- Protected tables */

static int refuse_change(lua_State *lua)
{
	return luaL_error(lua, "Attempt to modify a readonly table");
}

void sandbox_protect(lua_State *lua)
{
	lua_newtable(lua);
	lua_newtable(lua);
	lua_pushvalue(lua, -3);
	lua_setfield(lua, -2, "__index");
	lua_pushcfunction(lua, refuse_change);
	lua_setfield(lua, -2, "__newindex");
	lua_pushboolean(lua, 0);
	lua_setfield(lua, -2, "__metatable");
	lua_pushlightuserdata(lua, &protected_mark);
	lua_pushboolean(lua, 1);
	lua_rawset(lua, -3);
	lua_setmetatable(lua, -2);
	lua_remove(lua, -2);
}

int sandbox_is_protected(lua_State *lua, int index)
{
	int is_protected;

	if (!lua_getmetatable(lua, index))
		return 0;
	lua_pushlightuserdata(lua, &protected_mark);
	lua_rawget(lua, -2);
	is_protected = lua_toboolean(lua, -1);
	lua_pop(lua, 2);
	return is_protected;
}

/* ---- The state */

static int refuse_global(lua_State *lua)
{
	return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
	    lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "?");
}

/* Scripts see the globals through a protected table, which is _G, too. */
static int build(lua_State *lua)
{
	const struct sandbox *box = lua_touserdata(lua, 1);

	lua_pushlightuserdata(lua, &compiled_key);
	lua_newtable(lua);
	lua_rawset(lua, LUA_REGISTRYINDEX);
	lua_newtable(lua);
	lua_pushlightuserdata(lua, &globals_key);
	lua_pushvalue(lua, -2);
	lua_rawset(lua, LUA_REGISTRYINDEX);
	library_open(lua);
	box->install(lua);
	lua_newtable(lua);
	lua_pushcfunction(lua, refuse_global);
	lua_setfield(lua, -2, "__index");
	lua_setmetatable(lua, -2);
	lua_pushvalue(lua, -1);
	sandbox_protect(lua);
	lua_pushvalue(lua, -1);
	lua_setfield(lua, -3, "_G");
	lua_replace(lua, LUA_GLOBALSINDEX);
	return 0;
}

static void drop(struct sandbox *box)
{
	if (box->lua)
		lua_close(box->lua);
	box->lua = NULL;
}

/* Returns 0, or -1 without memory. */
static int make(struct sandbox *box)
{
	if (box->lua)
		return 0;
	box->lua = lua_newstate(allocate, box);
	if (box->lua && lua_cpcall(box->lua, build, box) == 0)
		return 0;
	drop(box);
	return -1;
}

struct sandbox *sandbox_open(size_t memory, sandbox_install_fn *install)
{
	struct sandbox *box = calloc(1, sizeof *box);

	if (box) {
		box->most = memory;
		box->install = install;
	}
	return box;
}

void sandbox_close(struct sandbox *box)
{
	if (box)
		drop(box);
	free(box);
}

const char *sandbox_error(const struct sandbox *box)
{
	return box->error;
}

/* ---- A script */

static void note_error(struct sandbox *box, const char *text)
{
	(void)snprintf(box->error, sizeof box->error, "%s", text);
}

/* What the compiler has still to read. */
struct unread {
	const char *text;
	size_t size;
};

/*
 * The compiler goes through lists of what it has read, so a text may take the square of its size. No hook runs meanwhile: look
 * at the clock before each piece.
 */
static const char *read_piece(lua_State *lua, void *context, size_t *size)
{
	struct unread *reading = context;
	const char *piece = reading->text;

	sandbox_check(lua);
	*size = reading->size < PIECE ? reading->size : PIECE;
	reading->text += *size;
	reading->size -= *size;
	return piece;
}

/* Push the compiled script, or raise an error. Bytecode could do anything: the machine that runs it checks nothing. */
static void compile(lua_State *lua, const struct sandbox_script *script)
{
	struct unread reading = {script->text, script->size};

	lua_pushlightuserdata(lua, &compiled_key);
	lua_rawget(lua, LUA_REGISTRYINDEX);
	lua_getfield(lua, -1, script->name);
	if (lua_isfunction(lua, -1))
		return;
	lua_pop(lua, 1);
	if (script->size > 0 && script->text[0] == LUA_SIGNATURE[0])
		luaL_error(lua, "user_script: bytecode is not taken");
	if (lua_load(lua, read_piece, &reading, "@user_script") != 0)
		lua_error(lua);
	lua_pushvalue(lua, -1);
	lua_setfield(lua, -3, script->name);
}

static int compile_one(lua_State *lua)
{
	compile(lua, lua_touserdata(lua, 1));
	return 0;
}

/* The error on top of the stack as text. */
static const char *error_text(lua_State *lua)
{
	const char *text = lua_tostring(lua, -1);

	return text ? text : "(an error that is no text)";
}

/*
 * What a client is told: the text, the script, and the line of the function of Lua that raised it. Hooks do not run here, so
 * nothing of the script may be called.
 */
static int describe(lua_State *lua)
{
	struct sandbox *box = box_of(lua);
	const char *code = "ERR ";
	const char *text = lua_tostring(lua, 1);
	lua_Debug where;
	int line = -1;

	if (lua_istable(lua, 1)) {
		lua_pushliteral(lua, "err");
		lua_rawget(lua, 1);
		text = lua_tostring(lua, -1);
		code = text ? "" : "ERR ";
	}
	if (!text)
		text = luaL_typename(lua, 1);
	/* Not those of C, nor of library.c. */
	for (int level = 1; level < LEVELS && line < 0 && lua_getstack(lua, level, &where); level++)
		if (lua_getinfo(lua, "Sl", &where) && where.source[0] == '@')
			line = where.currentline;
	(void)snprintf(box->error, sizeof box->error, "%s%.*s script: %s, on @user_script:%d.", code, ERROR_MOST - 256,
	    text, box->task->script.name, line);
	return 1;
}

static int run(lua_State *lua)
{
	struct sandbox *box = lua_touserdata(lua, 1);
	const struct sandbox_task *task = box->task;

	lua_pushcfunction(lua, describe);
	compile(lua, &task->script);
	lua_pushlightuserdata(lua, &globals_key);
	lua_rawget(lua, LUA_REGISTRYINDEX);
	task->begin(lua, task->context);
	lua_settop(lua, 4);
	box->status = lua_pcall(lua, 0, 1, 2);
	if (box->status == 0)
		task->take(lua, task->context);
	return 0;
}

static void begin(struct sandbox *box, const struct sandbox_task *task)
{
	box->task = task;
	box->time_ns = task->time_ns;
	box->began_wall = now(CLOCK_MONOTONIC);
	box->began = now(CLOCK_THREAD_CPUTIME_ID);
	box->is_ended = 0;
	box->status = 0;
	box->error[0] = 0;
	/* As after srand48(0). */
	memcpy(box->random, (const unsigned short[]){0x330e, 0, 0}, sizeof box->random);
}

static enum sandbox_end end(struct sandbox *box, int status)
{
	int is_ended = box->is_ended || status == LUA_ERRMEM;

	if (is_ended)
		note_error(box, box->is_ended ? "it took too long" : "not enough memory");
	else if (status != 0 && !box->error[0]) /* an error outside of the script itself */
		note_error(box, error_text(box->lua));
	lua_settop(box->lua, 0);
	lua_sethook(box->lua, NULL, 0, 0);
	box->task = NULL;
	if (box->used > KEPT)
		drop(box);
	return is_ended ? SANDBOX_ENDED : status ? SANDBOX_FAILED : SANDBOX_OK;
}

enum sandbox_end sandbox_run(struct sandbox *box, const struct sandbox_task *task)
{
	int status;

	if (make(box) != 0) {
		note_error(box, "not enough memory");
		return SANDBOX_ENDED;
	}
	begin(box, task);
	lua_sethook(box->lua, hook, LUA_MASKCOUNT, LOOK_EACH);
	status = lua_cpcall(box->lua, run, box);
	return end(box, status ? status : box->status);
}

int sandbox_compiles(struct sandbox *box, const struct sandbox_script *script, uint64_t time_ns)
{
	const struct sandbox_task task = {.script = *script, .time_ns = time_ns};
	int status;

	if (make(box) != 0) {
		note_error(box, "not enough memory");
		return 0;
	}
	begin(box, &task);
	status = lua_cpcall(box->lua, compile_one, (void *)(uintptr_t)script);
	if (status != 0) {
		(void)end(box, status);
		drop(box);
		return 0;
	}
	lua_sethook(box->lua, NULL, 0, 0);
	box->task = NULL;
	return 1;
}
