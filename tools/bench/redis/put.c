/* Puts jobs from any number of threads, one by one or many by one call. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/random.h"
#include "lib/base/time.h"
#include "tools/bench/redis/redis.h"
#include "tools/common/memory.h"

enum { KEY_MAX = 64, BODY = 32 };

struct bench_put {
	struct ww_jobs *jobs;
	uint64_t count;
	uint64_t from; /* ms */
	uint64_t spread;
	unsigned threads;
	size_t batch;
	size_t key;
	pthread_barrier_t *start;
};

struct putter {
	const struct bench_put *put;
	pthread_t thread;
	unsigned index;
	uint64_t random;
	struct ww_job_spec *specs; /* of a batch */
	struct ww_job_put *puts;
	char (*keys)[KEY_MAX + 1];
};

static void prepare(struct putter *putter)
{
	static const char body[BODY] = "thirty-two bytes of a job's body";
	size_t batch = putter->put->batch;

	putter->random = putter->index + 1;
	putter->specs = memory_zeroed(batch, sizeof *putter->specs);
	putter->puts = memory_zeroed(batch, sizeof *putter->puts);
	putter->keys = memory_zeroed(batch, sizeof *putter->keys);
	for (size_t i = 0; i < batch; i++) {
		(void)ww_job_spec_default(&putter->specs[i]);
		putter->specs[i].body = body;
		putter->specs[i].body_length = sizeof body;
		putter->specs[i].key = putter->keys[i];
		putter->specs[i].key_length = putter->put->key;
		putter->puts[i].spec = &putter->specs[i];
	}
}

/* Make jobs differ in their keys and due times. */
static void vary(struct putter *putter, uint64_t from, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t number = (from + i) * putter->put->threads + putter->index;
		uint64_t due = putter->put->from;
		if (putter->put->spread)
			due += random_below(&putter->random, putter->put->spread);
		putter->specs[i].due = due * WW_MILLISECOND;
		if (putter->put->key)
			(void)snprintf(
			    putter->keys[i], sizeof putter->keys[i], "%0*" PRIu64, (int)putter->put->key, number);
	}
}

static void put_some(struct putter *putter, uint64_t from, size_t count)
{
	vary(putter, from, count);
	if (putter->put->batch == 1) {
		bench_check("put", ww_jobs_put(putter->put->jobs, putter->specs, NULL, NULL));
		return;
	}
	bench_put_many(putter->put->jobs, putter->puts, count);
}

/* How many jobs each thread puts before the timing. */
static uint64_t first_batch(const struct bench_put *put)
{
	uint64_t count = put->count / put->threads;

	return put->batch < count ? put->batch : count;
}

static void *run(void *context)
{
	struct putter *putter = context;
	const struct bench_put *put = putter->put;
	uint64_t count = put->count / put->threads;
	uint64_t done = first_batch(put);

	prepare(putter);
	/* The first batch makes its connection, and is not timed. */
	if (done)
		put_some(putter, 0, done);
	pthread_barrier_wait(put->start);
	while (done < count) {
		size_t some = count - done < put->batch ? (size_t)(count - done) : put->batch;
		put_some(putter, done, some);
		done += some;
	}
	pthread_barrier_wait(put->start);
	free(putter->specs);
	free(putter->puts);
	free(putter->keys);
	return NULL;
}

void bench_put(const char *url, char **words)
{
	struct bench_put put = {.count = strtoull(words[0], NULL, 10),
	    .threads = (unsigned)strtoul(words[1], NULL, 10),
	    .batch = strtoul(words[2], NULL, 10),
	    .key = strtoul(words[3], NULL, 10),
	    .from = strtoull(words[4], NULL, 10) * 1000,
	    .spread = strtoull(words[5], NULL, 10) * 1000};
	pthread_barrier_t start;
	struct putter *putters;
	uint64_t began;

	if (!put.threads || !put.batch || put.key > KEY_MAX)
		bench_fail("put", "a number is out of range");
	put.jobs = bench_open(url, put.threads + 2);
	put.start = &start;
	putters = memory_zeroed(put.threads, sizeof *putters);
	(void)pthread_barrier_init(&start, NULL, put.threads + 1);
	for (unsigned i = 0; i < put.threads; i++) {
		putters[i] = (struct putter){.put = &put, .index = i};
		if (pthread_create(&putters[i].thread, NULL, run, &putters[i]))
			bench_fail("thread", "not possible");
	}
	pthread_barrier_wait(&start);
	began = time_now(CLOCK_MONOTONIC);
	pthread_barrier_wait(&start);
	double seconds = (double)(time_now(CLOCK_MONOTONIC) - began) / 1e9;
	for (unsigned i = 0; i < put.threads; i++)
		(void)pthread_join(putters[i].thread, NULL);
	bench_check("close", ww_jobs_close(put.jobs));
	uint64_t counted = put.threads * (put.count / put.threads - first_batch(&put));
	printf("{\"jobs\":%" PRIu64 ",\"seconds\":%.3f,\"per_second\":%.0f}\n", counted, seconds,
	    seconds > 0 ? (double)counted / seconds : 0);
	free(putters);
}
