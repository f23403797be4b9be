#ifndef TOOLS_COMMON_SANDBOX_SANDBOX_H
#define TOOLS_COMMON_SANDBOX_SANDBOX_H

/*
 * Runs scripts of strangers in Lua 5.1: in bounded memory, for a bounded time, and without a way to files, clocks,
 * processes, bytecode or to what another script has left.
 *
 * Memory: an allocator counts, and refuses what goes beyond the bound. Time: a hook looks at the clock after a hundred
 * instructions, or after each one once a block is large, since one instruction may then take long. The hook does not see
 * what a C function does, so none may take long: those whose work could exceed the size of their arguments are replaced
 * (library.c, pattern.c).
 *
 * A sandbox belongs to one thread, and runs one script at a time. It keeps compiled scripts. When it has become large,
 * the next one begins with an empty one.
 */

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

struct sandbox;

/* What the program adds: called once for each new state, with the table of globals on top of the stack. */
typedef void sandbox_install_fn(lua_State *lua);

struct sandbox *sandbox_open(size_t memory, sandbox_install_fn *install); /* NULL without memory */
void sandbox_close(struct sandbox *box);                                  /* NULL is harmless */

enum sandbox_end {
	SANDBOX_OK,
	SANDBOX_FAILED, /* by an error of its own */
	SANDBOX_ENDED   /* it took too long or too much memory, or its program ended it */
};

struct sandbox_script {
	const char *name; /* unique, such as a digest of the text */
	const char *text;
	size_t size;
};

/* All functions may raise errors of Lua. */
struct sandbox_task {
	struct sandbox_script script;
	uint64_t time_ns; /* of the thread's time; wall time counts as far as the thread has run */
	/* The time is over: return how many ns more it gets, or 0. NULL: none. It may raise no error. */
	uint64_t (*over)(void *context);
	/* Set globals, in the table on top of the stack. */
	void (*begin)(lua_State *lua, void *context);
	/* Take the result, on top of the stack. */
	void (*take)(lua_State *lua, void *context);
	void *context;
};

/* Whether the script can be compiled, in this time of the thread. If not, sandbox_error says why. */
int sandbox_compiles(struct sandbox *box, const struct sandbox_script *script, uint64_t time_ns);
enum sandbox_end sandbox_run(struct sandbox *box, const struct sandbox_task *task);
/* Of the last run, until the next one; with SANDBOX_ENDED the reason. */
const char *sandbox_error(const struct sandbox *box);

/* ---- For functions that a script calls */

/* The context of the task that runs. */
void *sandbox_context(lua_State *lua);
/* End the script if its time is over. */
void sandbox_check(lua_State *lua);
/* End the script, whatever it catches. */
int sandbox_end(lua_State *lua);
/* Make a table that scripts can read, but not change, of the one on top of the stack, and put it into its place. */
void sandbox_protect(lua_State *lua);

#endif
