#ifndef TESTS_SIMULATE_SESSIONS_BOOK_H
#define TESTS_SIMULATE_SESSIONS_BOOK_H

/*
 * What clients sent and heard: the history of a run, for tests/support/session_history.py, which judges it. The book knows
 * of each key only what the clients need to choose what they do.
 */

#include <stdint.h>
#include <stdio.h>

enum { KEYS = 40 };

struct key {
	uint32_t sets; /* values that were sent */
	int is_busy;   /* a command that changes it is under way */
	uint64_t ms;   /* the time that it mostly gets */
};

struct book {
	struct key key[KEYS];
	uint64_t offset;   /* of the server's wall clock, in ns: it is ahead of the time of the run by that */
	uint64_t deadline; /* the last one that was asked for, by the time of the run */
	uint64_t commands, acknowledged, unanswered, refused, told;
};

extern struct book book;

struct book_settings {
	uint64_t window;   /* what was answered so long before a power failure may be lost */
	uint64_t lifetime; /* or 0 */
	int keeps_lifetimes;
	int tells; /* what expires is told to another server */
};

/* Write the history to a file, which stays the caller's. */
void book_begin(const struct book_settings *settings, FILE *file);
/* A command is sent. `more` are members of the event. Returns its number. */
uint64_t book_sends(const char *verb, unsigned key, const char *more);
/* Its answer, as JSON. */
void book_hears(uint64_t call, const char *answer);
void book_hears_refusal(uint64_t call);
/* There will be no answer. */
void book_hears_nothing(uint64_t call);
/* The server has told that this value of this key has expired; wall: its deadline, in ms. */
void book_hears_end(const char *key, const char *value);
void book_opened(void);
/* The wall clock was set. */
void book_stepped(int64_t step);
void book_sync_failed(void);
void book_server_died(int is_power, int is_lost, int is_clean);
void book_forget_all(void);
void book_final(int is_all_told);

#endif
