/* Carries out EVAL, EVALSHA, EVAL_RO, EVALSHA_RO and SCRIPT. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/script/script_internal.h"

/* The way of the commands that run a script. */
enum { BY_DIGEST = 1, READ_ONLY = 2 };

/* Read where keys and arguments are. Returns 0, or -1 after an answer. */
static int find_keys(struct script_run *run)
{
	struct request *request = run->request;
	int64_t count;

	if (request_whole(request, 2, &count) != 0)
		return -1;
	if (count < 0 || (uint64_t)count > request->count - 3) {
		reply_error(request->conn, "ERR Number of keys can't be %s",
		    count < 0 ? "negative" : "greater than number of args");
		return -1;
	}
	run->keys = request->arg + 3;
	run->key_count = (size_t)count;
	run->args = run->keys + count;
	run->arg_count = request->count - 3 - (size_t)count;
	return 0;
}

/* A text that is compiled may be run, so it gets as long as a script with changes. The scripts of a transaction share that. */
static int compiles(struct request *request, struct sandbox *box, const struct sandbox_script *script)
{
	uint64_t began = run_clock();
	int is_compiled =
	    sandbox_compiles(box, script, SCRIPT_LONGER * request->conn->loop->server->settings->script_time);

	request->conn->exec_ns += run_clock() - began;
	return is_compiled;
}

/* Keep a script that compiles. Returns 0, or -1 after an answer. */
static int add(struct request *request, const struct sandbox_script *script)
{
	struct sandbox *box;

	if (run_is_over(request))
		return -1;
	if (cache_has(script->name))
		return 0;
	if (script->size > SCRIPT_SIZE_MOST) {
		reply_error(request->conn, "ERR a script has at most %d bytes", SCRIPT_SIZE_MOST);
		return -1;
	}
	box = run_sandbox(request);
	if (!box)
		return -1;
	if (!compiles(request, box, script)) {
		reply_error(request->conn, "ERR Error compiling script (new function): %s", sandbox_error(box));
		return -1;
	}
	return cache_add(script) == 0 || request_failed(request, WW_ENOMEM) == 0 ? 0 : -1;
}

static void eval_text(struct script_run *run)
{
	struct request *request = run->request;
	const struct resp_arg *text = &request->arg[1];
	char name[SCRIPT_NAME];
	struct sandbox_script script = {name, text->data, text->size};

	if (find_keys(run) != 0)
		return;
	cache_name(text->data, text->size, name);
	if (add(request, &script) == 0 && run_sandbox(request))
		run_script(run, &script);
}

/* In lower case. Returns 0, or -1 if it cannot be one. */
static int take_name(const struct resp_arg *arg, char name[SCRIPT_NAME])
{
	if (arg->size != SCRIPT_NAME - 1)
		return -1;
	for (size_t i = 0; i < arg->size; i++)
		name[i] = (char)tolower((unsigned char)arg->data[i]);
	name[arg->size] = 0;
	return 0;
}

static void eval_digest(struct script_run *run)
{
	struct request *request = run->request;
	char name[SCRIPT_NAME];
	struct sandbox_script script;
	int is_name = take_name(&request->arg[1], name) == 0;

	if (is_name && find_keys(run) != 0)
		return;
	if (!is_name || !cache_find(name, &script)) {
		reply_error(request->conn, "NOSCRIPT No matching script. Please use EVAL.");
		return;
	}
	if (!run_is_over(request) && run_sandbox(request))
		run_script(run, &script);
	free((void *)(uintptr_t)script.text);
}

static void command_eval(struct request *request)
{
	int way = request->command->way;
	struct script_run run = {.request = request, .is_readonly = way & READ_ONLY};

	if (request_waits(request->conn))
		return;
	if (way & BY_DIGEST)
		eval_digest(&run);
	else
		eval_text(&run);
}

/* ---- SCRIPT */

static void load(struct request *request)
{
	const struct resp_arg *text = &request->arg[2];
	char name[SCRIPT_NAME];

	cache_name(text->data, text->size, name);
	if (add(request, &(struct sandbox_script){name, text->data, text->size}) == 0)
		reply_string(request->conn, name);
}

static void tell_which(struct request *request)
{
	char name[SCRIPT_NAME];

	reply_array(request->conn, request->count - 2);
	for (size_t i = 2; i < request->count; i++)
		reply_integer(request->conn, take_name(&request->arg[i], name) == 0 && cache_has(name));
}

static void flush(struct request *request)
{
	if (request->count > 3 ||
	    (request->count == 3 && !request_is(request, 2, "SYNC") && !request_is(request, 2, "ASYNC"))) {
		reply_error(request->conn, "ERR SCRIPT FLUSH only support SYNC|ASYNC option");
		return;
	}
	cache_clear();
	reply_ok(request->conn);
}

static void command_script(struct request *request)
{
	if (request_is(request, 1, "LOAD"))
		load(request);
	else if (request_is(request, 1, "EXISTS"))
		tell_which(request);
	else if (request_is(request, 1, "FLUSH"))
		flush(request);
	else if (request_is(request, 1, "KILL"))
		/* Each ends by itself, long before somebody could ask for it. */
		reply_error(request->conn, "NOTBUSY No scripts in execution right now.");
	else
		request_help(request);
}

static const struct command_entry table[] = {
    {"eval", -3, COMMAND_SCRIPT, 0, 0, 0, command_eval, "scripting", "Carries out a script.", 0},
    {"evalsha", -3, COMMAND_SCRIPT, 0, 0, 0, command_eval, "scripting", "Carries out a script that the server knows.",
        BY_DIGEST},
    {"eval_ro", -3, COMMAND_SCRIPT, 0, 0, 0, command_eval, "scripting", "Carries out a script that only reads.",
        READ_ONLY},
    {"evalsha_ro", -3, COMMAND_SCRIPT, 0, 0, 0, command_eval, "scripting",
        "Carries out a script that the server knows, and that only reads.", BY_DIGEST | READ_ONLY},
    {"script", -2, COMMAND_SUBCOMMANDS, 0, 0, 0, command_script, "scripting", "Makes scripts known, and forgets them.",
        0},
};

void script_start(void)
{
	command_add(table, sizeof table / sizeof *table);
}

void script_stop(void)
{
	cache_clear();
}

void script_leave(struct loop *loop)
{
	sandbox_close(loop->sandbox);
	loop->sandbox = NULL;
}
