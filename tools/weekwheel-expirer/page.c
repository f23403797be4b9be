/* What the page of sessions shows of the keys: their numbers, and a walk of what the nodes know; and what is known of one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/time.h"
#include "tools/common/percent.h"
#include "tools/service/http/reply.h"
#include "tools/service/outbox/letter.h"
#include "tools/weekwheel-expirer/expirer.h"

#define MS UINT64_C(1000000)

/* Between two looks at the same node, so that it asks for its keys in time. */
enum { PAUSE_NS = 20000 };

/* ---- A census: by the clock here, in which each key ends when so much time has gone by as is left to it at Redis. */

struct node_count {
	struct takes *takes;
	unsigned database;
	uint64_t now;
	int is_over;
};

static void walk_one(void *context, const char *key, size_t length, uint64_t left_ms)
{
	struct node_count *walk = context;
	uint64_t left = left_ms < (CENSUS_NEVER - walk->now) / MS ? left_ms * MS : CENSUS_NEVER - 1 - walk->now;

	walk->is_over = census_add(walk->takes, walk->database, key, length, walk->now + left, -1);
}

void page_walk(void *context, struct takes *takes)
{
	const struct expirer *expirer = context;
	const struct timespec pause = time_spec(PAUSE_NS);
	struct masters_walk at = {0};
	struct node_count walk = {.takes = takes, .database = expirer->settings->database};

	do {
		walk.now = page_now(context);
		if (!masters_walk(expirer->masters, &at, walk_one, &walk))
			return;
		(void)nanosleep(&pause, NULL);
	} while (!walk.is_over);
}

uint64_t page_now(void *context)
{
	(void)context;
	return time_now(CLOCK_MONOTONIC);
}

/* ---- Routes */

static int add_nodes(struct buffer *out, const struct all_numbers *all)
{
	int bad = buffer_format(out, ",\"nodes\":[");

	for (size_t i = 0; i < all->count; i++) {
		const struct node_numbers *node = &all->of[i];

		bad |= buffer_format(out, "%s{\"node\":", i ? "," : "") ||
		       buffer_quote(out, node->place, strlen(node->place)) ||
		       buffer_format(out, ",\"sessions\":%" PRIu64 ",\"exact\":%s}", node->keeper.known,
		           node->keeper.is_exact ? "true" : "false");
	}
	return bad | buffer_format(out, "]}\n");
}

enum MHD_Result page_stats(const struct site_request *request)
{
	const struct expirer *expirer = request->context;
	struct keeper_stats sum = {.is_exact = 1};
	struct all_numbers all;
	struct buffer out = {0};
	int bad = numbers_read_all(expirer->masters, &all);

	for (size_t i = 0; i < all.count; i++) {
		sum.known += all.of[i].keeper.known;
		sum.bytes += all.of[i].keeper.bytes;
		sum.expired += all.of[i].keeper.expired;
		sum.heard += all.of[i].keeper.heard;
		sum.is_exact &= all.of[i].keeper.is_exact;
	}
	bad = bad || view_begin_stats(&out, sum.is_exact, (time_now(CLOCK_MONOTONIC) - expirer->started) / MS) ||
	      buffer_format(&out,
	          ",\"sessions\":%" PRIu64 ",\"expired\":%" PRIu64 ",\"heard\":%" PRIu64 ",\"map_bytes\":%" PRIu64
	          ",\"window\":%" PRIu64,
	          sum.known, sum.expired, sum.heard, sum.bytes, expirer->settings->window / (1000 * MS)) ||
	      add_nodes(&out, &all);
	free(all.of);
	return view_reply(request->client, bad, &out);
}

enum MHD_Result page_forecast(const struct site_request *request)
{
	return view_forecast(((struct expirer *)request->context)->view, request);
}

enum MHD_Result page_sessions(const struct site_request *request)
{
	return view_sessions(((struct expirer *)request->context)->view, request);
}

/* ---- One key */

/* How its deadline is known. */
static const char *how(const struct node_key *found)
{
	if (found->is_guess)
		return "unknown";
	if (found->is_asked)
		return "asked";
	return found->is_sure ? "sure" : "unsure";
}

static int add_key(struct buffer *out, const struct node_key *found)
{
	int bad = buffer_format(out, ",\"how\":\"%s\",\"node\":", how(found)) ||
	          buffer_quote(out, found->place, strlen(found->place));

	if (found->is_guess || bad)
		return bad;
	return letter_add_time(out, "deadline", found->deadline) ||
	       buffer_format(out, ",\"left\":%.3f", (double)found->left_ms / 1000);
}

/* Whether each key with a deadline is known. */
static int is_exact(const struct expirer *expirer)
{
	struct node_numbers numbers;
	int is_exact = 1;

	for (size_t i = 0; masters_read_numbers(expirer->masters, i, &numbers); i++)
		is_exact &= numbers.keeper.is_exact;
	return is_exact;
}

/* The bytes that the argument stands for. Returns NULL without memory. */
static char *decode(const char *text, size_t size, size_t *length)
{
	const char *end = text + size;
	char *bytes = malloc(size);

	*length = 0;
	while (bytes && text < end)
		bytes[(*length)++] = percent_take(&text, end);
	return bytes;
}

static enum MHD_Result show_key(const struct site_request *request, const char *key, size_t length)
{
	const struct expirer *expirer = request->context;
	struct node_key found;
	struct buffer out = {0};
	int is_kept = masters_find(expirer->masters, key, length, &found);
	int bad = buffer_format(&out, "{\"kept\":%s,\"exact\":%s", is_kept ? "true" : "false",
	              is_exact(expirer) ? "true" : "false") ||
	          (is_kept && add_key(&out, &found)) || buffer_append(&out, "}\n", 2);

	return view_reply(request->client, bad, &out);
}

enum MHD_Result page_key(const struct site_request *request)
{
	const char *text = NULL;
	size_t size = 0, length;
	enum MHD_Result result;
	char *key;

	(void)MHD_lookup_connection_value_n(request->client, MHD_GET_ARGUMENT_KIND, "key", 3, &text, &size);
	if (!text || size == 0)
		return reply_text(request->client, MHD_HTTP_BAD_REQUEST, "key=KEY, as a URL has it\n");
	key = decode(text, size, &length);
	if (!key)
		return reply_text(request->client, MHD_HTTP_SERVICE_UNAVAILABLE, "there is no memory for an answer\n");
	result = show_key(request, key, length);
	free(key);
	return result;
}
