/* The metrics of an outbox: see numbers.h. */
#include "tools/service/outbox/numbers.h"

#include "tools/service/http/metric.h"
#include "weekwheel/driver.h"

int outbox_numbers_add(struct buffer *out, const char *prefix, struct outbox *outbox, int64_t now_ms)
{
	struct outbox_stats stats;
	int64_t age;

	outbox_stats(outbox, &stats);
	age = stats.waiting ? now_ms - stats.oldest_ms : 0;
	return metric_add(out, prefix, "expired-to-waiting", 0, "Expiries that wait to be reported by --expired-to.",
	           stats.waiting) ||
	       metric_add(out, prefix, "expired-to-bytes", 0, "What they take.", stats.bytes) ||
	       metric_add_seconds(out, prefix, "expired-to-oldest-seconds", 0, "Since the oldest of them has expired.",
	           age > 0 ? (uint64_t)age * WW_MILLISECOND : 0) ||
	       metric_add(out, prefix, "expired-to-told", 1, "Expiries that the other server has.", stats.delivered) ||
	       metric_add(out, prefix, "expired-to-shortened", 1, "Those without their values.", stats.shortened) ||
	       metric_add(out, prefix, "expired-to-refused", 1, "Those that it takes in no form.", stats.given_up) ||
	       metric_add(out, prefix, "expired-to-dropped", 1, "Those dropped at --expired-max.", stats.dropped);
}
