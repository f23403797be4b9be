#ifndef TOOLS_WEEKWHEEL_SESSIOND_KEEP_TABLE_H
#define TOOLS_WEEKWHEEL_SESSIOND_KEEP_TABLE_H

/*
 * What a load has read of one database: a plain hash table. It knows no clock, so the records apply in order, whenever
 * their sessions expire.
 *
 *     place[] ---> | session | session | ... |     blocks, in the order of the sessions' first records
 *
 * An erased session stays without its value, and with the end of its lifetime if it is to be recalled: what it takes is
 * as bounded as its records. In the end the blocks go one by one while the sessions move to the map, so that the two
 * together never take more than the map does at last.
 */

#include "tools/weekwheel-sessiond/data/data.h"

struct keep_session {
	struct value *value; /* NULL: erased. Its `disk` is the deadline on disk, wall time in ms */
	uint64_t ttl;        /* as in the records: see format.h */
	uint64_t deadline;
	uint64_t end; /* without a value: KEEP_GONE, unless it is to be recalled; then `deadline` is until when */
	uint32_t gap; /* so many were before the record that set it */
	uint16_t length;
	char key[];
};

/* No end of it is recalled. */
#define KEEP_GONE UINT64_MAX

struct keep_block;

/* Zero: it is empty. */
struct keep_table {
	uint64_t *place; /* a hash above 1 + the number of a session's first word; 0: unused */
	size_t places;   /* a power of two, or 0 */
	size_t count;    /* of places that are used */
	struct keep_block **block;
	uint32_t blocks;
};

/* The session with a value, or NULL. */
struct keep_session *keep_table_find(const struct keep_table *table, const void *key, size_t length);
/* The session, made if there is none. The caller fills it. NULL without memory. */
struct keep_session *keep_table_add(struct keep_table *table, const void *key, size_t length);
/* The key will be looked up soon: prefetch the memory where the search begins. */
void keep_table_expect(const struct keep_table *table, const void *key, size_t length);

/* For a session with a value, or one to be recalled. It takes a value by storing NULL. An error ends the walk. */
typedef int keep_session_fn(struct keep_session *session, void *context);
int keep_table_walk(const struct keep_table *table, keep_session_fn *fn, void *context);
/* The same for the last time: nothing is found afterwards, and memory is freed on the way. */
int keep_table_drain(struct keep_table *table, keep_session_fn *fn, void *context);
/* Empty it. */
void keep_table_clear(struct keep_table *table);

#endif
