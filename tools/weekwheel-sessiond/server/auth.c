/* Clients log in: see auth.h. */
#include "tools/weekwheel-sessiond/server/auth.h"

#include <string.h>
#include <sys/socket.h>

#include "tools/common/message.h"
#include "tools/service/net/address.h"
#include "tools/weekwheel-sessiond/server/mail.h"
#include "tools/weekwheel-sessiond/server/server.h"

static uint64_t now(void *context)
{
	const struct sessiond *server = context;

	return data_now(server->data);
}

void auth_start(struct sessiond *server)
{
	server->access.now = now;
	server->access.context = server;
	server->access.is_http_only = server->settings->is_http_only;
	access_start(
	    &server->access, server->settings->auth_file, server->settings->tokens, server->settings->password);
}

void auth_reload(struct sessiond *server)
{
	if (access_reload(&server->access) != 1)
		return;
	message_info("%zu tokens have been read; clients whose line has changed or is gone are closed",
	    server->access.tokens->count);
	mail_check_tokens(server);
}

void auth_begin(struct conn *conn)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;

	(void)getpeername(conn->stream.fd, (struct sockaddr *)&address, &size);
	access_enter(&conn->loop->server->access, &conn->auth, (struct sockaddr *)&address);
}

static void name_of(const struct conn *conn, char name[ADDRESS_TEXT])
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;

	(void)strcpy(name, "a Unix socket");
	if (getpeername(conn->stream.fd, (struct sockaddr *)&address, &size) == 0 && address.ss_family != AF_UNIX)
		(void)address_show((struct sockaddr *)&address, name);
}

/* A command is paused once. Two logins in one EXEC would need two pauses: such a client is closed. */
static void ask_pause(struct conn *conn, uint64_t ms)
{
	if (conn->pause_ms)
		conn_fail(conn);
	conn->pause_ms = ms;
}

enum access_answer auth_login(struct conn *conn, const struct resp_arg *user, const struct resp_arg *secret)
{
	struct access *access = &conn->loop->server->access;
	int is_default = !user || (user->size == strlen("default") && memcmp(user->data, "default", user->size) == 0);
	struct access_credentials credentials = {
	    is_default ? NULL : user->data, is_default ? 0 : user->size, secret->data, secret->size};
	enum access_answer answer;
	char name[ADDRESS_TEXT];
	uint64_t wait;

	if (!access_is_needed(access))
		return is_default ? ACCESS_RIGHT : ACCESS_WRONG;
	name_of(conn, name);
	answer = access_login(access, &conn->auth, name, &credentials, &wait);
	if (answer == ACCESS_CROWD)
		conn_fail(conn);
	else if (wait > 0)
		ask_pause(conn, wait / WW_MILLISECOND + 1);
	/* Inside EXEC a command cannot be deferred, so refuse the password. */
	if (answer == ACCESS_LATER && conn->is_in_exec) {
		conn->auth.is_turn = 0;
		answer = ACCESS_WRONG;
	}
	return answer;
}
