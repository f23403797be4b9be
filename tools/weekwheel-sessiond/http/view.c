/* The page, and the JSON that it asks for: see view.h. */
#include "tools/weekwheel-sessiond/http/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/service/http/reply.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-sessiond/http/census.h"
#include "weekwheel/version.h"

/*
 * A browser's cookie proves its session by the key. Therefore only the beginning of a key is shown, at most half of it.
 */
enum { COUNT_MAX = 10080, WAITING_MAX = 64, KEY_SHOWN = 16 };

struct view_question {
	struct web_visit visit;
	struct viewer *view;
	LIST_ENTRY(view_question) next;
	uint64_t span; /* 0: all in numbers */
	size_t count;
	int is_suspended;
};

struct viewer {
	struct sessiond *server;
	struct takes *takes;
	LIST_HEAD(, view_question) questions;
	unsigned waiting;
};

static enum MHD_Result reply_json(struct MHD_Connection *client, int bad, struct buffer *out)
{
	if (!bad)
		return reply_body(client, MHD_HTTP_OK, "application/json", out);
	buffer_free(out);
	return reply_text(client, MHD_HTTP_SERVICE_UNAVAILABLE, "there is no memory to tell\n");
}

/* ---- /v1/stats */

static int add_databases(const struct sessiond *server, struct buffer *out)
{
	const char *comma = "";
	int bad = buffer_format(out, ",\"databases\":[");

	for (unsigned i = 0; i < data_databases(server->data); i++) {
		uint64_t count = data_count(server->data, i);
		if (count == 0)
			continue;
		bad |= buffer_format(out, "%s{\"database\":%u,\"sessions\":%" PRIu64 "}", comma, i, count);
		comma = ",";
	}
	return bad | buffer_format(out, "]");
}

/* What the process has in memory. 0: nobody knows. */
static uint64_t resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	uint64_t all, pages = 0;

	if (file && fscanf(file, "%" SCNu64 " %" SCNu64, &all, &pages) != 2)
		pages = 0;
	if (file)
		(void)fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void add_stop(const struct state_info *state, void *context)
{
	unsigned *stops = context;

	if (state->is_on)
		*stops |= state->stops;
}

enum MHD_Result view_stats(const struct site_request *request)
{
	const struct sessiond *server = request->context;
	struct ww_session_stats stats;
	struct buffer out = {0};
	struct traffic traffic = sessiond_traffic(server);
	unsigned stops = 0;
	int bad;

	data_stats(server->data, &stats);
	state_each(add_stop, &stops);
	bad = buffer_format(&out,
	    "{\"version\":\"%s\",\"ready\":%s,\"uptime_ms\":%" PRIi64 ",\"sessions\":%" PRIu64 ",\"clients\":%" PRIu64
	    ",\"commands\":%" PRIu64 ",\"received_bytes\":%" PRIu64 ",\"sent_bytes\":%" PRIu64,
	    ww_version(), stops ? "false" : "true", data_steady_ms(server->data) - server->started_ms,
	    (uint64_t)stats.entries, server->clients, traffic.commands, traffic.in, traffic.out);
	bad |= buffer_format(&out,
	    ",\"hits\":%" PRIu64 ",\"misses\":%" PRIu64 ",\"expired\":%" PRIu64 ",\"evicted\":%" PRIu64
	    ",\"map_bytes\":%" PRIu64 ",\"resident_bytes\":%" PRIu64 ",\"most_bytes\":%" PRIu64,
	    stats.hits, stats.misses, stats.expired, stats.evicted, (uint64_t)stats.bytes, resident(),
	    server->settings->memory);
	bad |= add_databases(server, &out) | buffer_format(&out, "}\n");
	return reply_json(request->client, bad, &out);
}

/* ---- What needs a census */

static int add_largest(const struct survey_key *key, const char *comma, struct buffer *out)
{
	size_t shown = key->length / 2 < KEY_SHOWN ? key->length / 2 : KEY_SHOWN;

	if (buffer_format(out, "%s{\"database\":%u,\"key\":", comma, key->database) != 0 ||
	    buffer_quote(out, key->text, shown) != 0 || buffer_format(out, ",\"bytes\":%" PRIu64, key->size) != 0)
		return -1;
	return key->left_ms < 0 ? buffer_format(out, ",\"left\":null}")
	                        : buffer_format(out, ",\"left\":%.3f}", (double)key->left_ms / 1000);
}

static int add_sessions(const struct census *census, uint64_t now, struct buffer *out)
{
	const struct survey *survey = &census->survey;
	int bad = buffer_format(out,
	    "{\"sessions\":%" PRIu64 ",\"value_bytes\":%" PRIu64 ",\"later\":%" PRIu64 ",\"never\":%" PRIu64
	    ",\"age\":%.3f,\"largest\":[",
	    survey->keys, survey->bytes, survey->by_wheel[SURVEY_LATER], survey->by_wheel[SURVEY_NEVER],
	    now < census->at ? 0 : (double)(now - census->at) / 1e9);

	for (size_t i = 0; i < survey->largest_count; i++)
		bad |= add_largest(&survey->largest[i], i ? "," : "", out);
	return bad | buffer_format(out, "]}\n");
}

static int add_forecast(const struct census *census, uint64_t now, uint64_t span, size_t count, struct buffer *out)
{
	uint64_t *counts = calloc(count, sizeof *counts);
	int bad = !counts || buffer_format(out, "{\"span\":%" PRIu64 ",\"counts\":[", span);

	if (!bad)
		census_forecast(census, now, span, counts, count);
	for (size_t i = 0; i < count && !bad; i++)
		bad = buffer_format(out, "%s%" PRIu64, i ? "," : "", counts[i]);
	free(counts);
	return bad || buffer_format(out, "]}\n");
}

static enum MHD_Result answer(struct view_question *question)
{
	const struct census *census = census_last(question->view->takes);
	uint64_t now = data_now(question->view->server->data);
	struct buffer out = {0};
	int bad = !census;

	if (census && question->span)
		bad = add_forecast(census, now, question->span, question->count, &out);
	else if (census)
		bad = add_sessions(census, now, &out);
	return reply_json(question->visit.client, bad, &out);
}

/* ---- Those who wait for one */

static struct view_question *question_of(struct web_visit *visit)
{
	return (struct view_question *)(void *)((char *)visit - offsetof(struct view_question, visit));
}

static enum MHD_Result go_on(struct web_visit *visit, const char *data, size_t *size)
{
	(void)data;
	(void)size;
	return answer(question_of(visit));
}

static void end(struct web_visit *visit)
{
	struct view_question *question = question_of(visit);

	question->view->waiting--;
	LIST_REMOVE(question, next);
	free(question);
}

static void resume_all(void *context)
{
	struct viewer *view = context;
	struct view_question *question;

	LIST_FOREACH(question, &view->questions, next)
	{
		if (question->is_suspended)
			web_resume(view->server->site.web, &question->visit);
		question->is_suspended = 0;
	}
}

static enum MHD_Result ask(const struct site_request *request, uint64_t span, size_t count)
{
	struct viewer *view = ((struct sessiond *)request->context)->view;
	struct view_question *question = view->waiting < WAITING_MAX ? calloc(1, sizeof *question) : NULL;

	if (!question)
		return reply_later(request->client, 1, "too many wait for the sessions to be counted: try again\n");
	*question = (struct view_question){{request->client, go_on, end}, view, {0}, span, count, 0};
	view->waiting++;
	LIST_INSERT_HEAD(&view->questions, question, next);
	*request->visit = &question->visit;
	if (!census_refresh(view->takes))
		return answer(question);
	question->is_suspended = 1;
	MHD_suspend_connection(request->client);
	return MHD_YES;
}

/* ---- Requests */

static int read_argument(
    struct MHD_Connection *client, const char *name, uint64_t preset, uint64_t most, uint64_t *number)
{
	const char *text = MHD_lookup_connection_value(client, MHD_GET_ARGUMENT_KIND, name);

	*number = preset;
	return text ? number_whole(text, strlen(text), 1, most, number) : 0;
}

enum MHD_Result view_forecast(const struct site_request *request)
{
	uint64_t span, count;

	if (read_argument(request->client, "span", 3600, CENSUS_WEEK, &span) != 0 ||
	    read_argument(request->client, "count", 24, COUNT_MAX, &count) != 0)
		return reply_text(
		    request->client, MHD_HTTP_BAD_REQUEST, "span=1 to 604800 seconds, count=1 to 10080\n");
	return ask(request, span, (size_t)count);
}

enum MHD_Result view_sessions(const struct site_request *request)
{
	return ask(request, 0, 0);
}

/* ---- Beginning and end */

struct viewer *view_start(struct sessiond *server)
{
	struct viewer *view = calloc(1, sizeof *view);

	if (view) {
		view->server = server;
		view->takes = census_start(&server->loop[0].uv, server->data, resume_all, view);
	}
	if (view && view->takes)
		return view;
	free(view);
	message_error("no memory");
	return NULL;
}

void view_stop(struct viewer *view)
{
	resume_all(view);
}

void view_free(struct viewer *view)
{
	if (!view)
		return;
	census_stop(view->takes);
	free(view);
}
