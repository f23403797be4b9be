/* The page of sessions, and the JSON of a census: see view.h. */
#include "tools/service/census/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/common/number.h"
#include "tools/service/census/files.h"
#include "tools/service/http/reply.h"
#include "tools/service/state/state.h"
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
	struct census_source source;
	const struct web_site *site;
	struct takes *takes;
	LIST_HEAD(, view_question) questions;
	unsigned waiting;
};

const struct page_file view_files[VIEW_FILES] = {
    {"/", PAGE_HTML, sessions_html, &sessions_html_size},
    {"/sessions.js", PAGE_SCRIPT, sessions_js, &sessions_js_size},
};

enum MHD_Result view_reply(struct MHD_Connection *client, int bad, struct buffer *out)
{
	if (!bad)
		return reply_body(client, MHD_HTTP_OK, "application/json", out);
	buffer_free(out);
	return reply_text(client, MHD_HTTP_SERVICE_UNAVAILABLE, "there is no memory for an answer\n");
}

/* ---- /v1/stats */

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

int view_begin_stats(struct buffer *out, int is_ready, uint64_t uptime_ms)
{
	unsigned stops = 0;

	state_each(add_stop, &stops);
	return buffer_format(out,
	    "{\"version\":\"%s\",\"ready\":%s,\"uptime_ms\":%" PRIu64 ",\"resident_bytes\":%" PRIu64, ww_version(),
	    is_ready && !stops ? "true" : "false", uptime_ms, resident());
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
	    "{\"sessions\":%" PRIu64 ",\"other_keys\":%" PRIu64 ",\"value_bytes\":%" PRIu64 ",\"later\":%" PRIu64
	    ",\"never\":%" PRIu64 ",\"age\":%.3f,\"largest\":[",
	    survey->keys, survey->others, survey->bytes, survey->by_wheel[SURVEY_LATER], survey->by_wheel[SURVEY_NEVER],
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
	uint64_t now = question->view->source.now(question->view->source.context);
	struct buffer out = {0};
	int bad = !census;

	if (census && question->span)
		bad = add_forecast(census, now, question->span, question->count, &out);
	else if (census)
		bad = add_sessions(census, now, &out);
	return view_reply(question->visit.client, bad, &out);
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
			web_resume(view->site->web, &question->visit);
		question->is_suspended = 0;
	}
}

static enum MHD_Result ask(struct viewer *view, const struct site_request *request, uint64_t span, size_t count)
{
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

enum MHD_Result view_forecast(struct viewer *view, const struct site_request *request)
{
	uint64_t span, count;

	if (read_argument(request->client, "span", 3600, CENSUS_WEEK, &span) != 0 ||
	    read_argument(request->client, "count", 24, COUNT_MAX, &count) != 0)
		return reply_text(
		    request->client, MHD_HTTP_BAD_REQUEST, "span=1 to 604800 seconds, count=1 to 10080\n");
	return ask(view, request, span, (size_t)count);
}

enum MHD_Result view_sessions(struct viewer *view, const struct site_request *request)
{
	return ask(view, request, 0, 0);
}

/* ---- Beginning and end */

struct viewer *view_start(uv_loop_t *loop, const struct web_site *site, const struct census_source *source)
{
	struct viewer *view = calloc(1, sizeof *view);

	if (view) {
		view->source = *source;
		view->site = site;
		view->takes = census_start(loop, source, resume_all, view);
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
