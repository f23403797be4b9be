#ifndef LIB_JOBS_STORE_PAGES_H
#define LIB_JOBS_STORE_PAGES_H

/*
 * Pages of the index with checksums: a layer below SQLite (a "VFS") that writes a sum into the last bytes of each page
 * and checks it when the page is read. SQLite itself would believe a page with a flipped bit.
 *
 * A page in the log (index.db-wal) has the log's own checksum instead. A page of zeros was never written.
 */

#include <sqlite3.h>
#include <stdint.h>

/* Bytes of a page, and those at its end that are the sum's. */
enum { PAGES_SIZE = 4096, PAGES_SUM = 4 };

/* The name of the VFS for sqlite3_open_v2. NULL: SQLite has no VFS, or no memory. Threads: any. */
const char *ww_pages_vfs(void);
/*
 * Which file of a connection could not be synced: 0: none, otherwise errno and what its name has after the index's. SQLite
 * does not say which, and a failed statement may be followed by others that hide the error.
 */
int ww_pages_failed_sync(sqlite3 *connection, const char **name);
/* Whether the sum of a page is right. Pages are numbered from 1. */
int ww_pages_is_sound(const unsigned char *page, uint32_t number);
/* What differs between the sum that a page has and the one that it should have. */
uint32_t ww_pages_change(const unsigned char *page, uint32_t number);

#endif
