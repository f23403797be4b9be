#ifndef LIB_JOBS_LOCAL_RULE_H
#define LIB_JOBS_LOCAL_RULE_H

/*
 * Limits as they were set: stored, read again, listed. limit.c enforces them. rule.c has the format.
 *
 * Complexity: O(log n) for one limit. A change looks at each group of its tube.
 */

#include <stdint.h>

#include "lib/jobs/store/store.h"
#include "weekwheel/jobs.h"

struct jobs_local;
struct tube;

/* A limit that was set. If it neither limits nor weighs anything, it was removed. A weight may be 0 for 1. */
struct rule {
	struct ww_limit limit;
	uint64_t number; /* of its pair in META; 0: it never had one */
};

static inline int rule_limits(const struct rule *rule)
{
	return rule->limit.running || rule->limit.starts;
}

static inline int rule_is_set(const struct rule *rule)
{
	return rule_limits(rule) || rule->limit.weight > 1;
}

int ww_jobs_local_limit_set(struct ww_jobs *handle, const struct ww_limit_ref *ref, const struct ww_limit *limit);
int ww_jobs_local_limit_get(struct ww_jobs *handle, const struct ww_limit_ref *ref, struct ww_limit_info *info);
int ww_jobs_local_limit_list(struct ww_jobs *handle, const char *tube, ww_limit_fn *fn, void *context);

/* Read all limits. The clocks are known. WW_ECORRUPT */
int ww_jobs_rules_open(struct jobs_local *jobs);
/* The store is being closed: write what they have counted. */
int ww_jobs_rules_store(struct jobs_local *jobs);
/* Set a rule of a tube as it was before a batch that failed. */
void ww_jobs_rule_undo(struct tube *tube, struct rule *rule, const struct rule *was);
/* Whether a pair of META is a limit or a weight. */
int ww_jobs_is_limit(struct store_bytes key);

#endif
