/* What a server shows over HTTP: see site.h. */
#include "tools/service/http/site.h"

#include <string.h>

#include "tools/service/http/metric.h"
#include "tools/service/http/reply.h"

/* ---- What every server has */

static enum MHD_Result serve_health(const struct web_site *site, struct MHD_Connection *client)
{
	const char *format = MHD_lookup_connection_value(client, MHD_GET_ARGUMENT_KIND, "format");
	struct health health = {.is_json = format && strcmp(format, "json") == 0};
	const char *type = health.is_json ? "application/json" : "text/plain; charset=utf-8";
	struct buffer out = {0};
	int ready;

	if (site->config.health)
		site->config.health(site->config.context, &health);
	else
		health_states(&health);
	ready = health_write(&health, site->config.things, &out);
	if (ready >= 0)
		return reply_body(client, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, type, &out);
	buffer_free(&out);
	return reply_text(client, MHD_HTTP_SERVICE_UNAVAILABLE, "there is no memory for an answer\n");
}

/* Returns 1 if the path is one of these, with the answer in *result. */
static int serves(const struct web_site *site, struct MHD_Connection *client, const char *path, enum MHD_Result *result)
{
	if (strcmp(path, "/livez") == 0)
		*result = reply_text(client, MHD_HTTP_OK, "ok\n");
	else if (strcmp(path, "/readyz") == 0 || strcmp(path, "/healthz") == 0)
		*result = serve_health(site, client);
	else
		return page_serve(client, path, site->config.files, site->config.file_count, result);
	return 1;
}

int site_metrics(const struct web_site *site, uint64_t uptime, struct buffer *out)
{
	const char *prefix = site->config.prefix;
	const struct visitors *visitors = web_visitors(site->web);
	const struct {
		const char *name;
		int is_counter;
		const char *help;
		uint64_t value;
	} numbers[] = {{"auth-failures", 1, "Wrong tokens.", site->config.access->culprits.failures},
	    {"http-connections", 0, "Connections by HTTP.", visitors->count},
	    {"http-connections", 1, "Connections that came by HTTP.", visitors->total},
	    {"http-too-slow", 1, "Connections by HTTP closed because of their time.", visitors->slow},
	    {"http-replaced", 1, "Connections by HTTP closed for another.", visitors->replaced}};
	int bad = metric_build(out, prefix) || metric_states(out, prefix) ||
	          metric_add_seconds(out, prefix, "uptime-seconds", 0, "Time since the start.", uptime);

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		bad |=
		    metric_add(out, prefix, numbers[i].name, numbers[i].is_counter, numbers[i].help, numbers[i].value);
	return bad;
}

/* ---- Routes */

static const struct site_route *find(const struct web_site *site, const char *path)
{
	for (const struct site_route *route = site->config.routes;
	     route < site->config.routes + site->config.route_count; route++) {
		size_t length = strlen(route->path);

		if (route->path[length - 1] == '/' ? strncmp(path, route->path, length) == 0
		                                   : strcmp(path, route->path) == 0)
			return route;
	}
	return NULL;
}

static enum MHD_Result reply_missing(const struct web_site *site, struct MHD_Connection *client)
{
	struct buffer text = {0};

	(void)buffer_format(&text, "there are /, /livez, /readyz, /healthz");
	for (size_t i = 0; i < site->config.route_count; i++)
		(void)buffer_format(
		    &text, "%s%s", i + 1 < site->config.route_count ? ", " : " and ", site->config.routes[i].path);
	(void)buffer_append(&text, "\n", 1);
	return reply_body(client, MHD_HTTP_NOT_FOUND, REPLY_TEXT, &text);
}

static enum MHD_Result reply_read_only(struct MHD_Connection *client)
{
	struct buffer text = {0};

	(void)buffer_format(&text, "only GET: this interface is read-only\n");
	return reply_with(client, MHD_HTTP_METHOD_NOT_ALLOWED, REPLY_TEXT, &text, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
}

/* Return 1 if the client may not, with the answer in *result. */
static int refuses(const struct web_site *site, struct MHD_Connection *client, enum site_need need,
    struct access_client *who, enum MHD_Result *result)
{
	const char *field = MHD_lookup_connection_value(client, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
	const union MHD_ConnectionInfo *from = MHD_get_connection_info(client, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	unsigned rest = 0;
	int status = access_http(site->config.access, who, from->client_addr, field, &rest);

	if (status == MHD_HTTP_TOO_MANY_REQUESTS)
		*result = reply_later(client, rest, "a wrong token came from your address: try again later\n");
	else if (status)
		*result = reply_text(client, MHD_HTTP_UNAUTHORIZED,
		    field ? "the server does not know this token, or the field is not \"Authorization: Bearer TOKEN\": "
		            "the token's line has to be in the server's file of tokens, which SIGHUP reads again\n"
		          : "this needs a token, in a field \"Authorization: Bearer TOKEN\": \"weekwheel token\" makes "
		            "one and its line for the server's file of tokens\n");
	else if (need == SITE_ALL && who->token && !token_may(who->token, RIGHT_READ, NULL))
		*result = reply_text(client, MHD_HTTP_FORBIDDEN, site->config.denied);
	else
		return 0;
	return 1;
}

static int takes_bodies(void *context, const char *path)
{
	const struct site_route *route = find(context, path);

	return route && route->need == SITE_OWN;
}

static enum MHD_Result begin(void *context, struct MHD_Connection *client, const char *path, const char *method,
    int has_body, struct web_visit **visit)
{
	const struct web_site *site = context;
	const struct site_route *route = find(site, path);
	enum site_need need = route ? route->need : SITE_OPEN;
	struct access_client who = {0};
	struct site_request request = {site->config.context, client, path, method, NULL, visit};
	enum MHD_Result result;

	if (need != SITE_OWN &&
	    (has_body || (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)))
		return reply_read_only(client);
	if (!route)
		return serves(site, client, path, &result) ? result : reply_missing(site, client);
	if (need == SITE_OWN || need == SITE_OPEN || !refuses(site, client, need, &who, &result)) {
		if (route->path[strlen(route->path) - 1] == '/')
			request.path += strlen(route->path);
		request.token = who.token;
		result = route->serve(&request);
	}
	access_leave(site->config.access, &who);
	return result;
}

static int divert(void *context, int fd, const struct sockaddr *peer, int is_tls)
{
	const struct site_config *config = &((const struct web_site *)context)->config;

	return config->divert(config->context, fd, peer, is_tls);
}

/* ---- Beginning and end */

unsigned site_files(const struct web_site *site)
{
	return site->web ? web_files(site->web) : 0;
}

int site_start(struct web_site *site, uv_loop_t *loop)
{
	const struct site_config *config = &site->config;
	const struct web_config web = {.where = config->where,
	    .listening = &site->listening,
	    .listen = {.risk = config->risk,
	        .has_tokens = access_http_is_needed(config->access),
	        .has_trusted = config->certificate->files->trusted != NULL,
	        .passing = config->passing},
	    .shakes = config->shakes,
	    .certificate = config->certificate,
	    .hosts = config->hosts,
	    .host_count = config->host_count,
	    .takes_bodies = takes_bodies,
	    .begin = begin,
	    .divert = config->divert ? divert : NULL,
	    .context = site};

	site->web = web_start(loop, &web);
	return site->web ? 0 : -1;
}

void site_stop(struct web_site *site)
{
	if (site->web)
		web_stop(site->web);
	site->web = NULL;
}
