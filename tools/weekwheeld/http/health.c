/*
 * Tells whether the server is ready, and if not, why: from the states that have begun (state.h) and from what the last
 * calls found of each node of Redis. It asks nobody, so it answers at once whatever is away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/engine/server.h"
#include "tools/weekwheeld/http/http.h"
#include "tools/weekwheeld/verbs/list.h"
#include "weekwheel/jobs_redis.h"

struct health {
	unsigned stops;
	int bad; /* no memory for all of it */
	int is_json;
	int reason_count;
	int node_count;
	struct buffer reasons;
	struct buffer nodes;
};

static void add_reason(struct health *health, const char *text)
{
	if (health->is_json)
		health->bad |= buffer_format(&health->reasons, "%s", health->reason_count ? "," : "") ||
		               list_string(&health->reasons, text);
	else
		health->bad |= buffer_format(&health->reasons, "%s\n", text);
	health->reason_count++;
}

static void add_state(const struct told_state *state, void *context)
{
	struct health *health = context;

	if (!state->is_on)
		return;
	health->stops |= state->stops;
	add_reason(health, state->text);
}

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

static void add_node(struct health *health, const struct ww_jobs_redis_node *node, int reads, int writes)
{
	char text[sizeof node->address + sizeof node->why + 100];

	if (health->is_json)
		health->bad |=
		    buffer_format(&health->nodes, "%s{\"address\":", health->node_count ? "," : "") ||
		    list_string(&health->nodes, node->address) ||
		    buffer_format(&health->nodes,
		        ",\"state\":\"%s\",\"reads\":%s,\"writes\":%s,\"shards\":%u,\"seconds\":%llu,\"why\":",
		        health_node_state(node), reads ? "true" : "false", writes ? "true" : "false",
		        (unsigned)node->shards, (unsigned long long)(node->since / WW_SECOND)) ||
		    list_string(&health->nodes, node->why) || buffer_format(&health->nodes, "}");
	health->node_count++;
	if (writes)
		return;
	snprintf(text, sizeof text, "node %s %s: %u shards cannot be %s%s%s", node->address,
	    node->state == WW_REDIS_NODE_LOST ? "cannot be reached" : "is set aside", (unsigned)node->shards,
	    reads ? "written" : "read or written", *node->why ? ": " : "", node->why);
	add_reason(health, text);
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
		add_node(health, &nodes[i], reads, writes);
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

static int write_text(const struct health *health, struct buffer *out)
{
	static const char *const heads[] = {[0] = "ok\n",
	    [STATE_STOPS_READING] = "not ready: jobs cannot be read:\n",
	    [STATE_STOPS_WRITING] = "not ready: jobs cannot be written:\n",
	    [STATE_STOPS_READING | STATE_STOPS_WRITING] = "not ready: jobs can be neither read nor written:\n"};

	return buffer_format(out, "%s", heads[health->stops]) ||
	       (health->reasons.size && buffer_append(out, health->reasons.data, health->reasons.size));
}

static int write_json(const struct health *health, struct buffer *out)
{
	return buffer_format(out, "{\"ready\":%s,\"reads\":%s,\"writes\":%s,\"reasons\":[",
	           health->stops ? "false" : "true", health->stops & STATE_STOPS_READING ? "false" : "true",
	           health->stops & STATE_STOPS_WRITING ? "false" : "true") ||
	       buffer_append(out, health->reasons.data, health->reasons.size) || buffer_format(out, "],\"nodes\":[") ||
	       buffer_append(out, health->nodes.data, health->nodes.size) || buffer_format(out, "]}\n");
}

/*
 * A node that is set aside is asked again by the next call, but a load balancer sends no calls to a server that is not
 * ready. So whoever asks for its health lets it ask its store, for the next answer.
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

int health_write(struct server *server, int is_json, struct buffer *out)
{
	struct health health = {.is_json = is_json};
	int result;

	health_probe(server);
	/* This makes sure that its state has begun. */
	(void)store_fault(server, NULL);
	state_each(add_state, &health);
	add_nodes(&health, server);
	if (health.bad || (is_json ? write_json : write_text)(&health, out) != 0)
		result = WW_ENOMEM;
	else
		result = health.stops == 0;
	buffer_free(&health.reasons);
	buffer_free(&health.nodes);
	return result;
}
