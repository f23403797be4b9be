/* Leases, as scripts reply them. */
#include <string.h>

#include "lib/jobs/body.h"
#include "lib/redis/redis_internal.h"

/* The words of part_lease.lua. */
/* clang-format off */
enum {
	LEASE_ID, LEASE_TOKEN, LEASE_ENDS, LEASE_ATTEMPT, LEASE_MISSED, LEASE_TUBE, LEASE_BODY, LEASE_PRIORITY, LEASE_KEY,
	LEASE_BACKOFF, LEASE_CREATED, LEASE_SCHEDULED, LEASE_ATTEMPTS, LEASE_KICKS, LEASE_LATE, LEASE_HEADERS, LEASE_ALL
};
/* clang-format on */
_Static_assert((int)LEASE_ALL == (int)LEASE_WORDS, "redis_internal.h has their number");

static uint64_t number_of(redisReply *const *of, int word)
{
	return (uint64_t)ww_redis_call_value(of[word]);
}

int ww_redis_lease_read(struct redis_store *store, redisReply *const *of, struct ww_lease *lease)
{
	const redisReply *tube = of[LEASE_TUBE];
	const redisReply *body = of[LEASE_BODY];
	const redisReply *key = of[LEASE_KEY];
	const redisReply *headers = of[LEASE_HEADERS];

	if (key->type != REDIS_REPLY_STRING || key->len > WW_JOB_KEY_MAX)
		return WW_ECORRUPT;
	if (tube->type != REDIS_REPLY_STRING || tube->len > WW_TUBE_MAX || body->type != REDIS_REPLY_STRING)
		return WW_ECORRUPT;
	if (headers->type != REDIS_REPLY_STRING || headers->len > WW_JOB_HEADERS_MAX)
		return WW_ECORRUPT;
	*lease = (struct ww_lease){.id = number_of(of, LEASE_ID),
	    .token = number_of(of, LEASE_TOKEN),
	    .ends = number_of(of, LEASE_ENDS) * 1000,
	    .attempt = (uint32_t)number_of(of, LEASE_ATTEMPT),
	    .missed = number_of(of, LEASE_MISSED),
	    .body_length = body->len,
	    .headers = headers->str,
	    .headers_length = headers->len,
	    .backoff = number_of(of, LEASE_BACKOFF) * 1000,
	    .created = number_of(of, LEASE_CREATED) * 1000,
	    .scheduled = number_of(of, LEASE_SCHEDULED) * 1000,
	    .attempts = (uint32_t)number_of(of, LEASE_ATTEMPTS),
	    .kicks = (uint32_t)number_of(of, LEASE_KICKS),
	    .late = number_of(of, LEASE_LATE) * 1000,
	    .priority = (uint32_t)number_of(of, LEASE_PRIORITY),
	    .key_length = key->len};
	memcpy(lease->tube, tube->str, tube->len);
	memcpy(lease->key, key->str, key->len);
	if (!body->len && !headers->len) {
		lease->headers = NULL;
		return WW_OK;
	}
	lease->body = job_body_copy(store->allocator, body->str, body->len, &lease->headers, headers->len);
	return lease->body ? WW_OK : WW_ENOMEM;
}

void ww_redis_lease_free(struct ww_jobs *jobs, void *body)
{
	job_body_free(store_of(jobs)->allocator, body);
}

int ww_redis_lease_is_over(struct redis_store *store, const struct ww_lease *lease, uint64_t began, int *asked)
{
	struct ww_job_ref job = {.id = lease->id};
	struct ww_job_info info = {0};
	uint64_t took = time_now(CLOCK_BOOTTIME) - began;

	if (took < REDIS_CALL_LONG || lease->ends > ww_redis_clock_now(store) + took)
		return 0;
	if (*asked == WW_OK || *asked == WW_ENOTFOUND)
		*asked = ww_redis_look_peek(&store->base, &job, &info, NULL);
	/* One that has run out may still be shown, while Redis has many to end. */
	if (*asked == WW_OK)
		return info.token != lease->token || info.left == 0;
	return *asked == WW_ENOTFOUND || lease->ends <= ww_redis_clock_now(store);
}
