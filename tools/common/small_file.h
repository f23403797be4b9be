#ifndef TOOLS_COMMON_SMALL_FILE_H
#define TOOLS_COMMON_SMALL_FILE_H

/*
 * The files that options name: configurations, passwords, tokens, certificates. Each is text of at most 1 MiB.
 *
 * A pipe, or a device such as a terminal, will do where it is read once, as in --requirepass-file <(pass show redis).
 * Its writer may come late or never. After a second a message says what is waited for, and after a minute the program
 * gives up: before a unit's start is given up by systemd, which would not say why.
 */

#include <stddef.h>

enum { SMALL_FILE_MAX = 1 << 20, SMALL_FILE_WHY = 80, SMALL_FILE_WAIT_MS = 60000 };

enum small_file_end {
	SMALL_FILE_WHOLE,
	SMALL_FILE_LINE, /* the first line, without its end: a writer such as a shell may keep its pipe open */
};

struct small_file {
	char *text; /* a zero byte follows; free it */
	size_t size;
	unsigned mode; /* the permissions of a file, 0 of a pipe or a device */
};

/*
 * Read a file. Wait up to `wait_ms` for what comes late; 0: only a file will do, as it will be read again. Return 0, or
 * -1 with what is wrong with it in `why`.
 */
int small_file_read(
    struct small_file *file, const char *path, enum small_file_end end, int wait_ms, char why[SMALL_FILE_WHY]);

/* Return 0 if that would read a file, for those who must open it themselves, or -1 with what is wrong in `why`. */
int small_file_check(const char *path, char why[SMALL_FILE_WHY]);

#endif
