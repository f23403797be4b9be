#ifndef LIB_JOBS_STORE_FILES_H
#define LIB_JOBS_STORE_FILES_H

/* The folder of a store: whose it is, and whether its files are there. */

#include <stdint.h>

/*
 * Make the folder if it is missing, and take it for this process until *lock is closed. Errors: WW_EINUSE: another
 * process has it. WW_ECORRUPT: it has other files, or its index is missing. WW_EDENIED, WW_EIO, WW_EINVAL.
 */
int ww_store_files_lock(const char *path, int *lock);
/* -1 is harmless. */
void ww_store_files_unlock(int lock);
/* Make the names of a new store's files stable, then note that it was made. If its index is missing later, refuse it. */
int ww_store_files_made(const char *path, int lock);
/* Whether the store in the folder was made. Errors: WW_EDENIED: there is none; WW_EVERSION: a former kind. */
int ww_store_files_exist(const char *path);
/* Bytes of the index. */
uint64_t ww_store_files_bytes(const char *path);

#endif
