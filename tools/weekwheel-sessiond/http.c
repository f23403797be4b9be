/* Serves HTTP in loop 0: the server's health, and numbers for Prometheus. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/service/metric.h"
#include "tools/service/reply.h"
#include "tools/service/state.h"
#include "tools/service/web.h"
#include "tools/weekwheel-sessiond/http.h"
#include "weekwheel/error.h"

static const char prefix[] = "weekwheel_sessiond";

/* ---- /readyz */

struct readiness {
	unsigned stops;
	int bad;
	struct buffer reasons;
};

static void add_reason(const struct told_state *state, void *context)
{
	struct readiness *ready = context;

	if (!state->is_on)
		return;
	ready->stops |= state->stops;
	ready->bad |= buffer_format(&ready->reasons, "%s\n", state->text);
}

static enum MHD_Result serve_health(struct MHD_Connection *client)
{
	static const char *const heads[] = {[0] = "ok\n",
	    [STATE_STOPS_READING] = "not ready: sessions cannot be read:\n",
	    [STATE_STOPS_WRITING] = "not ready: sessions cannot be written:\n",
	    [STATE_STOPS_READING | STATE_STOPS_WRITING] = "not ready: sessions can be neither read nor written:\n"};
	struct readiness ready = {.stops = 0};
	struct buffer out = {0};
	enum MHD_Result result;

	state_each(add_reason, &ready);
	if (ready.bad || buffer_format(&out, "%s", heads[ready.stops]) ||
	    (ready.reasons.size && buffer_append(&out, ready.reasons.data, ready.reasons.size)))
		result = reply_text(client, MHD_HTTP_SERVICE_UNAVAILABLE, "there is no memory to tell\n");
	else
		result = reply_body(client, ready.stops ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK,
		    "text/plain; charset=utf-8", &out);
	buffer_free(&ready.reasons);
	buffer_free(&out);
	return result;
}

/* ---- /metrics */

static int add(struct buffer *out, const char *name, int is_counter, const char *help, uint64_t value)
{
	return metric_add(out, prefix, name, is_counter, help, value);
}

static int add_clients(const struct sessiond *server, struct buffer *out)
{
	uint64_t commands = 0;
	uint64_t in = 0;
	uint64_t sent = 0;

	for (unsigned i = 0; i < server->loop_count; i++) {
		commands += server->loop[i].commands;
		in += server->loop[i].bytes_in;
		sent += server->loop[i].bytes_out;
	}
	return add(out, "clients", 0, "Clients that are connected.", server->clients) ||
	       add(out, "clients", 1, "Clients that have connected.", server->clients_total) ||
	       add(out, "clients-refused", 1, "Clients beyond --maxclients.", server->refused) ||
	       add(out, "commands", 1, "Commands carried out.", commands) ||
	       add(out, "received-bytes", 1, "Bytes from clients.", in) ||
	       add(out, "sent-bytes", 1, "Bytes to clients.", sent);
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
	       add(out, "evicted", 1, "Sessions put out at the bound of memory.", stats.evicted);
}

static enum MHD_Result serve_metrics(const struct sessiond *server, struct MHD_Connection *client)
{
	const struct visitors *visitors = web_visitors(server->web);
	struct buffer out = {0};
	uint64_t up = (uint64_t)(data_wall_ms(server->data) - server->started_ms);

	if (metric_build(&out, prefix) ||
	    metric_add_seconds(&out, prefix, "uptime-seconds", 0, "Time since the start.", up * WW_MILLISECOND) ||
	    add_clients(server, &out) || add_data(server, &out) || metric_states(&out, prefix) ||
	    add(&out, "http-connections", 0, "Connections by HTTP.", visitors->count) ||
	    add(&out, "http-connections", 1, "Connections that came by HTTP.", visitors->total)) {
		buffer_free(&out);
		return reply_text(client, MHD_HTTP_INTERNAL_SERVER_ERROR, ww_strerror(WW_ENOMEM));
	}
	return reply_body(client, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &out);
}

/* ---- Requests */

static enum MHD_Result begin(void *context, struct MHD_Connection *client, const char *path, const char *method,
    size_t size, struct web_visit **visit)
{
	const struct sessiond *server = context;

	(void)visit;
	if (size > 0 || (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0))
		return reply_text(client, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET: this interface is read-only\n");
	if (strcmp(path, "/livez") == 0)
		return reply_text(client, MHD_HTTP_OK, "ok\n");
	if (strcmp(path, "/readyz") == 0 || strcmp(path, "/healthz") == 0)
		return serve_health(client);
	if (strcmp(path, "/metrics") == 0)
		return serve_metrics(server, client);
	return reply_text(client, MHD_HTTP_NOT_FOUND, "there are /metrics, /livez, /readyz and /healthz\n");
}

int http_start(struct sessiond *server)
{
	const struct sessiond_settings *settings = server->settings;
	struct web_config config = {.where = settings->http,
	    .option = "--http",
	    .risk = settings->is_insecure ? "--insecure shows them how many sessions there are" : NULL,
	    .hosts = settings->http_hosts,
	    .host_count = settings->http_host_count,
	    .begin = begin,
	    .context = server};

	if (!settings->http)
		return 0;
	server->web = web_start(&server->loop[0].uv, &config);
	return server->web ? 0 : -1;
}

void http_stop(struct sessiond *server)
{
	if (server->web)
		web_stop(server->web);
	server->web = NULL;
}
