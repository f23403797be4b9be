#ifndef TOOLS_WEEKWHEELD_HTTP_HTTP_H
#define TOOLS_WEEKWHEELD_HTTP_HTTP_H

/* HTTP: a page, numbers, health and lists, beside /v1. */

#include <sys/queue.h>

#include "tools/common/buffer.h"
#include "tools/service/http/site.h"
#include "tools/weekwheeld/engine/face.h"
#include "weekwheel/jobs.h"

struct server;

struct http {
	struct web_site site;
	LIST_HEAD(, http_question) questions;
	unsigned asking; /* how many of them the store is asked */
	int is_probing;  /* the store is called for the sake of /readyz */
};

/* Serve HTTP, if the settings say so. `http` is zeros, and outlives the loop. Returns 0, or -1 after a message. */
int http_start(struct server *server, struct http *http);
void http_stop(struct server *server);
/* Let a client in that stood by. */
void http_let_in(void *server, int fd, const struct sockaddr *peer, int is_tls);
extern const struct face http_face;

/* ---- health.c */

/* Add why the server is not ready, and its nodes. Never waits for the store. */
void health_fill(void *server, struct health *health);

struct ww_jobs_redis_node;

/* Store the nodes of a store in Redis in *nodes, which the caller frees; none otherwise. Returns 0, or -1 without memory. */
int health_nodes(struct server *server, struct ww_jobs_redis_node **nodes, size_t *count);
const char *health_node_state(const struct ww_jobs_redis_node *node);

/* ---- metrics.c: numbers for Prometheus */

#define METRICS_PREFIX "weekwheeld"
enum { METRICS_HOURS = 7 * 24 };

/* What the store says. */
struct metrics_sample {
	struct ww_jobs_stats stats;
	struct buffer tubes;          /* lines about them */
	uint64_t week[METRICS_HOURS]; /* jobs that are due in each of the hours to come */
};

/* Ask the store. Any thread. Returns 0 or a WW_E*. */
int metrics_ask(struct server *server, struct metrics_sample *sample);
void metrics_forget(struct metrics_sample *sample);

/* Write the numbers of a server that stands by. Returns 0 or a WW_E*. */
int metrics_of_standby(struct server *server, struct buffer *out);

/*
 * Write what the server and its store count in the text format of Prometheus. `error` is what metrics_ask returned.
 * Returns 0 or a WW_E*.
 */
int metrics_write(struct server *server, const struct metrics_sample *sample, int error, struct buffer *out);

#endif
