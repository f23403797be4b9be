/* Serves HTTP in loop 0: the server's health, numbers for Prometheus, and the page. */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/common/tls/tls.h"
#include "tools/service/http/metric.h"
#include "tools/service/http/reply.h"
#include "tools/service/outbox/numbers.h"
#include "tools/weekwheel-sessiond/http/http.h"
#include "weekwheel/error.h"

static const char prefix[] = "weekwheel_sessiond";

/* ---- /metrics */

static int add(struct buffer *out, const char *name, int is_counter, const char *help, uint64_t value)
{
	return metric_add(out, prefix, name, is_counter, help, value);
}

static int add_clients(const struct sessiond *server, struct buffer *out)
{
	struct traffic traffic = sessiond_traffic(server);

	return add(out, "clients", 0, "Clients that are connected.", server->clients) ||
	       add(out, "clients", 1, "Clients that have connected.", server->clients_total) ||
	       add(out, "clients-refused", 1, "Clients beyond --maxclients.", server->refused) ||
	       add(out, "commands", 1, "Commands carried out.", traffic.commands) ||
	       add(out, "received-bytes", 1, "Bytes from clients.", traffic.in) ||
	       add(out, "sent-bytes", 1, "Bytes to clients.", traffic.out);
}

static int add_keys(const struct sessiond *server, struct buffer *out)
{
	char whole[METRIC_NAME_MAX];
	int bad = metric_head(out, whole, prefix, "keys", "gauge", "Sessions of a database, if it has any.");

	for (unsigned database = 0; database < data_databases(server->data); database++) {
		uint64_t count = data_count(server->data, database);

		if (count > 0 || database == 0)
			bad |= buffer_format(out, "%s{database=\"%u\"} %" PRIu64 "\n", whole, database, count);
	}
	return bad;
}

static int add_data(const struct sessiond *server, struct buffer *out)
{
	struct ww_session_stats stats = {0};

	data_stats(server->data, &stats);
	return add_keys(server, out) ||
	       add(out, "map-bytes", 0, "Memory of keys and deadlines, without the values.", stats.bytes) ||
	       add(out, "hits", 1, "Lookups that found a session.", stats.hits) ||
	       add(out, "misses", 1, "Lookups that found none.", stats.misses) ||
	       add(out, "expired", 1, "Sessions that have expired.", stats.expired) ||
	       add(out, "evicted", 1, "Sessions put out at the bound of memory.", stats.evicted) ||
	       add(out, "ended-dropped", 1, "Ended sessions that may come back, as --stay-ended found no room.",
	           data_recalls_dropped(server->data));
}

static enum MHD_Result serve_metrics(const struct site_request *request)
{
	const struct sessiond *server = request->context;
	struct buffer out = {0};
	uint64_t up = (uint64_t)(data_steady_ms(server->data) - server->started_ms);

	if (site_metrics(&server->site, up * WW_MILLISECOND, &out) || add_clients(server, &out) ||
	    add_data(server, &out) ||
	    (server->settings->reporting.is_reporting &&
	        outbox_numbers_add(&out, prefix, server->outbox, data_steady_ms(server->data)))) {
		buffer_free(&out);
		return reply_text(request->client, MHD_HTTP_INTERNAL_SERVER_ERROR, ww_strerror(WW_ENOMEM));
	}
	return reply_body(request->client, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &out);
}

/* ---- Beginning and end */

static const struct site_route routes[] = {{"/metrics", SITE_ALL, serve_metrics}, {"/v1/stats", SITE_ALL, http_stats},
    {"/v1/forecast", SITE_ALL, http_forecast}, {"/v1/sessions", SITE_ALL, http_sessions}};

int http_start(struct sessiond *server)
{
	const struct sessiond_settings *settings = server->settings;
	const struct census_source source = {http_walk, http_now, server};

	if (!settings->http)
		return 0;
	server->site.config = (struct site_config){.where = settings->http,
	    .hosts = settings->http_hosts,
	    .host_count = settings->http_host_count,
	    .risk = settings->is_insecure ? "--insecure shows them how many sessions there are" : NULL,
	    .access = &server->access,
	    .shakes = &server->loop[0].shakes,
	    .certificate = &server->certificate,
	    .prefix = prefix,
	    .things = "sessions",
	    .passing = "tokens and keys",
	    .denied = "the token may not look at all keys: use one whose line has read:*\n",
	    .routes = routes,
	    .route_count = sizeof routes / sizeof *routes,
	    .files = view_files,
	    .file_count = VIEW_FILES,
	    .context = server};
	server->view = view_start(&server->loop[0].uv, &server->site, &source);
	return server->view ? site_start(&server->site, &server->loop[0].uv) : -1;
}

void http_stop(struct sessiond *server)
{
	if (server->site.web)
		view_stop(server->view);
	site_stop(&server->site);
	view_free(server->view);
	server->view = NULL;
}
