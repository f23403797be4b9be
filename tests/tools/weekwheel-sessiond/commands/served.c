/* A server without a thread of its own, for tests of its commands: see served.h. */
#include "tests/tools/weekwheel-sessiond/commands/served.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/commands/events.h"
#include "tools/weekwheel-sessiond/keep/keep.h"
#include "tools/weekwheel-sessiond/serve.h"

enum { OPTIONS = 16, PIECE = 65536 };

static struct sessiond server;
static struct sessiond_settings settings;
static struct loop *loop;
static struct {
	int fd; /* 0: it has not come yet; -1: it is closed */
	uint64_t id;
} client[SERVED_CLIENTS];
static struct buffer heard;

struct sessiond *served_server(void)
{
	return &server;
}

/* ---- Beginning and ending */

static void read_settings(const char *option, va_list more)
{
	char *words[OPTIONS] = {"--clock", "virtual"};
	int count = 2;

	for (; option; option = va_arg(more, const char *)) {
		ck_assert_int_lt(count, OPTIONS - 1);
		words[count++] = (char *)(uintptr_t)option;
	}
	ck_assert_int_eq(sessiond_settings_read(&settings, words), 0);
}

static void open_data(void)
{
	const struct data_config config = {.databases = (unsigned)settings.databases,
	    .lifetime = settings.lifetime,
	    .has_lifetimes = settings.has_lifetimes,
	    .keeps_lifetimes = settings.keeps_lifetimes,
	    .stays_ended = settings.stays_ended,
	    .memory = settings.memory,
	    .policy = (enum data_policy)settings.policy,
	    .is_virtual = 1,
	    .gone = event_gone,
	    .context = &server};

	ck_assert_int_eq(data_open(&server.data, &config), WW_OK);
	if (!settings.folder)
		return;
	server.outbox = outbox_open(1 << 20);
	server.keep = keep_open(server.data, &(struct keep_config){.folder = settings.folder,
	                                         .sync = KEEP_SYSTEM,
	                                         .interval = WW_SECOND,
	                                         .grows = UINT64_C(1) << 30,
	                                         .outbox = server.outbox});
	ck_assert_ptr_nonnull(server.keep);
}

void served_begin(const char *option, ...)
{
	va_list more;
	unsigned events = 0;

	server = (struct sessiond){.settings = &settings};
	settings = (struct sessiond_settings){0};
	va_start(more, option);
	read_settings(option, more);
	va_end(more);
	commands_start();
	if (settings.events)
		ck_assert_int_eq(events_read(settings.events, strlen(settings.events), &events), 0);
	events_set(events);
	auth_start(&server);
	crowd_begin(&server.crowd, "max-connections-per-address", 0);
	open_data();
	server.started_ms = data_steady_ms(server.data);
	loop = aligned_alloc(64, sizeof *loop);
	ck_assert_ptr_nonnull(loop);
	*loop = (struct loop){0};
	server.loop = loop;
	server.loop_count = 1;
	ck_assert_int_eq(loop_start(&server, loop, 0), 0);
	mail_begin_here(loop);
}

static void leave(int number)
{
	if (client[number].fd > 0)
		ck_assert_int_eq(close(client[number].fd), 0);
	client[number].fd = 0;
}

void served_end(void)
{
	for (int i = 0; i < SERVED_CLIENTS; i++)
		leave(i);
	while (!LIST_EMPTY(&loop->conns))
		(void)uv_run(&loop->uv, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&loop->prepare, NULL);
	data_leave(server.data);
	ck_assert_int_eq(keep_close(server.keep), 0);
	data_close(server.data);
	outbox_close(server.outbox);
	loop_free(loop);
	free(loop);
	access_stop(&server.access);
	buffer_free(&heard);
}

/* ---- Clients */

static void come(int number)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	server.clients++;
	conn_begin(loop, &(struct arrival){.fd = pair[0]});
	client[number].fd = pair[1];
	client[number].id = server.client_ids;
}

static const struct conn *conn_of(int number)
{
	const struct conn *conn;

	LIST_FOREACH(conn, &loop->conns, next)
	{
		if (conn->id == client[number].id)
			return conn;
	}
	return NULL;
}

/* Take what was sent to the client. Returns 1 if that was something. */
static int listen_to(int number)
{
	ssize_t got;
	int some = 0;

	do {
		ck_assert_int_eq(buffer_reserve(&heard, PIECE), 0);
		got = read(client[number].fd, heard.data + heard.size, PIECE - 1);
		if (got > 0)
			heard.size += (size_t)got;
		some |= got > 0;
	} while (got > 0);
	return some;
}

static int is_busy(const struct conn *conn)
{
	return conn && (conn->walk || conn->hold || conn->is_in_flush || stream_is_unsent(&conn->stream));
}

static void run(int number)
{
	do
		(void)uv_run(&loop->uv, UV_RUN_NOWAIT);
	while (listen_to(number) || is_busy(conn_of(number)));
}

/* As a text without ends of lines. */
static void show(void)
{
	size_t size = 0;

	for (size_t i = 0; i < heard.size; i++) {
		char byte = heard.data[i];
		if (byte == '\n' && size > 0 && heard.data[size - 1] == ' ')
			continue;
		heard.data[size++] = (char)(byte == '\r' || byte == '\n' || byte == 0 ? ' ' : byte);
	}
	while (size > 0 && heard.data[size - 1] == ' ')
		size--;
	heard.data[size] = 0;
	heard.size = size;
}

const char *served_send(int number, const void *bytes, size_t size)
{
	const char *from = bytes;

	if (client[number].fd == 0)
		come(number);
	heard.size = 0;
	while (size > 0) {
		ssize_t sent = send(client[number].fd, from, size, MSG_NOSIGNAL);
		if (sent > 0) {
			from += sent;
			size -= (size_t)sent;
		} else if (!conn_of(number)) {
			return NULL;
		}
		run(number);
	}
	run(number);
	if (!conn_of(number) && heard.size == 0)
		return NULL;
	show();
	return heard.data;
}

const char *served_ask(const char *line)
{
	char text[PIECE];
	int has_number = *line && line[1] == '>';
	int number = has_number ? *line - '0' : 0;
	int length;

	line += has_number ? 3 : 0;
	length = snprintf(text, sizeof text, "%s%s", line, *line ? "\r\n" : "");
	ck_assert_int_lt(length, (int)sizeof text);
	return served_send(number, text, (size_t)length);
}

static int is_as_expected(const char *got, const char *expected)
{
	size_t length = expected ? strlen(expected) : 0;

	if (!got || !expected)
		return got == expected;
	if (length > 0 && expected[length - 1] == '*')
		return strncmp(got, expected, length - 1) == 0;
	return strcmp(got, expected) == 0;
}

void served_check_some(const struct served_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *got = served_ask(rows[i].line);
		ck_assert_msg(is_as_expected(got, rows[i].heard), "row %zu: '%s' is answered '%s', not '%s'", i,
		    rows[i].line, got ? got : "(closed)", rows[i].heard ? rows[i].heard : "(closed)");
	}
}
