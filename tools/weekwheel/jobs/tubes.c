/* Reading tubes: their names first, then the stats of all together. */
#include "tools/weekwheel/jobs/tubes.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"
#include "tools/weekwheel/jobs/fields.h"

/* A name that came over the wire goes back into a command only as it can be one. */
static int is_name(const struct field *field)
{
	size_t i;

	for (i = 0; i < field->value_size; i++)
		if (field->value[i] <= ' ' || field->value[i] >= 0x7f)
			return 0;
	return field->value_size > 0 && field->value_size <= JOBS_TUBE_MAX;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tube *)a)->name, ((const struct tube *)b)->name);
}

static void add_name(struct tubes *tubes, const char *name, size_t size)
{
	tubes->at = memory_grow(tubes->at, &tubes->capacity, tubes->count, sizeof *tubes->at);
	memset(&tubes->at[tubes->count], 0, sizeof *tubes->at);
	memcpy(tubes->at[tubes->count++].name, name, size);
}

static int read_names(struct jobs *jobs, struct tubes *tubes)
{
	struct reply reply;
	struct field field;
	size_t at = 0;

	if (jobs->tube) {
		add_name(tubes, jobs->tube, strlen(jobs->tube));
		return 0;
	}
	if (client_ask(&jobs->client, &reply, "list-tubes"))
		return -1;
	if (!reply_is(&reply, "OK"))
		return reply_refused(&jobs->client, &reply, "tubes");
	while (field_next(reply.body, reply.body_size, &at, &field))
		if (field.name_size == 0 && is_name(&field))
			add_name(tubes, field.value, field.value_size);
	if (tubes->count)
		qsort(tubes->at, tubes->count, sizeof *tubes->at, by_name);
	return 0;
}

int tubes_each(struct jobs *jobs, tubes_fn *fn, void *context)
{
	struct tubes tubes = {NULL, 0, 0};
	struct reply reply;
	int failed = read_names(jobs, &tubes);
	size_t i;

	for (i = 0; i < tubes.count && !failed; i++)
		client_line(&jobs->client, "stats-tube %s", tubes.at[i].name);
	failed = failed || client_flush(&jobs->client);
	for (i = 0; i < tubes.count && !failed; i++) {
		failed = client_read(&jobs->client, &reply);
		if (failed)
			break;
		if (reply_is(&reply, "OK"))
			fn(&reply, context);
		else if (jobs->tube || !reply_is(&reply, "NOT_FOUND")) /* one that was emptied meanwhile is gone */
			failed = reply_refused(&jobs->client, &reply, tubes.at[i].name);
	}
	tubes_free(&tubes);
	return failed ? -1 : 0;
}

void tube_fill(struct tube *tube, const struct reply *reply)
{
	const char *text = reply->body;
	size_t size = reply->body_size;

	field_text(text, size, "name", tube->name, sizeof tube->name);
	tube->ready = field_whole(text, size, "current-jobs-ready");
	tube->urgent = field_whole(text, size, "current-jobs-urgent");
	tube->delayed = field_whole(text, size, "current-jobs-delayed");
	tube->reserved = field_whole(text, size, "current-jobs-reserved");
	tube->buried = field_whole(text, size, "current-jobs-buried");
	tube->total = field_whole(text, size, "total-jobs");
	tube->deleted = field_whole(text, size, "cmd-delete");
	tube->waiting = field_whole(text, size, "current-waiting");
	tube->pause = field_whole(text, size, "pause-time-left");
}

static void add_tube(const struct reply *reply, void *context)
{
	struct tubes *tubes = context;

	tubes->at = memory_grow(tubes->at, &tubes->capacity, tubes->count, sizeof *tubes->at);
	tube_fill(&tubes->at[tubes->count++], reply);
}

int tubes_read(struct jobs *jobs, struct tubes *tubes)
{
	*tubes = (struct tubes){NULL, 0, 0};
	return tubes_each(jobs, add_tube, tubes);
}

void tubes_free(struct tubes *tubes)
{
	free(tubes->at);
	*tubes = (struct tubes){NULL, 0, 0};
}
