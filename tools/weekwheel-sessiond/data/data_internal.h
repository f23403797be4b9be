#ifndef TOOLS_WEEKWHEEL_SESSIOND_DATA_DATA_INTERNAL_H
#define TOOLS_WEEKWHEEL_SESSIOND_DATA_DATA_INTERNAL_H

/* Shared by the files of data.h: data.c has the maps and their time, look.c reads, change.c changes, stripes.c locks. */

#include <pthread.h>
#include <stdatomic.h>

#include "tools/weekwheel-sessiond/data/data.h"

/* An entry without a deadline has this one, later than all others. */
#define DATA_FOREVER WW_DRIVER_TIME_MAX
/* The bytes that an entry takes in addition to key and value, for the bound of memory. */
enum { DATA_ENTRY_BYTES = 128 };
/* With a bound of memory, a shard of a map has about this much; an entry may take all of it. */
enum { SHARD_BYTES = 16 * 1024 * 1024, SHARDS = 32 };

struct data_map {
	struct ww_session *_Atomic session;
	struct data *data;
};

struct data_stripe {
	_Alignas(64) pthread_mutex_t lock;
};

struct data {
	struct data_config config;
	uint32_t shards; /* of each map */
	const struct data_keep *keep;
	struct ww_driver *driver;
	struct ww_clock *clock; /* virtual, or NULL */
	_Atomic int64_t wall;   /* wall time less the driver's, in ms, when last read */
	int64_t steady;         /* steady time less the driver's */
	pthread_mutex_t lock;   /* for making maps */
	struct data_map map[DATA_DATABASES_MAX];
	_Alignas(
	    64) _Atomic uint64_t several; /* low half: how many threads hold or want several; high half: how often */
	struct data_stripe stripe[DATA_STRIPES];
};

/* A key evicted by this thread's calls that is not in the journal yet. */
struct data_evicted {
	struct data_evicted *next;
	unsigned database;
	size_t length;
	char key[];
};

/* Return this thread's list, which is empty then. */
struct data_evicted *data_evicted_take(void);

#endif
