/* A connection to SQLite. */

#include "lib/jobs/store/connection.h"
#include "lib/base/system.h"

#include "lib/jobs/store/files.h"
#include "lib/jobs/store/pages.h"

/* Why the log could not be written. SQLite keeps no errno of that, and has an error of its own only for a full disk. */
static int errno_of_log(sqlite3 *connection)
{
	sqlite3_file *log = NULL;
	int reason = 0;

	(void)sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
	if (log && log->pMethods)
		(void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &reason);
	return reason;
}

/* SQLite has one code for whatever keeps a file from being opened, and one for most that goes wrong with it later. */
static int error_of_system(sqlite3 *connection, int usual)
{
	int code = sqlite3_extended_errcode(connection);
	int reason = code == SQLITE_IOERR_WRITE ? errno_of_log(connection) : sqlite3_system_errno(connection);
	int error = reason ? error_of_errno(reason) : usual;

	if (code == SQLITE_IOERR_NOMEM)
		return WW_ENOMEM;
	return error == WW_EFULL || usual == WW_EDENIED ? error : usual;
}

int ww_connection_error(sqlite3 *connection, int code)
{
	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
		return WW_OK;
	case SQLITE_DONE:
		return WW_ENOTFOUND;
	case SQLITE_NOMEM:
		return WW_ENOMEM;
	case SQLITE_FULL:
		return WW_EFULL;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return WW_ECORRUPT;
	case SQLITE_PERM:
	case SQLITE_READONLY:
	case SQLITE_AUTH:
		return WW_EDENIED;
	case SQLITE_CANTOPEN:
		return error_of_system(connection, WW_EDENIED);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return WW_EINUSE;
	default:
		return error_of_system(connection, WW_EIO);
	}
}

int ww_connection_run(sqlite3 *connection, const char *text)
{
	return ww_connection_error(connection, sqlite3_exec(connection, text, NULL, NULL, NULL));
}

int ww_connection_prepare(sqlite3 *connection, sqlite3_stmt **statement, const char *text)
{
	return ww_connection_error(
	    connection, sqlite3_prepare_v3(connection, text, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL));
}

/* SQLite finds its own files: it would follow a link, or make one that is missing. The caller has looked. */
int ww_connection_open(sqlite3 **connection, const char *path, int flags)
{
	const char *vfs = ww_pages_vfs();
	int sum = PAGES_SUM;

	if (!vfs)
		return WW_ENOMEM;
	int code = sqlite3_open_v2(path, connection, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, vfs);
	if (!code)
		code = sqlite3_file_control(*connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &sum);
	return ww_connection_error(*connection, code);
}

int ww_connection_copy(sqlite3 *from, sqlite3 **to)
{
	sqlite3_backup *backup;
	/* Without a name: a hidden file, which ends with the process. */
	int code = sqlite3_open_v2("", to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

	if (code)
		return ww_connection_error(*to, code);
	backup = sqlite3_backup_init(*to, "main", from, "main");
	if (!backup)
		return ww_connection_error(*to, sqlite3_errcode(*to));
	(void)sqlite3_backup_step(backup, -1);
	return ww_connection_error(*to, sqlite3_backup_finish(backup));
}

int ww_connection_bind(sqlite3_stmt *statement, int place, struct store_bytes bytes)
{
	/* NULL would be null, not empty. */
	return ww_connection_error(sqlite3_db_handle(statement),
	    sqlite3_bind_blob64(statement, place, bytes.size ? bytes.data : "", bytes.size, SQLITE_STATIC));
}

int ww_connection_bind_number(sqlite3_stmt *statement, int place, uint64_t number)
{
	return ww_connection_error(
	    sqlite3_db_handle(statement), sqlite3_bind_int64(statement, place, (sqlite3_int64)number));
}

int ww_connection_step(sqlite3_stmt *statement)
{
	return ww_connection_error(sqlite3_db_handle(statement), sqlite3_step(statement));
}

int ww_connection_done(sqlite3_stmt *statement)
{
	int error = ww_connection_step(statement);

	sqlite3_reset(statement);
	return error == WW_ENOTFOUND ? WW_OK : error;
}

uint64_t ww_connection_number(sqlite3 *connection, const char *text)
{
	sqlite3_stmt *statement = NULL;
	uint64_t number = 0;

	if (!ww_connection_prepare(connection, &statement, text) && sqlite3_step(statement) == SQLITE_ROW)
		number = (uint64_t)sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return number;
}
