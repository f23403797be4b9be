#ifndef TOOLS_SERVICE_HTTP_SITE_H
#define TOOLS_SERVICE_HTTP_SITE_H

/*
 * What a server shows over HTTP (web.h). Each has /livez, /readyz and /healthz, a page, and a table of routes:
 *
 *     web ---> site ---> /livez, /readyz, the page              open to all
 *                   ---> [ access: a token? ] ---> a route      refused here with 401, 403, 404, 405 and 429
 *
 * All calls are made in the loop's thread.
 */

#include "tools/service/access/access.h"
#include "tools/service/http/health.h"
#include "tools/service/http/page.h"
#include "tools/service/http/web.h"

/* A request for a route. */
struct site_request {
	void *context; /* the server */
	struct MHD_Connection *client;
	const char *path; /* the path after a route that ends in a slash, still encoded */
	const char *method;
	const struct token *token; /* the client's token; NULL: none is needed, or it has the password */
	struct web_visit **visit;  /* as in web.h */
};

enum site_need {
	SITE_ALL,   /* GET, with a token that may read everything */
	SITE_TOKEN, /* GET, with any token: the route checks its rights */
	SITE_OPEN,  /* GET */
	SITE_OWN    /* any method and body; the route checks tokens itself */
};

struct site_route {
	const char *path; /* if it ends in a slash, every path that begins with it */
	enum site_need need;
	enum MHD_Result (*serve)(const struct site_request *request);
};

/* All of it has to stay. */
struct site_config {
	const char *where;        /* HOST:PORT, or tls:HOST:PORT, of --http */
	const char *const *hosts; /* names of the server, beside its addresses (gate.h) */
	size_t host_count;
	const char *risk; /* the warning if other machines can reach it, or NULL */
	struct access *access;
	struct shakes *shakes;           /* for TLS, as in relay.h */
	struct certificate *certificate; /* as there */

	const char *prefix;  /* of its metrics */
	const char *things;  /* what it keeps: "jobs" */
	const char *passing; /* what would pass unencrypted: "tokens and jobs" */
	const char *denied;  /* the text of 403 */
	const struct site_route *routes;
	size_t route_count;
	const struct page_file *files;
	size_t file_count;
	void (*health)(void *context, struct health *health); /* fills it; NULL: health_states does */
	/* As in web.h; or NULL. */
	int (*divert)(void *context, int fd, const struct sockaddr *peer, int is_tls);
	void *context;
};

struct web_site {
	struct site_config config;
	struct listening listening;
	struct web *web; /* NULL: nothing is served */
};

/* Serve what its config says. Returns 0, or -1 after a message. */
int site_start(struct web_site *site, uv_loop_t *loop);

/* End all requests. The loop must run on before the site may be freed. */
void site_stop(struct web_site *site);

/* Return how many descriptors its clients may take; 0 if nothing is served. */
unsigned site_files(const struct web_site *site);

/* Write the metrics that every server has; `uptime` is in ns. Returns 0, or another number without memory. */
int site_metrics(const struct web_site *site, uint64_t uptime, struct buffer *out);

#endif
