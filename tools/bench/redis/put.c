/* Putting jobs, from any number of threads, one by one or many by one call. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/redis/bench_redis.h"
#include "tools/common/random.h"

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
	putter->specs = bench_allocate(batch * sizeof *putter->specs);
	putter->puts = bench_allocate(batch * sizeof *putter->puts);
	putter->keys = bench_allocate(batch * sizeof *putter->keys);
	for (size_t i = 0; i < batch; i++) {
		(void)ww_job_spec_default(&putter->specs[i]);
		putter->specs[i].body = body;
		putter->specs[i].body_length = sizeof body;
		putter->specs[i].key = putter->keys[i];
		putter->specs[i].key_length = putter->put->key;
		putter->puts[i].spec = &putter->specs[i];
	}
}

/* Jobs that differ in what they are called and when they are due. */
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
	if (!count)
		return;
	vary(putter, from, count);
	if (putter->put->batch == 1) {
		bench_check("put", ww_jobs_put(putter->put->jobs, putter->specs, NULL, NULL));
		return;
	}
	bench_check("put", ww_jobs_put_many(putter->put->jobs, putter->puts, count));
	for (size_t i = 0; i < count; i++)
		bench_check("put", putter->puts[i].result);
}

static void *run(void *context)
{
	struct putter *putter = context;
	const struct bench_put *put = putter->put;
	uint64_t count = put->count / put->threads;
	uint64_t done = 0;

	prepare(putter);
	/* The first makes its connection. */
	put_some(putter, 0, put->batch < count ? put->batch : count);
	done = put->batch < count ? put->batch : count;
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
	putters = bench_allocate(put.threads * sizeof *putters);
	(void)pthread_barrier_init(&start, NULL, put.threads + 1);
	for (unsigned i = 0; i < put.threads; i++) {
		putters[i] = (struct putter){.put = &put, .index = i};
		if (pthread_create(&putters[i].thread, NULL, run, &putters[i]))
			bench_fail("thread", "not possible");
	}
	pthread_barrier_wait(&start);
	began = bench_now();
	pthread_barrier_wait(&start);
	double seconds = (double)(bench_now() - began) / 1e9;
	for (unsigned i = 0; i < put.threads; i++)
		(void)pthread_join(putters[i].thread, NULL);
	bench_check("close", ww_jobs_close(put.jobs));
	uint64_t each = put.count / put.threads;
	uint64_t counted = put.threads * (each - (put.batch < each ? put.batch : each));
	printf("{\"jobs\":%" PRIu64 ",\"seconds\":%.3f,\"per_second\":%.0f}\n", counted, seconds,
	    seconds > 0 ? (double)counted / seconds : 0);
	free(putters);
}
