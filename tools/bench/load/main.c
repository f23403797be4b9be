/*
 * Loads a server that speaks beanstalkd's protocol, whichever it is, and measures it: what scripts/bench-jobs runs.
 *
 *     load ADDRESS put N CONNECTIONS PIPELINE BYTES SPREAD    put N jobs, due in 0 to SPREAD seconds
 *     load ADDRESS cycle N CONNECTIONS                        put, reserve and delete N jobs
 *     load ADDRESS first                                      wait until the server answers, and for one job
 *     load ADDRESS due N CONNECTIONS SECONDS                  N jobs due in that many seconds, all in one; reserve and delete them,
 *                                                             while another connection asks for stats every 10 ms
 *
 * Writes one line of JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "tools/bench/load/connection.h"
#include "tools/common/random.h"

enum { CONNECTIONS_MAX = 1000, LATENCIES_MAX = 4000000 };

struct load {
	const char *address;
	unsigned connections;
	unsigned pipeline;
	size_t bytes;
	uint64_t spread;
	uint64_t count;
	uint64_t begun;
	uint64_t done;
	uint64_t began_at;
	uint64_t due_at;
	uint64_t early;
	uint64_t wrong;
	uint64_t latest_ns;
	char *body;
	void (*start)(struct load *load, struct connection *connection);
	connection_fn *answer;
	struct connection connection[CONNECTIONS_MAX];
	uint64_t random;
	size_t latencies;
	uint64_t latency[LATENCIES_MAX];
};

static struct load load;

/* ---- Counting */

static void ended(struct connection *connection)
{
	unsigned ring = sizeof connection->waiting_since / sizeof *connection->waiting_since;
	uint64_t since = connection->waiting_since[connection->first_waiting];

	connection->first_waiting = (connection->first_waiting + 1) % ring;
	connection->waiting--;
	if (load.latencies < LATENCIES_MAX)
		load.latency[load.latencies++] = load_now() - since;
}

static int by_size(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

static double at_part(double part)
{
	return load.latencies ? (double)load.latency[(size_t)((double)(load.latencies - 1) * part)] / 1e6 : 0;
}

static void report(const char *what)
{
	double seconds = (double)(load_now() - load.began_at) / 1e9;

	qsort(load.latency, load.latencies, sizeof *load.latency, by_size);
	printf(
	    "{\"what\":\"%s\",\"jobs\":%" PRIu64
	    ",\"seconds\":%.3f,\"per_second\":%.0f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,\"early\":%" PRIu64
	    ",\"wrong\":%" PRIu64 "}\n",
	    what, load.done, seconds, (double)load.done / seconds, at_part(0.5), at_part(0.99), at_part(1), load.early,
	    load.wrong);
}

static void expect(const char *line, const char *beginning)
{
	if (strncmp(line, beginning, strlen(beginning)) == 0)
		return;
	if (!load.wrong++)
		(void)fprintf(stderr, "load: expected %s, got %s\n", beginning, line);
}

/* ---- The loop */

static void watch(int epoll, struct connection *connection, int write)
{
	struct epoll_event event = {.events = EPOLLIN | (write ? (unsigned)EPOLLOUT : 0), .data.ptr = connection};

	if (epoll_ctl(epoll, EPOLL_CTL_MOD, connection->fd, &event))
		(void)epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event);
}

static void run(void)
{
	struct epoll_event events[256];
	int epoll = epoll_create1(0);

	for (unsigned i = 0; i < load.connections; i++) {
		connection_open(&load.connection[i], i, load.address);
		watch(epoll, &load.connection[i], 0);
	}
	load.began_at = load_now();
	for (unsigned i = 0; i < load.connections; i++) {
		load.start(&load, &load.connection[i]);
		watch(epoll, &load.connection[i], connection_flush(&load.connection[i]));
	}
	while (load.done < load.count && !load.wrong) {
		int count = epoll_wait(epoll, events, 256, 1000);
		for (int i = 0; i < count; i++) {
			struct connection *connection = events[i].data.ptr;
			int left = connection->sent < connection->out_size;
			if (connection_read(connection, load.answer, &load)) {
				(void)fprintf(stderr, "load: %s: the server has closed the connection\n", load.address);
				exit(1);
			}
			int more = connection_flush(connection);
			if (more || left)
				watch(epoll, connection, more);
		}
	}
	close(epoll);
}

/* ---- put */

static void put_one(struct connection *connection)
{
	if (load.begun == load.count)
		return;
	load.begun++;
	connection_send(connection, "put 1024 %" PRIu64 " 60 %zu\r\n%s\r\n",
	    load.spread ? random_below(&load.random, load.spread) : 0, load.bytes, load.body);
}

static void put_start(struct load *of, struct connection *connection)
{
	for (unsigned i = 0; i < of->pipeline; i++)
		put_one(connection);
}

static void put_answer(struct connection *connection, const char *line, const char *body, void *context)
{
	(void)body;
	(void)context;
	expect(line, "INSERTED ");
	ended(connection);
	load.done++;
	put_one(connection);
}

/* ---- cycle */

static void cycle_start(struct load *of, struct connection *connection)
{
	(void)of;
	connection->phase = 0;
	put_one(connection);
}

static void cycle_answer(struct connection *connection, const char *line, const char *body, void *context)
{
	static const char *const expected[] = {"INSERTED ", "RESERVED ", "DELETED"};

	(void)body;
	(void)context;
	expect(line, expected[connection->phase]);
	ended(connection);
	if (connection->phase == 0) {
		connection_send(connection, "reserve\r\n");
	} else if (connection->phase == 1) {
		connection_send(connection, "delete %" PRIu64 "\r\n", (uint64_t)strtoull(line + 9, NULL, 10));
	} else {
		load.done++;
		put_one(connection);
	}
	connection->phase = (connection->phase + 1) % 3;
}

/* ---- due */

static void due_start(struct load *of, struct connection *connection)
{
	(void)of;
	connection->phase = 1;
	connection_send(connection, "reserve\r\n");
}

static void due_answer(struct connection *connection, const char *line, const char *body, void *context)
{
	uint64_t now = load_now();

	(void)context;
	ended(connection);
	load.latencies--; /* waiting for a job is no delay of the server's */
	if (connection->phase == 1) {
		uint64_t due = strtoull(body, NULL, 10);
		expect(line, "RESERVED ");
		load.early += now < due;
		if (now > due && now - due > load.latest_ns)
			load.latest_ns = now - due;
		connection_send(connection, "delete %" PRIu64 "\r\n", (uint64_t)strtoull(line + 9, NULL, 10));
	} else {
		expect(line, "DELETED");
		load.done++;
		connection_send(connection, "reserve\r\n");
	}
	connection->phase = !connection->phase;
}

/* Put jobs that are due in the same second, each with its due time as its body. */
static void put_due(uint64_t seconds)
{
	struct connection *connection = &load.connection[0];
	uint64_t end = load_now() + seconds * UINT64_C(1000000000);
	uint64_t begun = 0;

	connection_open(connection, 0, load.address);
	load.answer = put_answer;
	load.begun = load.count; /* put_answer puts no more */
	while (load.done < load.count && !load.wrong) {
		while (begun < load.count && connection->waiting < 1000) {
			char body[64];
			uint64_t now = load_now();
			uint64_t delay = end > now ? (end - now) / UINT64_C(1000000000) : 0;
			int size = snprintf(body, sizeof body, "%" PRIu64, now + delay * UINT64_C(1000000000));
			connection_send(connection, "put 1024 %" PRIu64 " 120 %d\r\n%s\r\n", delay, size, body);
			begun++;
		}
		(void)connection_flush(connection);
		if (connection_read(connection, put_answer, &load))
			exit(1);
	}
	close(connection->fd);
	load.done = load.latencies = 0;
	if (load_now() > end - UINT64_C(1000000000))
		(void)fprintf(stderr, "load: putting took longer than the delay: give more seconds\n");
}

static void probe_answer(struct connection *connection, const char *line, const char *body, void *context)
{
	(void)body;
	(void)context;
	expect(line, "OK ");
	ended(connection);
}

/* A process that asks for stats every 10 ms until it is ended, and then says how long answers took. */
static void probe(uint64_t seconds)
{
	struct connection *connection = &load.connection[0];
	uint64_t until = load_now() + seconds * UINT64_C(1000000000);

	connection_open(connection, 0, load.address);
	load.began_at = load_now();
	while (load_now() < until) {
		struct timespec pause = {0, 10000000};
		connection_send(connection, "stats-tube default\r\n");
		(void)connection_flush(connection);
		while (connection->waiting)
			if (connection_read(connection, probe_answer, &load))
				exit(1);
		load.done++;
		(void)nanosleep(&pause, NULL);
	}
	report("probe");
}

/* ---- first */

static void first(void)
{
	struct connection *connection = &load.connection[0];

	load.count = 1;
	load.connections = 1;
	load.start = due_start;
	load.answer = cycle_answer;
	connection->phase = 1;
	run();
	report("first");
}

static uint64_t number(char **arguments, int i)
{
	return strtoull(arguments[i], NULL, 10);
}

int main(int count, char **arguments)
{
	if (count < 3)
		return 2;
	const char *what = arguments[2];
	load.address = arguments[1];
	load.random = 1;
	load.pipeline = 1;
	load.bytes = 32;
	if (count > 3)
		load.count = number(arguments, 3);
	if (count > 4)
		load.connections = (unsigned)number(arguments, 4);
	if (strcmp(what, "put") == 0 && count > 7) {
		load.pipeline = (unsigned)number(arguments, 5);
		load.bytes = (size_t)number(arguments, 6);
		load.spread = number(arguments, 7);
	}
	load.body = malloc(load.bytes + 1);
	if (!load.body || load.connections > CONNECTIONS_MAX)
		return 2;
	memset(load.body, 'b', load.bytes);
	load.body[load.bytes] = 0;
	if (strcmp(what, "first") == 0) {
		first();
		return load.wrong != 0;
	}
	if (strcmp(what, "probe") == 0) {
		probe(load.count);
		return load.wrong != 0;
	}
	if (strcmp(what, "put-due") == 0 && count > 4) {
		load.connections = 1;
		put_due(number(arguments, 4));
		return load.wrong != 0;
	}
	load.start = strcmp(what, "put") == 0 ? put_start : strcmp(what, "cycle") == 0 ? cycle_start : due_start;
	load.answer = strcmp(what, "put") == 0 ? put_answer : strcmp(what, "cycle") == 0 ? cycle_answer : due_answer;
	run();
	report(what);
	if (strcmp(what, "due") == 0)
		printf("{\"what\":\"latest\",\"ms\":%.1f}\n", (double)load.latest_ns / 1e6);
	return load.wrong != 0 || load.early != 0;
}
