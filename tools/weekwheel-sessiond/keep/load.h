#ifndef TOOLS_WEEKWHEEL_SESSIOND_KEEP_LOAD_H
#define TOOLS_WEEKWHEEL_SESSIOND_KEEP_LOAD_H

/*
 * A load: load.c reads image and journal, and entries.c applies their entries to a table. What has expired meanwhile is
 * decided once, when all is read: an entry may have been touched, replaced or deleted by a later one.
 *
 * With --recover records may be lost, and numbers tell where. Each may have deleted or changed any session that was written
 * before it: a user may have logged out, or have a right no more. Such sessions are *stale*, and are left out unless they
 * are asked for. A session that was set behind the last gap is as it was. A touch does not say what was touched.
 */

#include <stdio.h>

#include "tools/weekwheel-sessiond/keep/keep_internal.h"
#include "tools/weekwheel-sessiond/keep/table.h"

struct suspect;

struct load {
	struct keep *keep;
	struct keep_table table[DATA_DATABASES_MAX];
	unsigned database; /* the table whose sessions are judged */
	uint64_t now; /* steady, in ms; before the clocks are known DATA_NEVER, or the wall clock's in files of 0.1.0 */
	uint64_t time; /* of the record, steady, in ms; 0: in the image */
	int has_clock;
	struct keep_clock clock;  /* the last one */
	int was_reporting;        /* the server that wrote this reported what expired */
	struct suspect *suspects; /* since then */
	int is_exact;
	int is_headless; /* the image's head is damaged */
	uint64_t cut;
	uint64_t record;
	uint64_t next;  /* record of the journal, of those that were not read */
	uint32_t gaps;  /* where records of the journal are lost */
	uint64_t stale; /* sessions that were written before the last gap */
	uint64_t bytes; /* of the journal */
	uint64_t expired;
	int problems;
	int loses_ends;       /* of lifetimes that this server does not keep */
	int begins_lifetimes; /* of entries that had none */
	int is_reported;      /* the error that ended it */
	FILE *file;
	uint64_t size; /* of the image */
	uint64_t at;   /* bytes of it that were read */
	uint64_t sum;
	unsigned char *block;
};

/* ---- entries.c */

/* Returns 0, or WW_ECORRUPT or another WW_E* after a message. */
int keep_entries_load(struct load *load, const unsigned char *at, size_t size);
/* All is read: report what has expired by now, and move the rest to the maps. Errors: as above. */
int keep_entries_judge(struct load *load);
void keep_entries_free(struct load *load);

#endif
