/* Health and metrics over HTTP. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/time.h"
#include "tools/service/http/metric.h"
#include "tools/service/http/reply.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-expirer/expirer.h"
#include "weekwheel/error.h"

static const char prefix[] = "weekwheel_expirer";

/* The metrics of each node. */
static const struct number {
	const char *name;
	const char *help;
	size_t at; /* in struct node_numbers; an int is a gauge of 0 or 1 */
	enum { GAUGE, COUNTER, FLAG } type;
} numbers_of_node[] = {
#define AT(member) offsetof(struct node_numbers, member)
    {"exact", "1: all keys with a deadline are known. 0: it catches up.", AT(keeper.is_exact), FLAG},
    {"known", "Keys with a deadline.", AT(keeper.known), GAUGE},
    {"known-bytes", "Memory that they take here.", AT(keeper.bytes), GAUGE},
    {"due", "Keys asked for at their deadline or after it.", AT(keeper.due), COUNTER},
    {"told", "Of these, keys that had expired then.", AT(keeper.expired), COUNTER},
    {"later", "And keys that had a later deadline by then.", AT(keeper.later), COUNTER},
    {"heard", "Changes of keys that Redis reported.", AT(keeper.heard), COUNTER},
    {"looked-up", "Keys whose deadline was asked for.", AT(keeper.looks), COUNTER},
    {"passes", "Passes through all keys that have begun.", AT(keeper.passes), COUNTER},
    {"clock-steps", "Steps of Redis's clock.", AT(keeper.steps), COUNTER},
    {"doubts", "Times when this process, Redis or the network stood still: an end may have been a deletion.",
        AT(keeper.doubts), COUNTER},
    {"values-unread", "Values that could not be read in time, or for lack of rights or memory.", AT(keeper.unread),
        COUNTER},
    {"too-long", "Keys too long to be kept.", AT(keeper.too_long), COUNTER},
    {"refused", "Keys that its rights do not cover.", AT(keeper.refused), COUNTER},
    {"waiting", "Keys that wait to be looked up.", AT(waiting), GAUGE},
    {"waiting-bytes", "Memory that they take.", AT(waiting_bytes), GAUGE},
#undef AT
};

int numbers_read_all(struct expirer_masters *masters, struct all_numbers *all)
{
	struct node_numbers next;

	*all = (struct all_numbers){.count = 0};
	while (masters_read_numbers(masters, all->count, &next)) {
		struct node_numbers *grown = realloc(all->of, (all->count + 1) * sizeof *grown);

		if (!grown)
			return -1;
		all->of = grown;
		all->of[all->count++] = next;
	}
	return 0;
}

static uint64_t value_of(const struct node_numbers *numbers, const struct number *number)
{
	const char *at = (const char *)numbers + number->at;

	return number->type == FLAG ? (uint64_t) * (const int *)(const void *)at : *(const uint64_t *)(const void *)at;
}

static int add_number(struct buffer *out, const struct all_numbers *all, const struct number *number)
{
	char whole[METRIC_NAME_MAX];
	int bad =
	    metric_head(out, whole, prefix, number->name, number->type == COUNTER ? "counter" : "gauge", number->help);

	for (size_t i = 0; i < all->count; i++)
		bad |= buffer_format(out, "%s{", whole) || metric_label(out, "node", all->of[i].place) ||
		       buffer_format(out, "} %" PRIu64 "\n", value_of(&all->of[i], number));
	return bad;
}

static int add_late_of(struct buffer *out, const char *whole, const struct node_numbers *numbers)
{
	const struct keeper_stats *stats = &numbers->keeper;
	uint64_t sum = 0;
	int bad = 0;

	for (int i = 0; i < KEEPER_BUCKETS; i++) {
		sum += stats->late[i];
		bad |= buffer_format(out, "%s_bucket{", whole) || metric_label(out, "node", numbers->place) ||
		       buffer_format(out, ",le=\"%g\"} %" PRIu64 "\n", keeper_bounds[i] / 1e6, sum);
	}
	bad |= buffer_format(out, "%s_bucket{", whole) || metric_label(out, "node", numbers->place) ||
	       buffer_format(out, ",le=\"+Inf\"} %" PRIu64 "\n%s_sum{", stats->expired, whole) ||
	       metric_label(out, "node", numbers->place) ||
	       buffer_format(out, "} %.6f\n%s_count{", (double)stats->late_ns / 1e9, whole) ||
	       metric_label(out, "node", numbers->place) || buffer_format(out, "} %" PRIu64 "\n", stats->expired);
	return bad;
}

static int add_late(struct buffer *out, const struct all_numbers *all)
{
	char whole[METRIC_NAME_MAX];
	int bad = metric_head(out, whole, prefix, "lateness-seconds", "histogram",
	    "By how much, at most, keys expired after their deadlines.");

	for (size_t i = 0; i < all->count; i++)
		bad |= add_late_of(out, whole, &all->of[i]);
	return bad;
}

static enum MHD_Result serve_metrics(const struct site_request *request)
{
	const struct expirer *expirer = request->context;
	struct all_numbers all;
	struct buffer out = {0};
	int bad = numbers_read_all(expirer->masters, &all) ||
	          site_metrics(&expirer->site, time_now(CLOCK_MONOTONIC) - expirer->started, &out);

	for (size_t i = 0; i < sizeof numbers_of_node / sizeof *numbers_of_node && !bad; i++)
		bad = add_number(&out, &all, &numbers_of_node[i]);
	bad = bad || add_late(&out, &all) || (expirer->ends && ends_add_numbers(expirer->ends, &out, prefix));
	free(all.of);
	if (bad) {
		buffer_free(&out);
		return reply_text(request->client, MHD_HTTP_INTERNAL_SERVER_ERROR, ww_strerror(WW_ENOMEM));
	}
	return reply_body(request->client, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &out);
}

static void add_health(void *context, struct health *health)
{
	const struct expirer *expirer = context;
	struct node_numbers numbers;
	char text[400];

	health_states(health);
	for (size_t i = 0; masters_read_numbers(expirer->masters, i, &numbers); i++) {
		if (numbers.keeper.is_exact || numbers.has_reason)
			continue;
		health->stops |= STATE_STOPS_READING;
		(void)snprintf(text, sizeof text,
		    "catching up: it goes through all keys at %s, and those that it has not found yet may end late",
		    numbers.place);
		health_reason(health, text);
	}
}

static const struct site_route routes[] = {{"/metrics", SITE_ALL, serve_metrics}, {"/v1/stats", SITE_ALL, page_stats},
    {"/v1/forecast", SITE_ALL, page_forecast}, {"/v1/sessions", SITE_ALL, page_sessions},
    {"/v1/key", SITE_ALL, page_key}};

int numbers_start(struct expirer *expirer)
{
	const struct expirer_settings *settings = expirer->settings;
	const struct census_source source = {page_walk, page_now, expirer};

	if (!settings->http)
		return 0;
	expirer->site.config = (struct site_config){.where = settings->http,
	    .hosts = settings->http_hosts,
	    .host_count = settings->http_host_count,
	    .risk = settings->is_insecure ? "--insecure shows them how many keys there are" : NULL,
	    .access = &expirer->access,
	    .shakes = &expirer->shakes,
	    .certificate = &expirer->certificate,
	    .prefix = prefix,
	    .things = "deadlines",
	    .passing = "tokens and numbers",
	    .denied = "the token may not read all keys: use one whose line has read:*, which --auth-file gives\n",
	    .routes = routes,
	    .route_count = sizeof routes / sizeof *routes,
	    .files = view_files,
	    .file_count = VIEW_FILES,
	    .health = add_health,
	    .context = expirer};
	expirer->view = view_start(&expirer->loop, &expirer->site, &source);
	return expirer->view ? site_start(&expirer->site, &expirer->loop) : -1;
}

void numbers_stop(struct expirer *expirer)
{
	if (expirer->site.web)
		view_stop(expirer->view);
	site_stop(&expirer->site);
	view_free(expirer->view);
	expirer->view = NULL;
}
