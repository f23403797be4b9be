/* What the page of sessions shows of this server: its numbers, and a walk of its maps. */
#include <inttypes.h>

#include "tools/service/census/view.h"
#include "tools/weekwheel-sessiond/http/http.h"

/* ---- A census */

struct map_walk {
	struct takes *takes;
	unsigned database;
	int is_over;
};

static int count_one(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct map_walk *walk = context;
	struct data_entry entry;

	data_entry_fill(&entry, found);
	walk->is_over = census_add(walk->takes, walk->database, key, length,
	    entry.deadline == DATA_NEVER ? CENSUS_NEVER : entry.deadline, (int64_t)entry.size);
	return walk->is_over;
}

void http_walk(void *context, struct takes *takes)
{
	struct data *data = ((struct sessiond *)context)->data;
	struct map_walk walk = {.takes = takes};

	for (; walk.database < data_databases(data) && !walk.is_over; walk.database++)
		/* To ask for its map would make one. */
		if (data_count(data, walk.database) > 0)
			(void)ww_session_walk(data_map(data, walk.database), count_one, &walk, NULL);
}

uint64_t http_now(void *context)
{
	return data_now(((struct sessiond *)context)->data);
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

enum MHD_Result http_stats(const struct site_request *request)
{
	const struct sessiond *server = request->context;
	struct ww_session_stats stats;
	struct buffer out = {0};
	struct traffic traffic = sessiond_traffic(server);
	int bad;

	data_stats(server->data, &stats);
	bad = view_begin_stats(&out, 1, (uint64_t)(data_steady_ms(server->data) - server->started_ms));
	bad |= buffer_format(&out,
	    ",\"sessions\":%" PRIu64 ",\"clients\":%" PRIu64 ",\"commands\":%" PRIu64 ",\"received_bytes\":%" PRIu64
	    ",\"sent_bytes\":%" PRIu64,
	    (uint64_t)stats.entries, server->clients, traffic.commands, traffic.in, traffic.out);
	bad |= buffer_format(&out,
	    ",\"hits\":%" PRIu64 ",\"misses\":%" PRIu64 ",\"expired\":%" PRIu64 ",\"evicted\":%" PRIu64
	    ",\"map_bytes\":%" PRIu64 ",\"most_bytes\":%" PRIu64,
	    stats.hits, stats.misses, stats.expired, stats.evicted, (uint64_t)stats.bytes, server->settings->memory);
	bad |= add_databases(server, &out) | buffer_format(&out, "}\n");
	return view_reply(request->client, bad, &out);
}

/* ---- Routes */

enum MHD_Result http_forecast(const struct site_request *request)
{
	return view_forecast(((struct sessiond *)request->context)->view, request);
}

enum MHD_Result http_sessions(const struct site_request *request)
{
	return view_sessions(((struct sessiond *)request->context)->view, request);
}
