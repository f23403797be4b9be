/* Reads what a server counts: the names of tubes, then the statistics of all of them in one go; and forecasts. */
#include "tools/weekwheel/jobs/tubes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/suggest.h"
#include "tools/weekwheel/jobs/yaml.h"

/* How many tubes are searched for a similar name. */
enum { NEAR_MAX = 1000 };

/* A name from the server goes back into a command, so a name that could break the command is left out. */
static int is_name(const struct yaml_field *field)
{

	for (size_t i = 0; i < field->value_size; i++)
		if (field->value[i] <= ' ' || field->value[i] >= 0x7f)
			return 0;
	return field->value_size > 0 && field->value_size <= WW_TUBE_MAX;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tube_row *)a)->name, ((const struct tube_row *)b)->name);
}

static struct tube_row *add(struct tube_rows *tubes)
{
	tubes->at = memory_grow(tubes->at, &tubes->capacity, tubes->count, sizeof *tubes->at);
	return memset(&tubes->at[tubes->count++], 0, sizeof *tubes->at);
}

static void take_names(const struct reply *reply, struct tube_rows *tubes)
{
	struct yaml_field field;
	size_t at = 0;

	while (yaml_next(reply->body, reply->body_size, &at, &field))
		if (field.name_size == 0 && is_name(&field))
			memcpy(add(tubes)->name, field.value, field.value_size);
	if (tubes->count)
		qsort(tubes->at, tubes->count, sizeof *tubes->at, by_name);
}

static int read_names(struct jobs *jobs, struct tube_rows *tubes)
{
	struct reply reply;

	if (jobs->tube) {
		strcpy(add(tubes)->name, jobs->tube);
		return 0;
	}
	if (client_expect(&jobs->client, &reply, "OK", "tubes", "list-tubes"))
		return -1;
	take_names(&reply, tubes);
	return 0;
}

/* Set `hint` to a question that names a near tube, or to "". A token may not be allowed to see the other tubes. */
static const char *near_tube(struct jobs *jobs, const char *tube, char hint[TUBE_HINT])
{
	const char *names[NEAR_MAX];
	struct tube_rows tubes = {NULL, 0, 0};
	struct reply reply;
	const char *meant = NULL;
	size_t count = 0;

	if (client_ask(&jobs->client, &reply, "list-tubes") == 0 && reply_is(&reply, "OK"))
		take_names(&reply, &tubes);
	for (; count < tubes.count && count < NEAR_MAX; count++)
		names[count] = tubes.at[count].name;
	meant = suggest(tube, names, count);
	*hint = 0;
	/* Another client may have used the tube meanwhile. */
	if (meant && strcmp(meant, tube) != 0)
		snprintf(hint, TUBE_HINT, "; did you mean '%s'?", meant);
	tubes_free(&tubes);
	return hint;
}

static int unknown_tube(struct jobs *jobs)
{
	char hint[TUBE_HINT];

	message_error("no tube %s: nobody uses or watches it, and it has no job%s (NOT_FOUND)", jobs->tube,
	    near_tube(jobs, jobs->tube, hint));
	return -1;
}

int tube_is_new(struct jobs *jobs, const char *tube, char hint[TUBE_HINT])
{
	struct reply reply;

	if (client_ask(&jobs->client, &reply, "stats-tube %s", tube))
		return -1;
	if (!reply_is(&reply, "NOT_FOUND"))
		return 0;
	(void)near_tube(jobs, tube, hint);
	return 1;
}

int tubes_known(struct jobs *jobs)
{
	struct reply reply;

	if (!jobs->tube)
		return 0;
	if (client_ask(&jobs->client, &reply, "stats-tube %s", jobs->tube))
		return -1;
	if (reply_is(&reply, "NOT_FOUND"))
		return unknown_tube(jobs);
	return reply_is(&reply, "OK") ? 0 : reply_refused(&jobs->client, &reply, jobs->tube);
}

static int each_answer(struct jobs *jobs, const struct tube_rows *names, tubes_fn *fn, void *context)
{
	struct reply reply;

	for (size_t i = 0; i < names->count; i++)
		client_line(&jobs->client, "stats-tube %s", names->at[i].name);
	if (client_flush(&jobs->client))
		return -1;
	for (size_t i = 0; i < names->count; i++) {
		if (client_read(&jobs->client, &reply))
			return -1;
		if (reply_is(&reply, "OK"))
			fn(&reply, context);
		else if (jobs->tube && reply_is(&reply, "NOT_FOUND"))
			return unknown_tube(jobs);
		else if (!reply_is(&reply, "NOT_FOUND")) /* a tube that became empty meanwhile is gone */
			return reply_refused(&jobs->client, &reply, names->at[i].name);
	}
	return 0;
}

int tubes_each(struct jobs *jobs, tubes_fn *fn, void *context)
{
	struct tube_rows names = {NULL, 0, 0};
	int failed = read_names(jobs, &names) || each_answer(jobs, &names, fn, context);

	tubes_free(&names);
	return failed ? -1 : 0;
}

void tube_fill(struct tube_row *tube, const struct reply *reply)
{
	const char *text = reply->body;
	size_t size = reply->body_size;

	yaml_text(text, size, "name", tube->name, sizeof tube->name);
	tube->ready = yaml_whole(text, size, "current-jobs-ready");
	tube->urgent = yaml_whole(text, size, "current-jobs-urgent");
	tube->delayed = yaml_whole(text, size, "current-jobs-delayed");
	tube->reserved = yaml_whole(text, size, "current-jobs-reserved");
	tube->buried = yaml_whole(text, size, "current-jobs-buried");
	tube->total = yaml_whole(text, size, "total-jobs");
	tube->deleted = yaml_whole(text, size, "cmd-delete");
	tube->waiting = yaml_whole(text, size, "current-waiting");
	tube->pause = yaml_whole(text, size, "pause-time-left");
	tube->held = yaml_whole(text, size, "current-jobs-held");
}

static void add_tube(const struct reply *reply, void *context)
{
	tube_fill(add(context), reply);
}

int tubes_read(struct jobs *jobs, struct tube_rows *tubes)
{
	*tubes = (struct tube_rows){NULL, 0, 0};
	return tubes_each(jobs, add_tube, tubes);
}

void tubes_free(struct tube_rows *tubes)
{
	free(tubes->at);
	*tubes = (struct tube_rows){NULL, 0, 0};
}

/* ---- Forecasts */

int forecast_read(struct jobs *jobs, uint64_t span, size_t count, uint64_t *counts, struct reply *reply)
{
	char seconds[DURATION_TEXT];
	const char *space = jobs->tube ? " tube=" : "";
	const char *tube = jobs->tube ? jobs->tube : "";

	if (client_ask(
	        &jobs->client, reply, "forecast %s %zu%s%s", duration_seconds(seconds, span), count, space, tube))
		return -1;
	if (reply_is(reply, "UNKNOWN_COMMAND"))
		return 1;
	if (!reply_is(reply, "OK"))
		return reply_refused(&jobs->client, reply, "forecast");
	if (json_array(json_member(reply->body, reply->body_size, "counts"), counts, count) != count) {
		return message_error("%s: the forecast lacks some of its %zu numbers; has the server another version?",
		    jobs->server, count);
	}
	return 0;
}

const char *forecast_bar(char *bar, size_t width, uint64_t part, uint64_t most)
{
	size_t length = 0;

	if (part && most)
		length = (size_t)((double)part / (double)most * (double)width + 0.5);
	if (part && length == 0)
		length = 1; /* even a single job must be seen */
	if (length > width)
		length = width;
	memset(bar, '#', length);
	bar[length] = 0;
	return bar;
}
