/* Health and metrics over HTTP. */
#include <inttypes.h>

#include "lib/base/time.h"
#include "tools/service/http/metric.h"
#include "tools/service/http/reply.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-expirer/expirer.h"
#include "weekwheel/error.h"

static const char prefix[] = "weekwheel_expirer";

static int add(struct buffer *out, const char *name, int is_counter, const char *help, uint64_t value)
{
	return metric_add(out, prefix, name, is_counter, help, value);
}

static int add_late(struct buffer *out, const struct keeper_stats *stats)
{
	char whole[METRIC_NAME_MAX];
	uint64_t sum = 0;
	int bad = metric_head(out, whole, prefix, "lateness-seconds", "histogram",
	    "By how much, at most, keys expired after their deadlines.");

	for (int i = 0; i < KEEPER_BUCKETS; i++) {
		sum += stats->late[i];
		bad |= buffer_format(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", whole, keeper_bounds[i] / 1e6, sum);
	}
	return bad | buffer_format(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.6f\n%s_count %" PRIu64 "\n",
	                 whole, stats->told, whole, (double)stats->late_ns / 1e9, whole, stats->told);
}

static int add_keys(struct buffer *out, const struct keeper_stats *stats)
{
	return add(out, "exact", 0, "1: all keys with a deadline are known. 0: it catches up.",
	           (uint64_t)stats->is_exact) ||
	       add(out, "known", 0, "Keys with a deadline.", stats->known) ||
	       add(out, "known-bytes", 0, "Memory that they take here.", stats->bytes) ||
	       add(out, "due", 1, "Keys asked for at their deadline or after it.", stats->due) ||
	       add(out, "told", 1, "Of these, keys that had expired then.", stats->told) ||
	       add(out, "later", 1, "And keys that had a later deadline by then.", stats->later) ||
	       add(out, "heard", 1, "Changes of keys that Redis told.", stats->heard) ||
	       add(out, "looked-up", 1, "Keys whose deadline was asked for.", stats->looks) ||
	       add(out, "passes", 1, "Passes through all keys that have begun.", stats->passes) ||
	       add(out, "clock-steps", 1, "Steps of Redis's clock.", stats->steps) ||
	       add(out, "too-long", 1, "Keys too long to be kept.", stats->too_long) ||
	       add(out, "refused", 1, "Keys that its rights do not cover.", stats->refused) || add_late(out, stats);
}

static int add_waiting(struct buffer *out, const struct node_numbers *numbers)
{
	return add(out, "waiting", 0, "Keys that wait to be looked up.", numbers->waiting) ||
	       add(out, "waiting-bytes", 0, "Memory that they take.", numbers->waiting_bytes);
}

static enum MHD_Result serve_metrics(const struct site_request *request)
{
	const struct expirer *expirer = request->context;
	struct node_numbers numbers;
	struct buffer out = {0};

	node_read_numbers(expirer->node, &numbers);
	if (site_metrics(&expirer->site, time_now(CLOCK_MONOTONIC) - expirer->started, &out) ||
	    add_keys(&out, &numbers.keeper) || add_waiting(&out, &numbers)) {
		buffer_free(&out);
		return reply_text(request->client, MHD_HTTP_INTERNAL_SERVER_ERROR, ww_strerror(WW_ENOMEM));
	}
	return reply_body(request->client, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &out);
}

static void add_health(void *context, struct health *health)
{
	const struct expirer *expirer = context;
	struct node_numbers numbers;

	health_states(health);
	node_read_numbers(expirer->node, &numbers);
	if (numbers.keeper.is_exact || state_is("behind"))
		return;
	health->stops |= STATE_STOPS_READING;
	health_reason(
	    health, "catching up: it goes through all keys, and those that it has not found yet may end late");
}

static const struct site_route routes[] = {{"/metrics", SITE_ALL, serve_metrics}};

int numbers_start(struct expirer *expirer)
{
	const struct expirer_settings *settings = expirer->settings;

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
	    .health = add_health,
	    .context = expirer};
	return site_start(&expirer->site, &expirer->loop);
}

void numbers_stop(struct expirer *expirer)
{
	site_stop(&expirer->site);
}
