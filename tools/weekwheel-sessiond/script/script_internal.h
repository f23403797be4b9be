#ifndef TOOLS_WEEKWHEEL_SESSIOND_SCRIPT_SCRIPT_INTERNAL_H
#define TOOLS_WEEKWHEEL_SESSIOND_SCRIPT_SCRIPT_INTERNAL_H

/* Shared by the files of script.h. */

#include "tools/common/sandbox/sandbox.h"
#include "tools/weekwheel-sessiond/commands/events.h"
#include "tools/weekwheel-sessiond/commands/request.h"
#include "tools/weekwheel-sessiond/script/script.h"

/* ---- cache.c: any thread may call these */

enum { SCRIPT_NAME = 41, SCRIPT_SIZE_MOST = 65536 };

/* A digest in hexadecimal. */
void cache_name(const char *text, size_t size, char name[SCRIPT_NAME]);
/* A copy of the script, whose text the caller frees; 0: there is none. */
int cache_find(const char name[SCRIPT_NAME], struct sandbox_script *script);
int cache_has(const char name[SCRIPT_NAME]);
/* Where there is no room, the one used longest ago goes. Returns 0, or -1 without memory. */
int cache_add(const struct sandbox_script *script);
void cache_clear(void);

/* ---- undo.c: what keys had before the script changed them, the last first */

struct undo_step;

struct undo {
	struct undo_step *last;
	size_t count;
	size_t bytes;
};

/* Note what the command's keys have. Returns 0, or -1 after an answer: the command must not run. */
int undo_note(struct undo *undo, struct request *request);
/* Give all keys back what they had. Their stripes are held. */
void undo_all(struct undo *undo, struct data *data);
/* It stays as it is. */
void undo_forget(struct undo *undo);

/* ---- run.c */

/* What has written gets so many times --script-time in all, before it is undone. */
enum { SCRIPT_LONGER = 10 };

struct script_run {
	struct request *request; /* of EVAL */
	const struct resp_arg *keys;
	size_t key_count;
	const struct resp_arg *args;
	size_t arg_count;
	int is_readonly;
	struct data_stripes stripes; /* held */
	int needs_all;               /* it needs a stripe that is not held: it begins again with all */
	int was_long;                /* it has written, and got more time */
	size_t answers;              /* of the client, before the one to this script */
	struct undo undo;
	struct events_weight weight;
};

/* Carry out the script, and answer. */
void run_script(struct script_run *run, const struct sandbox_script *script);
/* The time of this thread: on a busy machine others may have the processor meanwhile. */
uint64_t run_clock(void);
/* Whether the scripts of a transaction have taken too long; after an answer. */
int run_is_over(struct request *request);
/* The loop's sandbox; NULL after an answer. */
struct sandbox *run_sandbox(struct request *request);

/* ---- call.c: the table redis */

void call_install(lua_State *lua);

/* ---- convert.c */

/* Push the answer, which begins at *at, and move *at behind it. */
void convert_answer(lua_State *lua, const char *answers, size_t *at);
/* Move *at behind the answer. */
void convert_skip(const char *answers, size_t *at);
/* Answer with the value on top of the stack. */
void convert_value(lua_State *lua, struct conn *conn);

#endif
