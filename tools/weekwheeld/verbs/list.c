/* Writes lists of jobs and forecasts as JSON, for the protocol and for HTTP. */
#include "tools/weekwheeld/verbs/list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/base64.h"
#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/percent.h"
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

static int add_key(struct buffer *out, const struct ww_job_info *info)
{
	char encoded[3 * WW_JOB_KEY_MAX + 1];

	if (info->key_length == 0)
		return buffer_format(out, ",\"key\":null");
	(void)percent_encode(info->key, info->key_length, encoded, sizeof encoded);
	return buffer_format(out, ",\"key\":\"%s\"", encoded);
}

/* Few jobs have one. */
static int add_group(struct buffer *out, const struct ww_job_info *info)
{
	char encoded[3 * WW_JOB_GROUP_MAX + 1];

	if (info->group_length == 0)
		return 0;
	(void)percent_encode(info->group, info->group_length, encoded, sizeof encoded);
	return buffer_format(out, ",\"group\":\"%s\"", encoded);
}

static int add_seconds(struct buffer *out, const char *before, uint64_t ns, const char *after)
{
	char text[DURATION_TEXT];

	return buffer_format(out, "%s%s%s", before, duration_seconds(text, ns), after);
}

static int add_body(struct buffer *out, const struct ww_job_info *info)
{
	size_t size = info->body ? info->body_length : 0;

	if (buffer_format(out, ",\"body\":\"") != 0 || buffer_reserve(out, BASE64_SIZE(size) + 1) != 0)
		return -1;
	out->size += base64_encode(out->data + out->size, info->body, size);
	return buffer_append(out, "\"", 1);
}

static int list_job(const struct ww_job_info *info, void *context)
{
	struct list_answer *list = context;
	struct buffer *out = list->out;
	int bad = 0;

	if (store_hides(info->tube))
		return 0;
	if (out->size > 0)
		bad |= buffer_append(out, "\n", 1);
	bad |= buffer_format(out, "{\"id\":%" PRIu64 ",\"version\":%" PRIu64 ",\"state\":\"%s\",\"tube\":", info->id,
	    info->version, protocol_states[info->state]);
	bad |= list_string(out, info->tube);
	bad |= add_key(out, info);
	bad |= add_group(out, info);
	bad |= buffer_format(out, ",\"priority\":%u", info->priority);
	bad |= add_seconds(out, ",\"due\":\"", info->due, "\"");
	bad |= buffer_format(out, ",\"clock\":\"%s\"", info->flags & WW_JOB_WALL ? "wall" : "elapsed");
	bad |= add_seconds(out, ",\"left\":", info->left, "");
	bad |= add_seconds(out, ",\"run\":", info->run, "");
	bad |= add_seconds(out, ",\"every\":", info->period, "");
	bad |= add_seconds(out, ",\"backoff\":", info->backoff, "");
	if (info->hold)
		bad |= add_seconds(out, ",\"unique\":", info->hold, "");
	if (info->keep)
		bad |= add_seconds(out, ",\"keep\":", info->keep, "");
	if (info->debounce)
		bad |= add_seconds(out, ",\"debounced\":", info->debounce, "");
	bad |= buffer_format(out,
	    ",\"attempts\":%u,\"reserves\":%u,\"timeouts\":%u,\"releases\":%u,\"buries\":%u,\"kicks\":%u,"
	    "\"tries\":%u,\"error\":",
	    info->attempts, info->reserves, info->timeouts, info->releases, info->buries, info->kicks, info->tries);
	bad |= list_string(out, info->error);
	bad |= buffer_format(out, ",\"length\":%zu", info->body_length);
	if (list->with_body)
		bad |= add_body(out, info);
	bad |= buffer_append(out, "}", 1);
	list->bad |= bad;
	return bad ? 1 : 0;
}

/* List a job by its id, if there is one. */
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
	bad = add_seconds(out, "{\"span\":", command->own.span, ",\"counts\":[");
	for (size_t i = 0; i < count; i++)
		bad |= buffer_format(out, "%s%" PRIu64, i ? "," : "", counts[i]);
	bad |= buffer_format(out, "]}");
	free(counts);
	return bad ? WW_ENOMEM : WW_OK;
}
