/*
 * Keeps the server within its bounds of memory. All that clients send and leave unread together has a bound. A client
 * may leave unread at most an eighth of the remaining room; a newcomer always finds some. If the bound is exceeded
 * all the same, the client with the most loses its body or its connection. At the bound of all memory, new jobs and
 * tubes are refused, so that existing jobs can still be done.
 */
#include <stdlib.h>

#include "tools/common/tls/tls.h"
#include "tools/weekwheeld/engine/server.h"

enum {
	ASK_MS = 100,       /* how often the store is asked what it takes */
	WORST_LEAST = 4096, /* a client with less is not at fault */
	PARTS = 8,          /* a client may leave this part of the room unread, or watch tubes for it */
	WATCHES_FREE = 8,   /* tubes that a client may watch in any case: it may be there to make room */
	ENDS_MOST = 16,     /* clients that lose something at a time */
	ANSWER = 6 << 20    /* a list: it reads 4 MiB at most (ww_jobs_list), which base64 makes a third longer */
};

static uint64_t machine_memory(void)
{
	uint64_t most = uv_get_total_memory();
	uint64_t constrained = uv_get_constrained_memory();

	return constrained && constrained < most ? constrained : most;
}

void bounds_start(struct server *server)
{
	const struct settings *settings = server->settings;
	struct bounds *bounds = &server->bounds;

	bounds->memory_most = settings->max_memory ? settings->max_memory : machine_memory() / 4 * 3;
	bounds->buffers_most = settings->max_buffers;
	if (bounds->buffers_most > bounds->memory_most / 2)
		bounds->buffers_most = bounds->memory_most / 2;
	bounds->before = buffer_all();
	crowd_begin(&bounds->crowd, "max-connections-per-address", settings->max_per_address);
}

/* What buffers take. */
static uint64_t buffers_now(const struct server *server)
{
	uint64_t all = buffer_all();

	return all > server->bounds.before ? all - server->bounds.before : 0;
}

static uint64_t memory_now(const struct server *server)
{
	uint64_t bytes = buffers_now(server) + tls_memory() + server->bounds.store_bytes + server->bounds.put_bytes +
	                 HASH_COUNT(server->tubes.all) * (uint64_t)(sizeof(struct server_tube) + BOUNDS_LINE);

	for (const struct face *const *face = server->faces; *face; face++)
		bytes += (*face)->takes ? (*face)->takes(server) : 0;
	return bytes;
}

size_t bounds_unread(const struct server *server)
{
	uint64_t now = buffers_now(server);
	/* What is kept is for one answer to each client that reads. */
	uint64_t most = server->bounds.buffers_most / PARTS * (PARTS - 1);
	uint64_t part = now < most ? (most - now) / PARTS : 0;

	return (size_t)(part < server->settings->max_output ? part : server->settings->max_output);
}

static int is_full(struct server *server, uint64_t more)
{
	struct bounds *bounds = &server->bounds;

	if (memory_now(server) + more <= bounds->memory_most)
		return 0;
	bounds->refused++;
	state_seen("memory",
	    "the server takes %llu MB of memory, as much as --max-memory allows: new jobs and tubes are "
	    "refused until jobs are done",
	    (unsigned long long)(bounds->memory_most >> 20));
	return 1;
}

int bounds_job(struct server *server, size_t size)
{
	if (is_full(server, size))
		return 0;
	/* The store updates what it takes only from time to time. */
	server->bounds.put_bytes += server->settings->is_memory ? size : 0;
	return 1;
}

int bounds_tube(struct server *server)
{
	struct bounds *bounds = &server->bounds;
	uint64_t most = server->settings->max_tubes;

	if (is_full(server, 0))
		return 0;
	if (HASH_COUNT(server->tubes.all) < most && bounds->store_tubes < most)
		return 1;
	bounds->refused++;
	state_seen("tubes", "there are %llu tubes, as many as --max-tubes allows: new ones are refused",
	    (unsigned long long)most);
	return 0;
}

/* ---- Quotas of jobs */

static void ask_store(struct server *server)
{
	struct bounds *bounds = &server->bounds;
	struct ww_jobs_stats stats;

	/* Another process has the memory of a shared store. */
	if (server->is_shared || ww_jobs_stats(server->jobs, &stats) != WW_OK)
		return;
	bounds->store_bytes = stats.bytes;
	bounds->store_tubes = stats.tubes;
	bounds->store_jobs = stats.accepted - stats.ended;
	bounds->put_bytes = 0;
	bounds->put_jobs = 0;
}

static int is_full_of_jobs(struct server *server, size_t before)
{
	struct bounds *bounds = &server->bounds;
	uint64_t most = server->settings->max_jobs;

	if (most == 0)
		return 0;
	if (bounds->store_jobs + bounds->put_jobs >= most) {
		ask_store(server);
		bounds->put_jobs = before;
	}
	if (bounds->store_jobs + bounds->put_jobs < most) {
		bounds->put_jobs++;
		return 0;
	}
	state_seen("jobs",
	    "there are %llu jobs, as many as --max-jobs allows: new ones are refused until jobs are done",
	    (unsigned long long)most);
	return 1;
}

static int is_full_tube(struct server *server, const char *tube, size_t in_tube)
{
	uint64_t most = server->settings->max_tube_jobs;
	struct ww_tube_stats stats;

	/* A tube that is not there yet has no jobs. */
	if (most > 0 && ww_jobs_tube(server->jobs, tube, &stats) != WW_OK)
		stats = (struct ww_tube_stats){.delayed = 0};
	if (most == 0 || stats.delayed + stats.ready + stats.reserved + stats.buried + in_tube < most)
		return 0;
	state_seen("tube-jobs",
	    "the tube %s has %llu jobs, as many as --max-tube-jobs allows: new ones are refused until jobs are done",
	    tube, (unsigned long long)most);
	return 1;
}

static int replaces(struct server *server, const struct ww_job_spec *spec)
{
	const struct ww_job_ref job = {.tube = spec->tube, .key = spec->key, .key_length = spec->key_length};
	struct ww_job_info info;

	return spec->key_length > 0 && ww_jobs_peek(server->jobs, &job, &info, NULL) == WW_OK;
}

int bounds_quota(struct server *server, const struct ww_job_spec *spec, size_t before, size_t in_tube)
{
	const struct settings *settings = server->settings;

	if (settings->max_jobs == 0 && settings->max_tube_jobs == 0)
		return 1;
	if (replaces(server, spec) || (!is_full_tube(server, spec->tube, in_tube) && !is_full_of_jobs(server, before)))
		return 1;
	server->bounds.over_quota++;
	return 0;
}

/* ---- What one client takes */

int bounds_watch(struct server *server, size_t count, size_t bytes)
{
	uint64_t now = memory_now(server);
	uint64_t most = server->bounds.memory_most;

	if (count < server->settings->max_watched &&
	    (count < WATCHES_FREE || (now < most && (count + 1) * (uint64_t)bytes <= (most - now) / PARTS)))
		return 1;
	server->bounds.refused++;
	return 0;
}

int bounds_call(struct server *server, size_t size)
{
	struct bounds *bounds = &server->bounds;

	if (bounds->call_bytes == 0 || bounds->call_bytes + size <= bounds->buffers_most / 2)
		return 1;
	bounds->refused++;
	state_seen("calls",
	    "jobs that wait for Redis take %llu MB, half of what --max-buffers allows: more are refused until it answers",
	    (unsigned long long)(bounds->call_bytes >> 20));
	return 0;
}

/* ---- At the bound */

/* The client that is spared, and what it takes. Its own turn comes at the end of the server's. */
struct spared {
	const void *client;
	size_t bytes;
};

/* Take away what the client with the most has. Returns 0 if none has much. */
static int end_worst(struct server *server, const struct spared *spared)
{
	struct face_client worst = {0, NULL};
	const struct face *of = NULL;

	for (const struct face *const *face = server->faces; *face; face++) {
		struct face_client one = (*face)->worst(server, spared->client);

		if (one.bytes > worst.bytes) {
			worst = one;
			of = *face;
		}
	}
	if (!of || worst.bytes < WORST_LEAST || spared->bytes > worst.bytes)
		return 0;
	server->bounds.ended++;
	state_seen("buffers",
	    "clients' commands and answers take %llu MB, as much as --max-buffers allows: the client with "
	    "the most, %zu bytes, loses them",
	    (unsigned long long)(server->bounds.buffers_most >> 20), worst.bytes);
	of->end(server, worst.client);
	return 1;
}

/* Whether buffers take more than `most`, without what will soon be free. */
static int is_beyond(const struct server *server, uint64_t most)
{
	uint64_t now = buffers_now(server);

	if (now <= most)
		return 0;
	for (const struct face *const *face = server->faces; *face; face++)
		most += (*face)->going ? (*face)->going(server) : 0;
	return now > most;
}

/* Returns whether any client has lost something. */
static int hold(struct server *server, const struct spared *spared, uint64_t most)
{
	int ends = 0;

	while (ends < ENDS_MOST && is_beyond(server, most) && end_worst(server, spared))
		ends++;
	/* Dropping a body makes room, but wakes no client. Clients that wait by HTTP continue in a turn. */
	if (ends > 0)
		loop_again(server);
	return ends > 0;
}

static const struct spared nobody = {NULL, 0};

int bounds_answer(struct server *server, unsigned begun)
{
	uint64_t most = server->bounds.buffers_most;
	/* As much as clients by the protocol leave for one answer (bounds_unread). */
	uint64_t part = most / PARTS < ANSWER ? most / PARTS : ANSWER;

	if (buffers_now(server) + (begun + UINT64_C(1)) * part <= most)
		return 1;
	return begun == 0 && hold(server, &nobody, most - part) && buffers_now(server) + part <= most;
}

void bounds_hold(struct server *server)
{
	struct bounds *bounds = &server->bounds;
	uint64_t now = uv_now(&server->loop);

	if (bounds->asked == 0 || now - bounds->asked >= ASK_MS) {
		bounds->asked = now + !now;
		ask_store(server);
	}
	(void)hold(server, &nobody, bounds->buffers_most);
}

void bounds_hold_input(struct server *server)
{
	(void)hold(server, &nobody, server->bounds.buffers_most);
}

void bounds_hold_but(struct server *server, const void *client, size_t bytes)
{
	const struct spared spared = {client, bytes};

	(void)hold(server, &spared, server->bounds.buffers_most);
}

int bounds_numbers(struct server *server, struct buffer *out, number_fn *add)
{
	const struct bounds *bounds = &server->bounds;

	return add(out, "memory-bytes", 0, "Memory of jobs and clients.", memory_now(server)) ||
	       add(out, "memory-bytes-max", 0, "The most that it may be.", bounds->memory_most) ||
	       add(out, "buffer-bytes", 0, "Memory of commands and answers of clients.", buffers_now(server)) ||
	       add(out, "buffer-bytes-max", 0, "The most that it may be.", bounds->buffers_most) ||
	       add(out, "bound-refusals", 1, "Commands refused at a bound of memory or tubes.", bounds->refused) ||
	       add(out, "quota-refusals", 1, "Jobs refused at --max-jobs or --max-tube-jobs.", bounds->over_quota) ||
	       add(out, "bound-clients-refused", 1, "Clients turned away at the bound of their address.",
	           bounds->crowd.turned_away) ||
	       add(out, "bound-clients-ended", 1, "Clients that lost a body or their connection at a bound.",
	           bounds->ended);
}
