/* Counts what clients and the pusher do with the jobs of each tube, and writes that for Prometheus. */
#include "tools/weekwheeld/engine/counts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/buffer.h"
#include "weekwheel/driver.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)

static const struct {
	const char *text;
	uint64_t us;
} classes[COUNTS_CLASSES - 1] = {{"0.001", 1000}, {"0.0025", 2500}, {"0.005", 5000}, {"0.01", 10000}, {"0.025", 25000},
    {"0.05", 50000}, {"0.1", 100000}, {"0.25", 250000}, {"0.5", 500000}, {"1", 1000000}, {"2.5", 2500000},
    {"5", 5000000}, {"10", 10000000}, {"25", 25000000}, {"50", 50000000}, {"100", 100000000}, {"250", 250000000},
    {"500", 500000000}, {"1000", 1000000000}};

/* A pusher counts, too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct counts_tube *find(struct job_counts *counts, const char *name)
{
	struct counts_tube *tube;

	HASH_FIND_STR(counts->tubes, name, tube);
	if (tube)
		return tube;
	tube = HASH_COUNT(counts->tubes) < COUNTS_TUBES ? calloc(1, sizeof *tube) : NULL;
	if (!tube)
		return &counts->others;
	memcpy(tube->name, name, strlen(name) + 1);
	HASH_ADD_STR(counts->tubes, name, tube);
	if (tube->hh.tbl)
		return tube;
	free(tube);
	return &counts->others;
}

struct counts_tube *counts_of(struct job_counts *counts, const char *name)
{
	struct counts_tube *tube;

	pthread_mutex_lock(&lock);
	tube = find(counts, name);
	pthread_mutex_unlock(&lock);
	return tube;
}

void counts_add(struct counts_tube *tube, enum count count)
{
	pthread_mutex_lock(&lock);
	tube->of[count]++;
	pthread_mutex_unlock(&lock);
}

static void add_time(struct counts_times *times, uint64_t ns)
{
	int at = 0;

	while (at < COUNTS_CLASSES - 1 && ns > classes[at].us * 1000)
		at++;
	pthread_mutex_lock(&lock);
	times->of[at]++;
	times->sum += ns;
	pthread_mutex_unlock(&lock);
}

/* A job that failed or was kicked comes back for reasons of its own. */
void counts_deliver(
    struct job_counts *counts, struct counts_tube *tube, uint32_t attempt, uint32_t kicks, uint64_t late)
{
	counts_add(tube, COUNT_DELIVERED);
	if (attempt == 1 && kicks == 0)
		add_time(&counts->late, late);
}

/* Under the lock. */
static void pace_advance(struct counts_pace *pace, uint64_t now)
{
	uint64_t minute = now / (60 * WW_SECOND);
	uint64_t *most = &pace->most[pace->minute / 60 % COUNTS_HOURS];

	if (minute <= pace->minute)
		return;
	if (pace->ended > *most)
		*most = pace->ended;
	for (uint64_t hour = pace->minute / 60 + 1; hour <= minute / 60 && hour <= pace->minute / 60 + COUNTS_HOURS;
	     hour++)
		pace->most[hour % COUNTS_HOURS] = 0;
	pace->minute = minute;
	pace->ended = 0;
}

void counts_end(struct job_counts *counts, uint64_t now)
{
	pthread_mutex_lock(&lock);
	pace_advance(&counts->pace, now);
	counts->pace.ended++;
	pthread_mutex_unlock(&lock);
}

uint64_t counts_pace(struct job_counts *counts, uint64_t now)
{
	uint64_t most;

	pthread_mutex_lock(&lock);
	pace_advance(&counts->pace, now);
	most = counts->pace.ended;
	for (int hour = 0; hour < COUNTS_HOURS; hour++)
		most = counts->pace.most[hour] > most ? counts->pace.most[hour] : most;
	pthread_mutex_unlock(&lock);
	return most;
}

void counts_ran(struct job_counts *counts, uint64_t ns, uint64_t now)
{
	add_time(&counts->run, ns);
	counts_end(counts, now);
}

static int write_tubes(const struct job_counts *counts, struct buffer *out, enum count count)
{
	static const struct {
		const char *name;
		const char *help;
	} texts[COUNTS] = {
	    {"put", "Jobs that clients put into a tube"},
	    {"delivered", "Jobs of a tube that clients reserved, or that were sent"},
	    {"done", "Jobs of a tube that clients deleted after they had reserved them, or that were pushed"},
	    {"failed", "Jobs of a tube that clients released, or whose requests failed"},
	    {"buried", "Jobs of a tube that clients or the pusher buried, at once or after the last attempt"},
	};
	const char *name = texts[count].name;
	int bad = buffer_format(out,
	    "# HELP weekwheeld_tube_%s_total %s. No tube has the name -others: these are the tubes after the first %d.\n"
	    "# TYPE weekwheeld_tube_%s_total counter\n",
	    name, texts[count].help, COUNTS_TUBES, name);

	for (const struct counts_tube *tube = counts->tubes; tube; tube = tube->hh.next)
		bad |= buffer_format(out, "weekwheeld_tube_%s_total{tube=\"%s\"} %llu\n", name, tube->name,
		    (unsigned long long)tube->of[count]);
	return bad | buffer_format(out, "weekwheeld_tube_%s_total{tube=\"-others\"} %llu\n", name,
	                 (unsigned long long)counts->others.of[count]);
}

static int write_times(const struct counts_times *times, struct buffer *out, const char *name, const char *help)
{
	unsigned long long count = 0;
	int bad = buffer_format(out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);

	for (int i = 0; i < COUNTS_CLASSES; i++) {
		count += times->of[i];
		bad |= buffer_format(
		    out, "%s_bucket{le=\"%s\"} %llu\n", name, i < COUNTS_CLASSES - 1 ? classes[i].text : "+Inf", count);
	}
	return bad | buffer_format(out, "%s_sum %llu.%09llu\n%s_count %llu\n", name,
	                 (unsigned long long)(times->sum / WW_SECOND), (unsigned long long)(times->sum % WW_SECOND),
	                 name, count);
}

int counts_write(struct job_counts *counts, uint64_t now, struct buffer *out)
{
	int bad = buffer_format(out,
	    "# HELP weekwheeld_pace_per_second What the workers can do: leases a second that ended in the fullest minute of "
	    "the last day.\n"
	    "# TYPE weekwheeld_pace_per_second gauge\n"
	    "weekwheeld_pace_per_second %.6f\n",
	    (double)counts_pace(counts, now) / 60);

	pthread_mutex_lock(&lock);
	bad |= write_times(&counts->run, out, "weekwheeld_job_run_seconds",
	    "Time from a job's delivery until its client deleted, released or buried it.");
	bad |= write_times(&counts->late, out, "weekwheeld_job_delivery_delay_seconds",
	    "Time from a job's due time until it was first reserved, or sent.");
	for (int count = 0; count < COUNTS; count++)
		bad |= write_tubes(counts, out, (enum count)count);
	pthread_mutex_unlock(&lock);
	return bad;
}

void counts_free(struct job_counts *counts)
{
	struct counts_tube *tube;
	struct counts_tube *next;

	HASH_ITER(hh, counts->tubes, tube, next) {
		HASH_DEL(counts->tubes, tube);
		free(tube);
	}
}
