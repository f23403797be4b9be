/*
 * Loads a server that speaks beanstalkd's protocol, whichever it is, and measures it: scripts/bench-jobs runs it.
 *
 *     bench-load ADDRESS put N CONNECTIONS PIPELINE BYTES SPREAD   put N jobs, due in 0 to SPREAD seconds
 *     bench-load ADDRESS put-keys N CONNECTIONS PIPELINE BYTES SPREAD   the same, each with a key of its own
 *     bench-load ADDRESS life N SECONDS STEP                       put N jobs due in 0 to SECONDS, advance the server's
 *                                                                  virtual clock by steps, reserve and delete them
 *     bench-load ADDRESS cycle N CONNECTIONS                       put, reserve and delete N jobs
 *     bench-load ADDRESS work N CONNECTIONS PIPELINE               reserve and delete N jobs, up to PIPELINE at a time
 *     bench-load ADDRESS first                                     reserve and delete one job
 *     bench-load ADDRESS put-due N SECONDS                         put N jobs that are all due in that many seconds
 *     bench-load ADDRESS due N CONNECTIONS                         reserve and delete those N jobs
 *     bench-load ADDRESS probe SECONDS                             ask for stats every 10 ms
 *     bench-load ADDRESS post N CONNECTIONS BYTES                  put N jobs over HTTP, one a request
 *     bench-load ADDRESS view SECONDS                              load the page and what it shows first, every 100 ms
 *
 * Writes a line of JSON. Over HTTP, the variable WEEKWHEEL_TOKEN has the token.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/random.h"
#include "lib/base/time.h"
#include "tools/bench/load/connection.h"
#include "tools/common/command.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/percentile.h"

enum { CONNECTIONS_MAX = 1000, LATENCIES_MAX = 4000000, WAITING_MAX = 1000, MILLION = 1000000 };

#define SECOND UINT64_C(1000000000)

static struct {
	const char *address;
	uint64_t connections, pipeline, bytes, spread;
	uint64_t count, begun, done; /* jobs */
	uint64_t began_at;
	uint64_t early, wrong, latest_ns;
	uint64_t million_at; /* when so many were done */
	int with_keys, is_empty;
	char *body;
	uint64_t random;
	struct load_connection connection[CONNECTIONS_MAX];
	size_t latencies;
	uint64_t latency[LATENCIES_MAX];
} load;

static uint64_t now_ns(void)
{
	return time_now(CLOCK_MONOTONIC);
}

/* ---- Counting */

static void count_latency(uint64_t took)
{
	if (load.latencies < LATENCIES_MAX)
		load.latency[load.latencies++] = took;
}

static void report(const char *what)
{
	double seconds = (double)(now_ns() - load.began_at) / 1e9;

	percentile_sort(load.latency, load.latencies);
	printf(
	    "{\"what\":\"%s\",\"jobs\":%" PRIu64
	    ",\"seconds\":%.3f,\"per_second\":%.0f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,\"early\":%" PRIu64
	    ",\"wrong\":%" PRIu64,
	    what, load.done, seconds, (double)load.done / seconds, percentile_ms(load.latency, load.latencies, 0.5),
	    percentile_ms(load.latency, load.latencies, 0.99), percentile_ms(load.latency, load.latencies, 1),
	    load.early, load.wrong);
	if (load.million_at)
		printf(",\"first_million_per_second\":%.0f", MILLION * 1e9 / (double)(load.million_at - load.began_at));
	puts("}");
}

static void expect(const char *line, const char *beginning)
{
	if (strncmp(line, beginning, strlen(beginning)) == 0)
		return;
	if (!load.wrong++)
		message_error("expected %s, got %s", beginning, line);
}

/* ---- The loop */

static void watch(int epoll, struct load_connection *connection, int write)
{
	struct epoll_event event = {.events = EPOLLIN | (write ? (unsigned)EPOLLOUT : 0), .data.ptr = connection};

	if (epoll_ctl(epoll, EPOLL_CTL_MOD, connection->fd, &event))
		(void)epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event);
}

static void run(void (*start)(struct load_connection *connection), connection_fn *answer)
{
	struct epoll_event events[256];
	int epoll = epoll_create1(0);

	if (load.connections > CONNECTIONS_MAX) {
		message_error("at most %d connections", CONNECTIONS_MAX);
		exit(STATUS_USAGE);
	}
	for (uint64_t i = 0; i < load.connections; i++) {
		connection_open(&load.connection[i], load.address);
		watch(epoll, &load.connection[i], 0);
	}
	load.began_at = now_ns();
	for (uint64_t i = 0; i < load.connections; i++) {
		start(&load.connection[i]);
		watch(epoll, &load.connection[i], connection_flush(&load.connection[i]));
	}
	while (load.done < load.count && !load.wrong) {
		int count = epoll_wait(epoll, events, 256, 1000);
		for (int i = 0; i < count; i++) {
			struct load_connection *connection = events[i].data.ptr;
			int left = connection->sent < connection->out_size;
			connection_read(connection, answer);
			int more = connection_flush(connection);
			if (more || left)
				watch(epoll, connection, more);
		}
	}
	close(epoll);
}

/* ---- put */

static void put_one(struct load_connection *connection)
{
	if (load.begun == load.count)
		return;
	uint64_t delay = load.spread ? random_below(&load.random, load.spread) : 0;
	char key[32] = "";

	if (load.with_keys)
		(void)snprintf(key, sizeof key, " key%" PRIu64, load.begun);
	load.begun++;
	connection_send(connection, "put%s 1024 %" PRIu64 " 60 %" PRIu64 "%s\r\n%s\r\n", load.with_keys ? "-key" : "",
	    delay, load.bytes, key, load.body);
}

static void put_start(struct load_connection *connection)
{
	for (uint64_t i = 0; i < load.pipeline; i++)
		put_one(connection);
}

static void put_answer(struct load_connection *connection, const char *line, const char *body, uint64_t took)
{
	(void)body;
	expect(line, "INSERTED ");
	count_latency(took);
	if (++load.done == MILLION)
		load.million_at = now_ns();
	put_one(connection);
}

/* ---- cycle */

static void delete_reserved(struct load_connection *connection, const char *line)
{
	connection_send(connection, "delete %" PRIu64 "\r\n", (uint64_t)strtoull(line + strlen("RESERVED "), NULL, 10));
}

static void cycle_answer(struct load_connection *connection, const char *line, const char *body, uint64_t took)
{
	static const char *const expected[] = {"INSERTED ", "RESERVED ", "DELETED"};

	(void)body;
	expect(line, expected[connection->phase]);
	count_latency(took);
	if (connection->phase == 0) {
		connection_send(connection, "reserve\r\n");
	} else if (connection->phase == 1) {
		delete_reserved(connection, line);
	} else {
		load.done++;
		put_one(connection);
	}
	connection->phase = (connection->phase + 1) % 3;
}

/* ---- due */

static void due_start(struct load_connection *connection)
{
	connection->phase = 1;
	connection_send(connection, "reserve\r\n");
}

/* Latencies are not counted: waiting for a job is no delay of the server's. */
static void due_answer(struct load_connection *connection, const char *line, const char *body, uint64_t took)
{
	uint64_t now = now_ns();

	(void)took;
	if (connection->phase == 1) {
		uint64_t due = strtoull(body, NULL, 10);
		expect(line, "RESERVED ");
		load.early += now < due;
		if (now > due && now - due > load.latest_ns)
			load.latest_ns = now - due;
		delete_reserved(connection, line);
	} else {
		expect(line, "DELETED");
		load.done++;
		connection_send(connection, "reserve\r\n");
	}
	connection->phase = !connection->phase;
}

/* ---- work */

/* The first command waits for a job; the others take those that are there as well. */
static void work_start(struct load_connection *connection)
{
	connection->phase = 0;
	for (uint64_t i = 0; i < load.pipeline; i++)
		connection_send(connection, "reserve-with-timeout %d\r\n", i == 0);
}

static void work_answer(struct load_connection *connection, const char *line, const char *body, uint64_t took)
{
	(void)body;
	(void)took;
	if (strcmp(line, "DELETED") == 0) {
		load.done++;
		return;
	}
	if (strcmp(line, "TIMED_OUT") != 0) {
		expect(line, "RESERVED ");
		delete_reserved(connection, line);
	}
	if ((uint64_t)++connection->phase == load.pipeline)
		work_start(connection);
}

/* Put jobs that are due in the same second, each with its due time as its body. */
static void put_due(uint64_t seconds)
{
	struct load_connection *connection = &load.connection[0];
	uint64_t end = now_ns() + seconds * SECOND;
	uint64_t begun = 0;

	connection_open(connection, load.address);
	load.begun = load.count; /* put_answer puts no more */
	while (load.done < load.count && !load.wrong) {
		for (; begun < load.count && connection->waiting < WAITING_MAX; begun++) {
			char body[64];
			uint64_t now = now_ns();
			uint64_t delay = end > now ? (end - now) / SECOND : 0;
			int size = snprintf(body, sizeof body, "%" PRIu64, now + delay * SECOND);
			connection_send(connection, "put 1024 %" PRIu64 " 120 %d\r\n%s\r\n", delay, size, body);
		}
		(void)connection_flush(connection);
		connection_read(connection, put_answer);
	}
	close(connection->fd);
	if (now_ns() > end - SECOND)
		message_error("putting took longer than the delay: give more seconds");
}

/* ---- life */

static void life_answer(struct load_connection *connection, const char *line, const char *body, uint64_t took)
{
	(void)body;
	(void)took;
	if (strncmp(line, "RESERVED ", 9) == 0)
		delete_reserved(connection, line);
	else if (strcmp(line, "DELETED") == 0)
		load.done++;
	else if (strcmp(line, "TIMED_OUT") == 0)
		load.is_empty = 1;
	else
		expect(line, "ADVANCED ");
}

/* Reserve and delete until nothing is ready. */
static void take_ready(struct load_connection *connection)
{
	for (load.is_empty = 0; !load.is_empty && !load.wrong;) {
		for (int i = 0; i < 50; i++)
			connection_send(connection, "reserve-with-timeout 0\r\n");
		do {
			(void)connection_flush(connection);
			connection_read(connection, life_answer);
		} while (connection->waiting);
	}
}

static void live(uint64_t seconds, uint64_t step)
{
	struct load_connection *connection = &load.connection[0];

	load.connections = 1;
	load.pipeline = WAITING_MAX;
	load.spread = seconds;
	run(put_start, put_answer);
	load.done = 0;
	/* What is loaded a little late comes with a later step. */
	for (uint64_t at = 0; load.done < load.count && at < 2 * seconds && !load.wrong; at += step) {
		connection_send(connection, "advance %" PRIu64 "\r\n", step);
		take_ready(connection);
	}
	if (load.done < load.count)
		load.wrong++;
}

/* ---- probe */

static void probe_answer(struct load_connection *connection, const char *line, const char *body, uint64_t took)
{
	(void)connection;
	(void)body;
	expect(line, "OK ");
	count_latency(took);
}

static void probe(uint64_t seconds)
{
	struct load_connection *connection = &load.connection[0];
	uint64_t until = now_ns() + seconds * SECOND;

	connection_open(connection, load.address);
	load.began_at = now_ns();
	while (now_ns() < until) {
		struct timespec pause = {0, 10000000};
		connection_send(connection, "stats-tube default\r\n");
		(void)connection_flush(connection);
		while (connection->waiting)
			connection_read(connection, probe_answer);
		load.done++;
		(void)nanosleep(&pause, NULL);
	}
}

/* ---- HTTP */

static void request(struct load_connection *connection, const char *method, const char *path, const char *json)
{
	const char *token = getenv("WEEKWHEEL_TOKEN");

	connection_send(connection,
	    "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
	    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
	    method, path, token ? token : "", strlen(json), json);
}

static void post_one(struct load_connection *connection)
{
	if (load.begun == load.count)
		return;
	load.begun++;
	request(connection, "POST", "/v1/jobs", load.body);
}

static void post_answer(struct load_connection *connection, const char *line, const char *body, uint64_t took)
{
	(void)body;
	expect(line, "HTTP/1.1 201");
	count_latency(took);
	load.done++;
	post_one(connection);
}

/* A request of JSON for a body of this many bytes. */
static void make_json(uint64_t bytes)
{
	static const char form[] = "{\"tube\":\"default\",\"body\":\"%s\"}";
	char *json = memory_zeroed(bytes + sizeof form, 1);

	(void)snprintf(json, bytes + sizeof form, form, load.body);
	load.body = json;
}

static void view_answer(struct load_connection *connection, const char *line, const char *body, uint64_t took)
{
	(void)connection;
	(void)body;
	(void)took;
	expect(line, "HTTP/1.1 200");
}

/* Its parts come one after the other, as over a browser's single connection. */
static void view(uint64_t seconds)
{
	static const char *const parts[] = {"/", "/page.css", "/common.js", "/page.js", "/schedules.js", "/live.js",
	    "/v1/stats", "/v1/tubes", "/v1/limits", "/v1/forecast?span=1&count=60", "/v1/forecast?span=60&count=60",
	    "/v1/forecast?span=3600&count=24", "/v1/forecast?span=86400&count=7", "/v1/forecast?span=60&count=10080",
	    "/v1/jobs?state=buried&limit=50", "/v1/schedules"};
	struct load_connection *connection = &load.connection[0];
	struct timespec pause = {0, 100000000};
	uint64_t until = now_ns() + seconds * SECOND;

	connection_open(connection, load.address);
	for (load.began_at = now_ns(); now_ns() < until && !load.wrong; load.done++) {
		uint64_t since = now_ns();
		for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
			request(connection, "GET", parts[i], "");
			(void)connection_flush(connection);
			while (connection->waiting)
				connection_read(connection, view_answer);
		}
		count_latency(now_ns() - since);
		(void)nanosleep(&pause, NULL);
	}
}

/* ---- The command line */

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		int numbers;
		void (*start)(struct load_connection *connection); /* NULL: no run of the loop */
		connection_fn *answer;
	} commands[] = {{"put", 5, put_start, put_answer}, {"put-keys", 5, put_start, put_answer},
	    {"life", 3, NULL, NULL}, {"cycle", 2, put_start, cycle_answer}, {"work", 3, work_start, work_answer},
	    {"first", 0, due_start, cycle_answer}, {"due", 2, due_start, due_answer}, {"put-due", 2, NULL, NULL},
	    {"probe", 1, NULL, NULL}, {"post", 3, post_one, post_answer}, {"view", 1, NULL, NULL}};
	uint64_t numbers[5] = {1, 1};
	const char *what = count > 2 ? arguments[2] : "";
	size_t i = 0;

	message_program = "bench-load";
	load.random = load.pipeline = 1;
	load.bytes = 32;
	while (i < sizeof commands / sizeof *commands && strcmp(what, commands[i].name) != 0)
		i++;
	if (i == sizeof commands / sizeof *commands || count != 3 + commands[i].numbers) {
		message_error("the top of tools/bench/load/main.c lists its commands");
		return STATUS_USAGE;
	}
	for (int k = 0; k < commands[i].numbers; k++)
		numbers[k] = strtoull(arguments[3 + k], NULL, 10);
	load.address = arguments[1];
	load.count = numbers[0];
	load.connections = numbers[1];
	if (strncmp(what, "put", 3) == 0 && commands[i].numbers == 5) {
		load.with_keys = strcmp(what, "put-keys") == 0;
		load.pipeline = numbers[2];
		load.bytes = numbers[3];
		load.spread = numbers[4];
	}
	if (strcmp(what, "post") == 0)
		load.bytes = numbers[2];
	if (strcmp(what, "work") == 0)
		load.pipeline = numbers[2];
	load.body = memory_zeroed(load.bytes + 1, 1);
	memset(load.body, 'b', load.bytes);
	if (strcmp(what, "post") == 0)
		make_json(load.bytes);
	if (strcmp(what, "put-due") == 0) {
		put_due(numbers[1]);
		return load.wrong ? STATUS_FAILED : STATUS_OK;
	}
	if (commands[i].start)
		run(commands[i].start, commands[i].answer);
	else if (strcmp(what, "life") == 0)
		live(numbers[1], numbers[2]);
	else if (strcmp(what, "view") == 0)
		view(numbers[0]);
	else
		probe(numbers[0]);
	report(what);
	if (strcmp(what, "due") == 0)
		printf("{\"what\":\"latest\",\"ms\":%.1f}\n", (double)load.latest_ns / 1e6);
	return load.wrong || load.early ? STATUS_FAILED : STATUS_OK;
}
