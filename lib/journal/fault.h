#ifndef LIB_JOURNAL_FAULT_H
#define LIB_JOURNAL_FAULT_H

/*
 * Why a store cannot write, in words.
 *
 * A failed sync is final. The system may have dropped the bytes and marked them as written, so that the next sync would
 * succeed without them. After a failed sync nothing is synced or acknowledged. Opening the store again reads what the
 * disk has.
 *
 * Threads: any.
 */

#include <pthread.h>

#include "weekwheel/error.h"

enum { FAULT_TEXT = 256 };

struct journal_fault {
	pthread_mutex_t lock;
	_Atomic int error; /* WW_OK, WW_EFULL: until there is room; WW_EIO or WW_ECORRUPT: final */
	char text[FAULT_TEXT];
};

void ww_fault_init(struct journal_fault *fault);
void ww_fault_destroy(struct journal_fault *fault);
/* A sync has failed, with this errno. Returns WW_EIO. The first one counts. */
int ww_fault_sync(struct journal_fault *fault, const char *file, int error);
/* What was written is damaged, as the text says. Unless a sync has failed, nothing is written any more. Returns
 * WW_ECORRUPT. */
int ww_fault_damage(struct journal_fault *fault, const char *text);
/* There is no room for what is new, as the text says; NULL: there is. A failed sync stays. */
void ww_fault_full(struct journal_fault *fault, const char *text);
/* Whether nothing may be written any more: WW_EIO, WW_ECORRUPT, or WW_OK. */
int ww_fault_final(const struct journal_fault *fault);
/* Whether a sync has failed. */
int ww_fault_is_final(const struct journal_fault *fault);
/* Copy the text, unless it is NULL. Returns the error. */
int ww_fault_describe(struct journal_fault *fault, char text[FAULT_TEXT]);

#endif
