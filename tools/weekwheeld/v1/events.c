/* Keeps the last events and hands them to streams: see events.h. */
#include "tools/weekwheeld/v1/events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tools/common/number.h"
#include "tools/service/http/reply.h"
#include "tools/service/state/handles.h"
#include "tools/weekwheeld/v1/v1.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)

enum { LEASES = 10000, FILL = 16384 };

struct kept_event {
	size_t size;
	char tube[WW_TUBE_MAX + 1]; /* "": unknown */
	char text[];
};

/* Of a shared store: an end names a job by its id alone, so what its start said is kept for it. */
struct known {
	UT_hash_handle hh;
	uint64_t id;
	size_t key_length;
	char tube[WW_TUBE_MAX + 1];
	unsigned char key[WW_JOB_KEY_MAX];
};

struct events_feed {
	struct server *server;
	pthread_mutex_t lock; /* of what follows, up to is_open */
	struct kept_event *ring[EVENTS_KEPT];
	uint64_t first; /* number of the first that is kept */
	uint64_t last;  /* of the last event */
	size_t bytes;
	struct known *known; /* hashed by id, in the order in which they came */
	int is_open;         /* the loop takes messages */
	uv_async_t async;
	uv_timer_t gather;
	uv_timer_t beat;
	LIST_HEAD(, events_stream) streams;
	unsigned count; /* of them */
	int is_listening;
	uint64_t overtaken;
};

/* ---- The ring. The lock is held. */

static void drop_first(struct events_feed *feed)
{
	struct kept_event *kept = feed->ring[feed->first++ % EVENTS_KEPT];

	feed->bytes -= kept->size;
	free(kept);
}

static void keep(struct events_feed *feed, struct kept_event *kept)
{
	if (feed->last + 1 - feed->first == EVENTS_KEPT)
		drop_first(feed);
	feed->ring[++feed->last % EVENTS_KEPT] = kept;
	feed->bytes += kept->size;
	while (feed->bytes > EVENTS_BYTES && feed->first < feed->last)
		drop_first(feed);
}

/* It is not kept, and a reader that asks for the next number learns that it has missed some. */
static void skip(struct events_feed *feed)
{
	while (feed->first <= feed->last)
		drop_first(feed);
	feed->first = ++feed->last + 1;
}

/* ---- Hearing. Any thread. */

static int add_event(struct buffer *out, const struct ww_job_event *event, uint64_t now)
{
	int bad =
	    buffer_format(out, "event: %s\ndata: {", job_events[event->kind]) || field_write_time(out, "time", now, 0);

	if (*event->tube)
		bad |= buffer_format(out, ",") || field_write_bytes(out, "tube", event->tube, strlen(event->tube));
	if (event->id)
		bad |= buffer_format(out, ",\"id\":\"%" PRIu64 "\"", event->id);
	if (event->key_length)
		bad |= buffer_format(out, ",") || field_write_bytes(out, "key", event->key, event->key_length);
	if (event->version)
		bad |= buffer_format(out, ",\"version\":%" PRIu64, event->version);
	if (event->left != WW_EVENT_UNKNOWN)
		bad |= buffer_format(out, ",") || field_write_seconds(out, "left", event->left);
	if (event->attempt)
		bad |= buffer_format(out, ",\"attempt\":%" PRIu32, event->attempt);
	if (event->error)
		bad |= buffer_format(out, ",") || field_write_bytes(out, "error", event->error, strlen(event->error));
	return bad | buffer_format(out, "}\n\n");
}

/* A schedule is a job whose key is its tube and its name. */
static int add_schedule(struct buffer *out, const struct ww_job_event *event, const char *tube, uint64_t now)
{
	size_t length = strlen(tube) + 1;

	return buffer_format(out, "event: schedule\ndata: {") || field_write_time(out, "time", now, 0) ||
	       buffer_format(out, ",") || field_write_bytes(out, "tube", tube, length - 1) || buffer_format(out, ",") ||
	       field_write_bytes(out, "name", (const char *)event->key + length, event->key_length - length) ||
	       (event->version && buffer_format(out, ",\"version\":%" PRIu64, event->version)) ||
	       buffer_format(out, ",\"removed\":%s}\n\n", event->kind == WW_EVENT_CANCELLED ? "true" : "false");
}

/* Its tube is that of its jobs. Returns NULL for events that are not shown. */
static const char *schedule_tube(const struct ww_job_event *event, char tube[WW_TUBE_MAX + 1])
{
	const char *key = event->key;
	size_t length = strnlen(key, event->key_length);

	if ((event->kind != WW_EVENT_PUT && event->kind != WW_EVENT_CANCELLED) || length == event->key_length ||
	    length > WW_TUBE_MAX)
		return NULL;
	memcpy(tube, key, length + 1);
	return tube;
}

static void publish(struct events_feed *feed, const struct ww_job_event *event)
{
	int is_hidden = store_hides(event->tube);
	char of_schedule[WW_TUBE_MAX + 1];
	const char *tube = is_hidden ? schedule_tube(event, of_schedule) : event->tube;
	struct buffer made = {0};
	struct kept_event *kept;
	uint64_t now = 0;

	if (!tube)
		return;
	(void)ww_driver_now(feed->server->wall, &now);
	if (is_hidden ? add_schedule(&made, event, tube, now) : add_event(&made, event, now))
		made.size = 0;
	kept = made.size ? malloc(sizeof *kept + made.size) : NULL;
	if (kept) {
		kept->size = made.size;
		memcpy(kept->tube, tube, strlen(tube) + 1);
		memcpy(kept->text, made.data, made.size);
	}
	buffer_free(&made);
	pthread_mutex_lock(&feed->lock);
	if (kept)
		keep(feed, kept);
	else
		skip(feed);
	if (feed->is_open)
		uv_async_send(&feed->async);
	pthread_mutex_unlock(&feed->lock);
}

/* ---- Leases of a shared store */

static void forget(struct events_feed *feed, struct known *known)
{
	HASH_DEL(feed->known, known);
	free(known);
}

/* The lock is held. */
static void learn(struct events_feed *feed, const struct ww_job_event *event)
{
	struct known *known;

	HASH_FIND(hh, feed->known, &event->id, sizeof event->id, known);
	if (known)
		forget(feed, known);
	if (HASH_COUNT(feed->known) == LEASES)
		forget(feed, feed->known);
	known = calloc(1, sizeof *known);
	if (!known)
		return;
	known->id = event->id;
	known->key_length = event->key_length;
	memcpy(known->tube, event->tube, strlen(event->tube) + 1);
	if (event->key_length)
		memcpy(known->key, event->key, event->key_length);
	HASH_ADD(hh, feed->known, id, sizeof known->id, known);
	if (!known->hh.tbl)
		free(known);
}

/* Fill in what is known of a lease that ends. */
static void recall(struct events_feed *feed, struct ww_job_event *event, struct known *copy)
{
	struct known *known;

	pthread_mutex_lock(&feed->lock);
	HASH_FIND(hh, feed->known, &event->id, sizeof event->id, known);
	if (known) {
		*copy = *known;
		event->tube = copy->tube;
		event->key = copy->key;
		event->key_length = copy->key_length;
		forget(feed, known);
	}
	pthread_mutex_unlock(&feed->lock);
}

static void heard(const struct ww_job_event *event, void *context)
{
	struct events_feed *feed = context;
	struct ww_job_event known_event = *event;
	struct known copy;

	if (feed->server->is_shared && event->kind == WW_EVENT_STARTED) {
		pthread_mutex_lock(&feed->lock);
		learn(feed, event);
		pthread_mutex_unlock(&feed->lock);
	} else if (!*event->tube && event->id) {
		recall(feed, &known_event, &copy);
	}
	publish(feed, &known_event);
}

void events_ready(struct server *server, const char *tube)
{
	const struct ww_job_event event = {.kind = WW_EVENT_DUE, .tube = tube, .left = WW_EVENT_UNKNOWN};

	if (server->v1->feed && __atomic_load_n(&server->v1->feed->is_listening, __ATOMIC_RELAXED) &&
	    !store_hides(tube))
		publish(server->v1->feed, &event);
}

static void listen_on(struct events_feed *feed, int is_listening)
{
	if (feed->is_listening == is_listening)
		return;
	__atomic_store_n(&feed->is_listening, is_listening, __ATOMIC_RELAXED);
	(void)ww_jobs_listen(feed->server->jobs, is_listening ? heard : NULL, feed);
	if (is_listening)
		return;
	pthread_mutex_lock(&feed->lock);
	skip(feed);
	while (feed->known)
		forget(feed, feed->known);
	pthread_mutex_unlock(&feed->lock);
}

/* ---- Streams. The loop. */

static int may_see(const struct events_stream *stream, const char *tube)
{
	for (size_t i = 0; i < stream->tube_count; i++)
		if (strcmp(stream->tubes[i], tube) == 0)
			return 1;
	if (stream->tube_count > 0)
		return 0;
	return !stream->who || token_may(stream->who, RIGHT_READ, *tube ? tube : NULL);
}

/* Let it say more. Returns -1 if the ring has overtaken it. */
static int fill(struct events_feed *feed, struct events_stream *stream)
{
	int result = 0;

	pthread_mutex_lock(&feed->lock);
	while (stream->number <= feed->last && stream->out.size < FILL && result == 0) {
		const struct kept_event *kept = feed->ring[stream->number % EVENTS_KEPT];

		if (stream->number < feed->first)
			result = -1;
		else if (may_see(stream, kept->tube))
			result =
			    buffer_format(&stream->out, "id: %s-%" PRIu64 "\n", feed->server->id, stream->number) ||
			            buffer_append(&stream->out, kept->text, kept->size)
			        ? -1
			        : 0;
		stream->number++;
	}
	pthread_mutex_unlock(&feed->lock);
	return result;
}

static int is_stale(const struct server *server, const struct events_stream *stream)
{
	return server->is_stopping || stream->is_gone || (stream->who && stream->tokens != server->access.tokens);
}

long events_take(struct server *server, struct events_stream *stream, char *to, size_t room)
{
	struct events_feed *feed = server->v1->feed;
	uint64_t now = uv_now(&server->loop);
	size_t size;

	if (is_stale(server, stream))
		return -1;
	if (stream->sent == stream->out.size) {
		buffer_drop(&stream->out, stream->out.size);
		stream->sent = 0;
		if (fill(feed, stream) != 0) {
			feed->overtaken++;
			state_seen("events",
			    "readers of /v1/events are too slow, and are ended: they come back, and begin anew");
			return -1;
		}
	}
	if (stream->out.size == 0 && now - stream->said >= EVENTS_BEAT_MS)
		(void)buffer_append(&stream->out, ":\n\n", 3);
	size = stream->out.size - stream->sent;
	size = size < room ? size : room;
	if (size == 0) {
		stream->is_asleep = 1;
		return 0;
	}
	memcpy(to, stream->out.data + stream->sent, size);
	stream->sent += size;
	stream->said = now;
	web_note(server->web, stream->visit->client);
	return (long)size;
}

static void wake(struct events_feed *feed, struct events_stream *stream)
{
	if (!stream->is_asleep)
		return;
	stream->is_asleep = 0;
	web_resume(feed->server->web, stream->visit);
}

static void wake_all(struct events_feed *feed)
{
	struct events_stream *stream;

	LIST_FOREACH(stream, &feed->streams, next)
	wake(feed, stream);
}

static void gathered(uv_timer_t *timer)
{
	wake_all(timer->data);
}

static void came(uv_async_t *async)
{
	struct events_feed *feed = async->data;

	if (!uv_is_active((uv_handle_t *)&feed->gather) && !uv_is_closing((uv_handle_t *)&feed->gather))
		uv_timer_start(&feed->gather, gathered, EVENTS_GATHER_MS, 0);
}

/* Without this, a client that has gone while the stream sleeps would be noticed only at the next event. */
static void look_for(struct events_feed *feed, struct events_stream *stream)
{
	char byte;

	if (recv(reply_descriptor(stream->visit->client), &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
		return;
	stream->is_gone = 1;
	wake(feed, stream);
}

static void beat(uv_timer_t *timer)
{
	struct events_feed *feed = timer->data;
	uint64_t now = uv_now(&feed->server->loop);
	struct events_stream *stream;

	if (feed->count == 0) {
		uv_timer_stop(timer);
		listen_on(feed, 0);
		return;
	}
	LIST_FOREACH(stream, &feed->streams, next)
	{
		look_for(feed, stream);
		if (now - stream->said >= EVENTS_BEAT_MS)
			wake(feed, stream);
	}
}

/* Where the id of an event says: after that. Returns 1 if there is something between that is not kept. */
static int find_place(struct events_feed *feed, struct events_stream *stream, const char *last)
{
	size_t length = strlen(feed->server->id);
	uint64_t number = 0;
	int is_lost = 0;

	pthread_mutex_lock(&feed->lock);
	stream->number = feed->last + 1;
	if (last) {
		is_lost = strncmp(last, feed->server->id, length) != 0 || last[length] != '-' ||
		          number_whole(last + length + 1, strlen(last + length + 1), 0, feed->last, &number) != 0 ||
		          number + 1 < feed->first;
		if (!is_lost)
			stream->number = number + 1;
	}
	pthread_mutex_unlock(&feed->lock);
	return is_lost;
}

int events_join(struct server *server, struct events_stream *stream, const char *last)
{
	struct events_feed *feed = server->v1->feed;
	struct events_stream *other;
	int is_lost;

	if (feed->count == EVENTS_STREAMS) {
		LIST_FOREACH(other, &feed->streams, next)
		look_for(feed, other);
		return -1;
	}
	listen_on(feed, 1);
	is_lost = find_place(feed, stream, last);
	if (buffer_format(&stream->out, "event: begin\nid: %s-%" PRIu64 "\ndata: {\"lost\":%s,\"all\":%s}\n\n",
	        server->id, stream->number - 1, is_lost ? "true" : "false", server->is_shared ? "false" : "true") != 0)
		return -1;
	stream->said = uv_now(&server->loop);
	LIST_INSERT_HEAD(&feed->streams, stream, next);
	if (feed->count++ == 0)
		uv_timer_start(&feed->beat, beat, EVENTS_BEAT_MS / 2, EVENTS_BEAT_MS / 2);
	return 0;
}

void events_leave(struct server *server, struct events_stream *stream)
{
	struct events_feed *feed = server->v1->feed;

	LIST_REMOVE(stream, next);
	buffer_free(&stream->out);
	if (--feed->count == 0 && !uv_is_closing((uv_handle_t *)&feed->beat))
		uv_timer_start(&feed->beat, beat, EVENTS_LINGER_MS, 0);
}

void events_reload(struct server *server)
{
	if (server->v1->feed)
		wake_all(server->v1->feed);
}

/* ---- Beginning and end */

int events_start(struct server *server)
{
	struct events_feed *feed = calloc(1, sizeof *feed);

	if (!feed || pthread_mutex_init(&feed->lock, NULL) != 0) {
		free(feed);
		return message_error("no memory for events");
	}
	feed->server = server;
	feed->first = 1;
	server->v1->feed = feed;
	if (uv_async_init(&server->loop, &feed->async, came) != 0)
		return handles_not_made();
	uv_timer_init(&server->loop, &feed->gather);
	uv_timer_init(&server->loop, &feed->beat);
	feed->async.data = feed->gather.data = feed->beat.data = feed;
	feed->is_open = 1;
	return 0;
}

void events_stop(struct server *server)
{
	struct events_feed *feed = server->v1->feed;

	if (!feed)
		return;
	listen_on(feed, 0);
	pthread_mutex_lock(&feed->lock);
	feed->is_open = 0;
	pthread_mutex_unlock(&feed->lock);
	wake_all(feed);
}

void events_free(struct server *server)
{
	struct events_feed *feed = server->v1->feed;

	if (!feed)
		return;
	while (feed->first <= feed->last)
		drop_first(feed);
	while (feed->known)
		forget(feed, feed->known);
	pthread_mutex_destroy(&feed->lock);
	free(feed);
	server->v1->feed = NULL;
}

int events_numbers(struct server *server, struct buffer *out, number_fn *add)
{
	const struct events_feed *feed = server->v1->feed;

	return add(out, "events-streams", 0, "Clients that read /v1/events.", feed->count) ||
	       add(out, "events-overtaken", 1, "Streams of events ended because their readers were too slow.",
	           feed->overtaken);
}
