#ifndef TESTS_SUPPORT_CALLBACK_PUSHING_H
#define TESTS_SUPPORT_CALLBACK_PUSHING_H

/*
 * Shared by the tests of pushers: a store in memory on a virtual clock that stands still, a receiver, and a pusher that
 * may call loopback. A job's due time shows how long it waits.
 */

#include "tests/lib/jobs/fixture.h"
#include "tests/support/callback/receiver.h"
#include "weekwheel/callback.h"

struct pushing {
	struct world world;
	struct receiver *receiver;
	struct ww_callback *callback;
	struct ww_callback_config config;
};

/*
 * Make everything but the pusher, whose configuration may then be changed. The store is in memory, or of a kind of
 * tests/lib/jobs/fixture.h.
 */
void pushing_make(struct pushing *pushing);
void pushing_make_upon(struct pushing *pushing, int kind);
void pushing_open(struct pushing *pushing);
/* Close the pusher if it is open, and end the rest. */
void pushing_end(struct pushing *pushing);

/* Put a job with a text made as by printf. spec NULL means the default, with a backoff of 8 s. */
uint64_t pushing_put(struct pushing *pushing, const struct ww_job_spec *spec, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Put "POST http://127.0.0.1:port/path", these lines, and the body "hello". */
uint64_t pushing_post(struct pushing *pushing, const char *path, const char *lines);
struct ww_job_spec pushing_spec(void);

/*
 * Wait until the job is finished; buried with an error that contains the reason; delayed by least to most for the
 * reason.
 */
void expect_finished(struct pushing *pushing, uint64_t id);
/* The same for a job that may be put off: time passes meanwhile. */
void expect_finished_later(struct pushing *pushing, uint64_t id);
void expect_buried(struct pushing *pushing, uint64_t id, const char *reason);
void expect_again(struct pushing *pushing, uint64_t id, uint64_t least, uint64_t most, const char *reason);
/* Delayed by the backoff of pushing_spec, which the store shortens by up to a quarter. */
void expect_backoff(struct pushing *pushing, uint64_t id, const char *reason);

struct ww_callback_stats pushing_stats(struct pushing *pushing);
/* Wait until this member of the statistics has that value. */
void pushing_wait(struct pushing *pushing, const char *what, uint64_t wanted);
/* Sleep a moment between two looks. Fails after too many. */
void pushing_pause(int *times);

/* The value of a request's header. Fails if there is none. */
const char *header_of(const char *request, const char *name, char *value);
int has_header(const char *request, const char *name);

#endif
