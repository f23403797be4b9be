/* Serves HTTP in loop 0: the server's health, numbers for Prometheus, and the page. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/tls/tls.h"
#include "tools/service/address.h"
#include "tools/service/metric.h"
#include "tools/service/reply.h"
#include "tools/service/state.h"
#include "tools/service/web.h"
#include "tools/weekwheel-sessiond/http/http.h"
#include "tools/weekwheel-sessiond/http/view.h"
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

static int add_outbox(const struct sessiond *server, struct buffer *out)
{
	struct outbox_stats stats;
	int64_t age;

	if (!server->settings->is_telling)
		return 0;
	outbox_stats(server->outbox, &stats);
	age = stats.waiting ? data_wall_ms(server->data) - stats.oldest_ms : 0;
	return add(out, "expired-to-waiting", 0, "Expiries that wait to be told by --expired-to.", stats.waiting) ||
	       add(out, "expired-to-bytes", 0, "What they take.", stats.bytes) ||
	       metric_add_seconds(out, prefix, "expired-to-oldest-seconds", 0, "Since the oldest of them has expired.",
	           age > 0 ? (uint64_t)age * WW_MILLISECOND : 0) ||
	       add(out, "expired-to-told", 1, "Expiries that the other server has.", stats.told) ||
	       add(out, "expired-to-shortened", 1, "Those without their values.", stats.shortened) ||
	       add(out, "expired-to-refused", 1, "Those that it takes in no form.", stats.given_up) ||
	       add(out, "expired-to-dropped", 1, "Those dropped at --expired-max.", stats.dropped);
}

static enum MHD_Result serve_metrics(const struct sessiond *server, struct MHD_Connection *client)
{
	const struct visitors *visitors = web_visitors(server->web);
	struct buffer out = {0};
	uint64_t up = (uint64_t)(data_wall_ms(server->data) - server->started_ms);

	if (metric_build(&out, prefix) ||
	    metric_add_seconds(&out, prefix, "uptime-seconds", 0, "Time since the start.", up * WW_MILLISECOND) ||
	    add_clients(server, &out) || add_data(server, &out) || add_outbox(server, &out) ||
	    metric_states(&out, prefix) || add(&out, "http-connections", 0, "Connections by HTTP.", visitors->count) ||
	    add(&out, "http-connections", 1, "Connections that came by HTTP.", visitors->total)) {
		buffer_free(&out);
		return reply_text(client, MHD_HTTP_INTERNAL_SERVER_ERROR, ww_strerror(WW_ENOMEM));
	}
	return reply_body(client, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &out);
}

/* ---- Requests */

/* What tells something of sessions needs a token where clients need one. Returns 1 if it was refused. */
static int refuses(struct sessiond *server, struct MHD_Connection *client, enum MHD_Result *result)
{
	const char *field = MHD_lookup_connection_value(client, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
	const union MHD_ConnectionInfo *from = MHD_get_connection_info(client, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	struct access_client who = {0};
	unsigned rest;
	int status = access_http(&server->access, &who, from->client_addr, field, &rest);

	if (status == 0 && who.token && !token_may(who.token, RIGHT_READ, NULL))
		status = MHD_HTTP_FORBIDDEN;
	access_leave(&server->access, &who);
	switch (status) {
	case MHD_HTTP_TOO_MANY_REQUESTS:
		*result = reply_later(client, rest, "a wrong token came from your address: try again later\n");
		return 1;
	case MHD_HTTP_FORBIDDEN:
		*result = reply_text(client, MHD_HTTP_FORBIDDEN,
		    "the token may not look at all keys: use one whose line has read:*, which --auth-file gives\n");
		return 1;
	case MHD_HTTP_UNAUTHORIZED:
		*result = reply_text(client, MHD_HTTP_UNAUTHORIZED,
		    "this needs a token that the server knows, in a field \"Authorization: Bearer TOKEN\": \"weekwheel token\" makes "
		    "one and its line for the file of --auth-file\n");
		return 1;
	default:
		return 0;
	}
}

static enum MHD_Result begin(void *context, struct MHD_Connection *client, const char *path, const char *method,
    int has_body, struct web_visit **visit)
{
	struct sessiond *server = context;
	enum MHD_Result result;

	if (has_body || (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0))
		return reply_text(client, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET: this interface is read-only\n");
	if (strcmp(path, "/livez") == 0)
		return reply_text(client, MHD_HTTP_OK, "ok\n");
	if (strcmp(path, "/readyz") == 0 || strcmp(path, "/healthz") == 0)
		return serve_health(client);
	if ((strcmp(path, "/metrics") == 0 || strncmp(path, "/v1/", 4) == 0) && refuses(server, client, &result))
		return result;
	if (strcmp(path, "/metrics") == 0)
		return serve_metrics(server, client);
	if (view_serves(server->view, client, path, visit, &result))
		return result;
	return reply_text(client, MHD_HTTP_NOT_FOUND,
	    "there are /, /metrics, /livez, /readyz, /healthz, /v1/stats, /v1/forecast and /v1/sessions\n");
}

static int may_be_reached(const struct sessiond *server)
{
	const struct sessiond_settings *settings = server->settings;
	int is_tls = address_is_tls(settings->http);
	struct sockaddr_storage address;

	if (address_read("--http", settings->http + (is_tls ? ADDRESS_TLS_PREFIX : 0), &address) != 0)
		return -1;
	return settings->is_insecure
	           ? 0
	           : address_let_in((struct sockaddr *)&address, is_tls, access_is_needed(&server->access),
	                 settings->tls.trusted != NULL, "tokens and keys");
}

static struct tls_link *open_tls(void *context)
{
	struct sessiond *server = context;
	struct tls_link *link;

	pthread_mutex_lock(&server->tls.lock);
	link = tls_open(server->tls.now, NULL);
	pthread_mutex_unlock(&server->tls.lock);
	return link;
}

int http_start(struct sessiond *server)
{
	const struct sessiond_settings *settings = server->settings;
	struct web_config config = {.where = settings->http,
	    .option = "--http",
	    .risk = settings->is_insecure ? "--insecure shows them how many sessions there are" : NULL,
	    .hosts = settings->http_hosts,
	    .host_count = settings->http_host_count,
	    .shakes = &server->loop[0].shakes,
	    .open_tls = open_tls,
	    .begin = begin,
	    .context = server};

	if (!settings->http)
		return 0;
	if (may_be_reached(server) != 0)
		return -1;
	server->view = view_start(server);
	if (server->view)
		server->web = web_start(&server->loop[0].uv, &config);
	return server->web ? 0 : -1;
}

void http_stop(struct sessiond *server)
{
	if (server->web) {
		view_stop(server->view);
		web_stop(server->web);
	}
	view_free(server->view);
	server->web = NULL;
	server->view = NULL;
}
