#ifndef TOOLS_WEEKWHEEL_SESSIOND_KEEP_LOAD_H
#define TOOLS_WEEKWHEEL_SESSIOND_KEEP_LOAD_H

/* A load: load.c reads image and journal, and entries.c restores the sessions from their entries. */

#include <stdio.h>

#include "tools/weekwheel-sessiond/keep/keep_internal.h"

struct late;
struct suspect;

enum judging {
	JUDGE_SOME, /* the journal goes on */
	JUDGE_OLD,  /* what a server had that told nothing */
	JUDGE_LAST  /* the journal is at its end */
};

struct load {
	struct keep *keep;
	uint64_t now;
	uint64_t time;            /* of the record, wall, in ms; 0: in the image */
	int was_telling;          /* the server that wrote this told what expired */
	struct suspect *suspects; /* since then */
	int is_exact;
	uint64_t cut;
	uint64_t record;
	uint64_t bytes; /* of the journal */
	uint64_t expired;
	int problems;
	int loses_ends;       /* of lifetimes that this server does not keep */
	int begins_lifetimes; /* of entries that had none */
	int is_told;          /* the error that ended it */
	struct late **late;
	size_t late_count;
	size_t late_room;
	size_t late_most; /* then those are looked at that the journal's time has left behind */
	FILE *file;
	uint64_t size; /* of the image */
	uint64_t at;   /* bytes of it that were read */
	uint64_t sum;
	unsigned char *block;
};

/* ---- entries.c */

/* Returns 0, WW_ECORRUPT, or another WW_E*, after a message. */
int keep_entries_load(struct load *load, const unsigned char *at, size_t size);
/*
 * Of the entries that may have expired, those go that had by `time`, in ms of the wall clock: a touch before that would have
 * been read.
 */
void keep_entries_judge(struct load *load, uint64_t time, enum judging how);
void keep_entries_free(struct load *load);

#endif
