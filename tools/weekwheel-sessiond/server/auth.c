/* The rights of clients: see auth.h. */
#include "tools/weekwheel-sessiond/server/auth.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "tools/common/message.h"
#include "tools/service/address.h"
#include "tools/service/state.h"
#include "tools/weekwheel-sessiond/server/mail.h"
#include "tools/weekwheel-sessiond/server/server.h"

void auth_start(struct sessiond *server)
{
	pthread_mutex_init(&server->auth.lock, NULL);
	server->auth.tokens = server->settings->tokens;
}

void auth_stop(struct sessiond *server)
{
	tokens_free(server->auth.tokens);
	server->auth.tokens = NULL;
	pthread_mutex_destroy(&server->auth.lock);
}

int auth_is_needed(const struct sessiond *server)
{
	return server->settings->auth_file || server->settings->password;
}

/* ---- A client */

static void take_token(struct conn *conn, struct tokens *tokens, const struct token *token)
{
	struct admission *auth = &conn->loop->server->auth;

	pthread_mutex_lock(&auth->lock);
	tokens_free(conn->auth.tokens);
	conn->auth.tokens = tokens ? tokens_hold(tokens) : NULL;
	conn->auth.token = token;
	pthread_mutex_unlock(&auth->lock);
}

void auth_begin(struct conn *conn)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;

	if (getpeername(conn->fd, (struct sockaddr *)&address, &size) == 0)
		conn->auth.from = address_key((struct sockaddr *)&address);
	conn->auth.is_known = !auth_is_needed(conn->loop->server);
	take_token(conn, NULL, NULL);
}

void auth_end(struct conn *conn)
{
	take_token(conn, NULL, NULL);
}

/* ---- Saying a token */

static void name_of(const struct conn *conn, char name[ADDRESS_TEXT])
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;

	(void)strcpy(name, "a Unix socket");
	if (getpeername(conn->fd, (struct sockaddr *)&address, &size) == 0 && address.ss_family != AF_UNIX)
		(void)address_show((struct sockaddr *)&address, name);
}

/* The log gets the 1st, 2nd, 4th, 8th, ... of an address. Returns how long the answer waits. The lock is held. */
static uint64_t failed(struct sessiond *server, const struct address_key *from, const char *name)
{
	uint32_t failures;
	uint64_t pause = culprit_failed(&server->auth.culprits, from, data_now(server->data), &failures);

	if ((failures & (failures - 1)) == 0)
		message_log(MESSAGE_WARNING, MESSAGE_FIELDS({"client", name, 0}, {"failures", NULL, failures}),
		    "a wrong token or password from %s, number %" PRIu32 " from there; the answer waits %" PRIu64
		    " ms, and so do others",
		    name, failures, pause / WW_MILLISECOND);
	return pause;
}

/* Takes as long whatever the password is. */
static int is_password(const char *password, const struct resp_arg *arg)
{
	size_t size = strlen(password);
	unsigned char differs = arg->size != size;

	for (size_t i = 0; i < arg->size; i++)
		differs |= (unsigned char)(arg->data[i] ^ password[size ? i % size : 0]);
	return !differs;
}

static int is_name(const struct resp_arg *user, const char *name)
{
	return user->size == strlen(name) && memcmp(user->data, name, user->size) == 0;
}

/* Look at it. The lock is held. */
static int is_right(
    struct conn *conn, const struct resp_arg *user, const struct resp_arg *secret, const unsigned char hash[TOKEN_HASH])
{
	struct sessiond *server = conn->loop->server;
	struct tokens *tokens = server->auth.tokens;
	const char *password = server->settings->password;
	const struct token *token = tokens ? tokens_find_hash(tokens, hash) : NULL;
	int is_default = !user || is_name(user, "default");

	if (password && is_default && is_password(password, secret))
		return 1;
	if (!token || (!is_default && !is_name(user, token->name)))
		return 0;
	tokens_free(conn->auth.tokens);
	conn->auth.tokens = tokens_hold(tokens);
	conn->auth.token = token;
	return 1;
}

/* In how many ns it may be looked at. The lock is held. */
static uint64_t turn_of(struct conn *conn, const unsigned char hash[TOKEN_HASH])
{
	struct culprits *culprits = &conn->loop->server->auth.culprits;

	if (conn->auth.is_turn || culprit_is_guest(culprits, &conn->auth.from, hash))
		return 0;
	return culprit_turn(culprits, &conn->auth.from, data_now(conn->loop->server->data));
}

/* A command is paused once. Two logins in one EXEC would need two pauses: such a client is closed. */
static void ask_pause(struct conn *conn, uint64_t ms)
{
	if (conn->pause_ms)
		conn_fail(conn);
	conn->pause_ms = ms;
}

enum auth_answer auth_login(struct conn *conn, const struct resp_arg *user, const struct resp_arg *secret)
{
	struct sessiond *server = conn->loop->server;
	unsigned char hash[TOKEN_HASH];
	char name[ADDRESS_TEXT];
	enum auth_answer answer = AUTH_RIGHT;
	uint64_t wait;

	if (!auth_is_needed(server))
		return !user || is_name(user, "default") ? AUTH_RIGHT : AUTH_WRONG;
	name_of(conn, name);
	(void)tokens_hash(secret->data, secret->size, hash);
	pthread_mutex_lock(&server->auth.lock);
	wait = turn_of(conn, hash);
	conn->auth.is_turn = wait > 0 && !conn->is_in_exec;
	if (wait > 0) {
		/* Inside EXEC a command cannot be deferred, so refuse the token. */
		answer = conn->is_in_exec ? AUTH_WRONG : AUTH_LATER;
	} else if (is_right(conn, user, secret, hash)) {
		culprit_welcome(&server->auth.culprits, &conn->auth.from, hash);
		conn->auth.is_known = 1;
	} else {
		answer = AUTH_WRONG;
		wait = failed(server, &conn->auth.from, name);
	}
	pthread_mutex_unlock(&server->auth.lock);
	if (wait == CULPRIT_CROWD) {
		state_seen("guesses",
		    "wrong tokens come from one address faster than they are looked at: more clients of it are closed; the first "
		    "came from %s",
		    name);
		conn_fail(conn);
	} else if (wait > 0) {
		ask_pause(conn, wait / WW_MILLISECOND + 1);
	}
	return answer;
}

/* ---- HTTP */

int auth_http(struct sessiond *server, const struct sockaddr *address, const char *field)
{
	static const char scheme[] = "Bearer ";
	struct address_key from = address_key(address);
	const struct token *token = NULL;
	unsigned char hash[TOKEN_HASH];
	struct resp_arg secret;
	char name[ADDRESS_TEXT];
	int status = 401;

	if (!auth_is_needed(server))
		return 0;
	if (!field || strncasecmp(field, scheme, sizeof scheme - 1) != 0)
		return 401;
	secret = (struct resp_arg){.data = field + sizeof scheme - 1, .size = strlen(field) - (sizeof scheme - 1)};
	(void)tokens_hash(secret.data, secret.size, hash);
	(void)address_show(address, name);
	pthread_mutex_lock(&server->auth.lock);
	if (culprit_rests(&server->auth.culprits, &from, data_now(server->data)) &&
	    !culprit_is_guest(&server->auth.culprits, &from, hash)) {
		pthread_mutex_unlock(&server->auth.lock);
		return 429;
	}
	token = server->auth.tokens ? tokens_find_hash(server->auth.tokens, hash) : NULL;
	if (token)
		status = token_may(token, RIGHT_READ, NULL) ? 0 : 403;
	else if (server->settings->password && is_password(server->settings->password, &secret))
		status = 0;
	if (status == 401)
		(void)failed(server, &from, name);
	else
		culprit_welcome(&server->auth.culprits, &from, hash);
	pthread_mutex_unlock(&server->auth.lock);
	return status;
}

/* ---- The file */

void auth_reload(struct sessiond *server)
{
	const char *path = server->settings->auth_file;
	struct tokens *former;
	struct tokens *tokens;
	char why[TOKEN_WHY];

	if (!path)
		return;
	tokens = tokens_read(path, why);
	if (!tokens) {
		message_error("the tokens stay as they were: --auth-file '%s': %s", path, why);
		return;
	}
	message_info("%zu tokens have been read; clients whose line has changed or is gone are closed", tokens->count);
	pthread_mutex_lock(&server->auth.lock);
	former = server->auth.tokens;
	server->auth.tokens = tokens;
	tokens_free(former);
	pthread_mutex_unlock(&server->auth.lock);
	mail_check_tokens(server);
}

int auth_renew(struct conn *conn)
{
	struct admission *auth = &conn->loop->server->auth;
	const struct token *old = conn->auth.token;
	const struct token *now;
	int is_same;

	if (!old)
		return 1;
	pthread_mutex_lock(&auth->lock);
	now = tokens_find_hash(auth->tokens, old->hash);
	is_same = now && strcmp(old->text, now->text) == 0;
	if (is_same) {
		struct tokens *former = conn->auth.tokens;
		conn->auth.tokens = tokens_hold(auth->tokens);
		conn->auth.token = now;
		tokens_free(former);
	}
	pthread_mutex_unlock(&auth->lock);
	return is_same;
}
