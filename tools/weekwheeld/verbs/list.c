/* Writes lists of jobs and forecasts as JSON, for the protocol and for HTTP. */
#include "tools/weekwheeld/verbs/list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/job/job.h"
#include "tools/weekwheeld/engine/server.h"

struct list_answer {
	struct buffer *out;
	int with_body;
	int bad;
};

int list_string(struct buffer *out, const char *text)
{
	return buffer_quote(out, text, strlen(text));
}

static int list_job(const struct ww_job_info *info, void *context)
{
	struct list_answer *list = context;
	struct buffer *out = list->out;

	if (store_hides(info->tube))
		return 0;
	list->bad |=
	    buffer_format(out, out->size ? "\n{" : "{") ||
	    field_write(out, job_fields, list->with_body ? JOB_SHOWN | JOB_BODY : JOB_SHOWN, info, FIELD_LINE, NULL) ||
	    buffer_append(out, "}", 1);
	return list->bad;
}

/* List a job by its id, if there is one. Headers come with the body, which costs a copy, and in Redis, bytes from there. */
static int list_one(struct server *server, uint64_t id, struct list_answer *list)
{
	struct ww_job_ref job = {.id = id};
	struct ww_job_info info;
	void *body = NULL;
	int error = ww_jobs_peek(server->jobs, &job, &info, list->with_body ? &body : NULL);

	if (error == WW_ENOTFOUND)
		return WW_OK;
	if (error < 0)
		return error;
	(void)list_job(&info, list);
	ww_jobs_free(server->jobs, body);
	return list->bad ? WW_ENOMEM : WW_OK;
}

int list_jobs(struct server *server, const struct command *command, struct buffer *out)
{
	const struct command_own *own = &command->own;
	struct ww_job_filter filter = {
	    .tube = own->has_tube ? command->tube : NULL,
	    .prefix = own->key,
	    .prefix_length = own->key_length,
	    .from = own->from,
	    .to = own->to,
	    .states = own->states,
	    .after = own->after,
	};
	struct list_answer list = {out, own->with_body, 0};
	uint64_t next = 0;
	int error;

	if (command->id)
		return list_one(server, command->id, &list);
	error = ww_jobs_list(server->jobs, &filter, (size_t)command->bound, list_job, &list, &next);
	if (list.bad)
		return WW_ENOMEM;
	if (error < 0)
		return error;
	if (next && buffer_format(out, "%s{\"next\":%" PRIu64 "}", out->size ? "\n" : "", next) != 0)
		return WW_ENOMEM;
	return WW_OK;
}

int list_forecast(struct server *server, const struct command *command, struct buffer *out)
{
	size_t count = (size_t)command->bound;
	uint64_t *counts = calloc(count, sizeof *counts);
	int error = WW_ENOMEM;
	int bad;

	if (counts)
		error = ww_jobs_forecast(
		    server->jobs, command->own.has_tube ? command->tube : NULL, command->own.span, counts, count);
	if (error < 0) {
		free(counts);
		return error;
	}
	bad = buffer_append(out, "{", 1) | field_write_seconds(out, "span", command->own.span) |
	      buffer_format(out, ",\"counts\":[");
	for (size_t i = 0; i < count; i++)
		bad |= buffer_format(out, "%s%" PRIu64, i ? "," : "", counts[i]);
	bad |= buffer_format(out, "]}");
	free(counts);
	return bad ? WW_ENOMEM : WW_OK;
}
