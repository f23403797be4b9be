#ifndef TOOLS_COMMON_SURVEY_H
#define TOOLS_COMMON_SURVEY_H

/*
 * What a server of sessions has, counted by the time that remains to each, as the four wheels have it. The command
 * `weekwheel sessions` asks for it key by key (SCAN, PTTL, STRLEN); weekwheel-sessiond walks its maps.
 */

#include <stddef.h>
#include <stdint.h>

#define SURVEY_HOUR_MS (UINT64_C(3600) * 1000)

enum { SURVEY_DAYS = 7, SURVEY_LARGEST_MAX = 100, SURVEY_KEY = 120 };

/* The wheels, what is beyond the last, and what has no deadline. */
enum { SURVEY_SECONDS, SURVEY_MINUTES, SURVEY_HOURS, SURVEY_WEEK, SURVEY_LATER, SURVEY_NEVER, SURVEY_WHEELS };

struct survey_key {
	char text[SURVEY_KEY]; /* its first bytes */
	size_t length;         /* of them */
	int is_cut;
	unsigned database;
	uint64_t size;   /* of the value */
	int64_t left_ms; /* -1: it has no deadline */
};

struct survey {
	uint64_t keys;
	uint64_t bytes;  /* of values */
	uint64_t others; /* keys of other kinds than values */
	uint64_t by_wheel[SURVEY_WHEELS];
	uint64_t by_day[SURVEY_DAYS]; /* that expire within this many days */
	struct survey_key largest[SURVEY_LARGEST_MAX];
	size_t largest_count;
	size_t largest_most; /* set by the caller, and: */
	unsigned database;   /* of the keys to come */
};

/* Count a key. left_ms: as PTTL answers. size below 0: it is no value. */
void survey_add(struct survey *survey, const char *key, size_t length, int64_t left_ms, int64_t size);

#endif
