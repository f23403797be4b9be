#ifndef LIB_JOBS_STORE_COPY_H
#define LIB_JOBS_STORE_COPY_H

/*
 * Copying the files of a store while a server writes to them.
 *
 *     index.db        its pages may change meanwhile, but what the log has of them comes on top
 *     index.db-wal    until it begins anew, it stays as it is up to its last commit, and only that much is copied
 *     journal.N       they only grow; the last record counts if it is whole
 *
 * Copied in this order, the files are a store at one moment: the one at which the last journal was read. If meanwhile
 * the log began anew or the journal was cut, the copy begins again.
 *
 * The copy holds no lock of SQLite, so a copy that is stopped does not block a server. It holds a lock of its own on
 * the folder. The lock asks the server to put off beginning the log anew and cutting the journal, as long as they are
 * small.
 */

/*
 * Copy the store in `from` to `to`, a folder that is empty or missing, and return when the copy is stable. On error `to`
 * is as it was. Errors: WW_EINVAL: `to` lies in `from`. WW_ECORRUPT: the copy is damaged, as `from` is. WW_EINUSE: `to` is not empty. WW_EDENIED: also if there is no store in `from`. WW_EAGAIN: the
 * server wrote more than it could put off. WW_EFULL, WW_EIO, WW_ENOMEM.
 */
int ww_store_copy(const char *from, const char *to);

#endif
