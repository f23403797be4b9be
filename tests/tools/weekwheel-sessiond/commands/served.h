#ifndef TESTS_TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_SERVED_H
#define TESTS_TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_SERVED_H

/*
 * A server in this process, with one loop that runs only while a client asks: its clients are pairs of sockets, and its clock is
 * virtual, so nothing waits. Each test begins a server and ends it.
 */

#include <stddef.h>

enum { SERVED_CLIENTS = 8 };

/*
 * What a client sends, and what it hears until the server has nothing more to do: its own answers, and what was sent to it
 * since. "1> GET a" is of client 1, and "GET a" of client 0; "1> " only listens. Ends of lines are shown as blanks. "*" at the
 * end of what is heard stands for any rest, and NULL for a closed connection.
 */
struct served_row {
	const char *line;
	const char *heard;
};

/* Serve with these options of the command line, up to NULL. */
void served_begin(const char *option, ...);
void served_end(void);

/* What is heard after this line, until the next call; NULL: the client is closed. */
const char *served_ask(const char *line);
/* The same for bytes of a client. */
const char *served_send(int client, const void *bytes, size_t size);

void served_check_some(const struct served_row *rows, size_t count);
#define SERVED_CHECK(rows) served_check_some(rows, sizeof rows / sizeof *rows)
/* All rows of an array, at a server of its own with these options, up to NULL. */
#define SERVED_STORY(rows, ...) (served_begin(__VA_ARGS__), SERVED_CHECK(rows), served_end())

/* The server itself. */
struct sessiond *served_server(void);

#endif
