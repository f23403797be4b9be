#ifndef LIB_JOBS_STORE_FAULT_H
#define LIB_JOBS_STORE_FAULT_H

/*
 * Why a store cannot write, in words.
 *
 * A failed sync is final. The system may have dropped the bytes and marked them as written, so that the next sync would
 * succeed without them. Nothing is synced or acknowledged after it. Opening the store again reads what the disk has.
 *
 * Threads: any.
 */

#include <pthread.h>

#include "weekwheel/jobs.h"

struct store_fault {
	pthread_mutex_t lock;
	_Atomic int error; /* WW_OK, WW_EFULL: until there is room; WW_EIO or WW_ECORRUPT: final */
	char text[WW_FAULT_MAX];
};

void ww_store_fault_init(struct store_fault *fault);
void ww_store_fault_destroy(struct store_fault *fault);
/* A sync has failed, with this errno. Returns WW_EIO. The first one counts. */
int ww_store_fault_sync(struct store_fault *fault, const char *file, int error);
/* A page of the index is damaged. Unless a sync has failed, nothing is written any more. Returns WW_ECORRUPT. */
int ww_store_fault_damage(struct store_fault *fault, const char *file);
/* There is no room for new jobs, as the text says; NULL: there is. A failed sync stays. */
void ww_store_fault_full(struct store_fault *fault, const char *text);
/* Whether nothing may be written any more: WW_EIO, WW_ECORRUPT, or WW_OK. */
int ww_store_fault_final(const struct store_fault *fault);
/* Whether a sync has failed. */
int ww_store_fault_is_final(const struct store_fault *fault);
/* Copy the text, unless it is NULL. Returns the error. */
int ww_store_fault_tell(struct store_fault *fault, char text[WW_FAULT_MAX]);

#endif
