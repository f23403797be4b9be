/* Adds to the server's health what the last calls found of each node of Redis. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/engine/server.h"
#include "tools/weekwheeld/http/http.h"
#include "tools/weekwheeld/verbs/list.h"
#include "weekwheel/jobs_redis.h"

#ifdef HAVE_REDIS
static const char *const node_states[] = {
    [WW_REDIS_NODE_SERVES] = "serves", [WW_REDIS_NODE_ASIDE] = "aside", [WW_REDIS_NODE_LOST] = "lost"};

const char *health_node_state(const struct ww_jobs_redis_node *node)
{
	return node_states[node->state];
}

int health_nodes(struct server *server, struct ww_jobs_redis_node **nodes, size_t *count)
{
	*nodes = NULL;
	*count = 0;
	if (!server->is_shared || ww_jobs_redis_nodes(server->jobs, NULL, 0, count) != WW_OK || *count == 0)
		return 0;
	*nodes = calloc(*count, sizeof **nodes);
	if (*nodes && ww_jobs_redis_nodes(server->jobs, *nodes, *count, count) == WW_OK)
		return 0;
	free(*nodes);
	*nodes = NULL;
	*count = 0;
	return -1;
}

/* Such a node refuses changes, and lets itself be read. */
static int refuses_only_writes(const struct ww_jobs_redis_node *node)
{
	static const char *const words[] = {"NOREPLICAS", "MISCONF", "OOM", "READONLY"};

	for (size_t i = 0; node->state == WW_REDIS_NODE_ASIDE && i < sizeof words / sizeof *words; i++)
		if (strncmp(node->why, words[i], strlen(words[i])) == 0)
			return 1;
	return 0;
}

static void add_node(struct health *health, const struct ww_jobs_redis_node *node, int is_first, int reads, int writes)
{
	char text[sizeof node->address + sizeof node->why + 100];

	if (health->is_json)
		health->bad |=
		    buffer_format(&health->more, "%s{\"address\":", is_first ? "" : ",") ||
		    list_string(&health->more, node->address) ||
		    buffer_format(&health->more,
		        ",\"state\":\"%s\",\"reads\":%s,\"writes\":%s,\"shards\":%u,\"seconds\":%llu,\"why\":",
		        health_node_state(node), reads ? "true" : "false", writes ? "true" : "false",
		        (unsigned)node->shards, (unsigned long long)(node->since / WW_SECOND)) ||
		    list_string(&health->more, node->why) || buffer_format(&health->more, "}");
	if (writes)
		return;
	snprintf(text, sizeof text, "node %s %s: %u shards cannot be %s%s%s", node->address,
	    node->state == WW_REDIS_NODE_LOST ? "cannot be reached" : "is set aside", (unsigned)node->shards,
	    reads ? "written" : "read or written", *node->why ? ": " : "", node->why);
	health_reason(health, text);
}

/* All servers share the nodes. While one of them serves, no other server would do better. */
static void add_nodes(struct health *health, struct server *server)
{
	struct ww_jobs_redis_node *nodes;
	unsigned stops = STATE_STOPS_READING | STATE_STOPS_WRITING;
	size_t count;

	health->bad |= health_nodes(server, &nodes, &count);
	for (size_t i = 0; i < count; i++) {
		int writes = nodes[i].state == WW_REDIS_NODE_SERVES;
		int reads = writes || refuses_only_writes(&nodes[i]);

		if (reads)
			stops &= ~(unsigned)STATE_STOPS_READING;
		if (writes)
			stops &= ~(unsigned)STATE_STOPS_WRITING;
		add_node(health, &nodes[i], i == 0, reads, writes);
	}
	if (count > 0)
		health->stops |= stops;
	free(nodes);
}
#else
static void add_nodes(struct health *health, struct server *server)
{
	(void)health;
	(void)server;
}
#endif

/*
 * A node that is set aside is tried again by the next call, but a load balancer sends no calls to a server that is not
 * ready. So a request for its health makes the server call its store, for the next answer.
 */
static void probe_run(struct task *task)
{
	struct ww_jobs_stats stats;

	(void)ww_jobs_stats(task->server->jobs, &stats);
}

static void probe_done(struct task *task)
{
	task->server->http->is_probing = 0;
	free(task);
}

static void health_probe(struct server *server)
{
	struct task *task = server->is_shared && !server->http->is_probing ? calloc(1, sizeof *task) : NULL;

	if (!task)
		return;
	server->http->is_probing = 1;
	task->run = probe_run;
	task->done = probe_done;
	task_start(server, task);
}

void health_fill(void *context, struct health *health)
{
	struct server *server = context;

	health_probe(server);
	/* This makes sure that its state has begun. */
	(void)store_fault(server, NULL);
	health_states(health);
	if (health->is_json)
		health->bad |= buffer_format(&health->more, ",\"nodes\":[");
	add_nodes(health, server);
	if (health->is_json)
		health->bad |= buffer_format(&health->more, "]");
}
