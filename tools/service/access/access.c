/* Who may use a server: see access.h. */
#include "tools/service/access/access.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "tools/common/message.h"
#include "tools/service/net/address.h"
#include "tools/service/state/state.h"
#include "weekwheel/driver.h"

static uint64_t now_of(const struct access *access)
{
	return access->now(access->context);
}

int access_is_needed(const struct access *access)
{
	return (access->file && !access->is_http_only) || access->password;
}

int access_http_is_needed(const struct access *access)
{
	return access->file || access->password;
}

/* ---- A client, and its token. The lock is held. */

static void take_token(struct access_client *client, struct tokens *tokens, const struct token *token)
{
	struct tokens *former = client->tokens;

	client->tokens = tokens ? tokens_hold(tokens) : NULL;
	client->token = token;
	tokens_free(former);
}

/* Takes the same time for every password. */
static int is_password(const char *password, const char *secret, size_t length)
{
	size_t size = strlen(password);
	unsigned char differs = length != size;

	for (size_t i = 0; i < length; i++)
		differs |= (unsigned char)(secret[i] ^ password[size ? i % size : 0]);
	return !differs;
}

static int is_short(const struct access *access)
{
	return access->password && strlen(access->password) < PASSWORD_LONG;
}

/* Compare it. */
static int is_right(struct access *access, struct access_client *client, const struct access_credentials *credentials)
{
	unsigned char hash[TOKEN_HASH];
	const struct token *token;

	if (!access->tokens)
		return !credentials->user && is_password(access->password, credentials->secret, credentials->size);
	(void)tokens_hash(credentials->secret, credentials->size, hash);
	token = tokens_find_hash(access->tokens, hash);
	if (!token || (credentials->user && (strlen(token->name) != credentials->user_size ||
	                                        memcmp(token->name, credentials->user, credentials->user_size) != 0)))
		return 0;
	take_token(client, access->tokens, token);
	return 1;
}

/* Log the 1st, 2nd, 4th, 8th, ... failure of an address. */
static void log_failure(const char *name, const char *what, uint32_t number)
{
	if ((number & (number - 1)) == 0)
		message_log(MESSAGE_WARNING, MESSAGE_FIELDS({"client", name, 0}, {"failures", NULL, number}),
		    "%s from %s, number %" PRIu32 " from there: answers to wrong ones wait longer and longer", what,
		    name, number);
}

static const char *wrong(const struct access *access)
{
	return access->password ? "a wrong password" : "a wrong token";
}

/* ---- Saying a token */

/* Its token is wrong: answer after the others from its address. `is_next` if their turn is over. */
static enum access_answer refuse(
    struct access *access, const struct access_client *client, const char *name, int is_next, uint64_t *wait)
{
	uint64_t now = now_of(access);
	uint64_t turn = is_next ? 0 : culprit_turn(&access->culprits, &client->from, now);
	uint32_t number;

	*wait = culprit_failed(&access->culprits, &client->from, turn == CULPRIT_CROWD ? now : now + turn, &number);
	*wait += turn == CULPRIT_CROWD ? 0 : turn;
	log_failure(name, wrong(access), number);
	return turn == CULPRIT_CROWD ? ACCESS_CROWD : ACCESS_WRONG;
}

static enum access_answer login(struct access *access, struct access_client *client, const char *name,
    const struct access_credentials *credentials, uint64_t *wait)
{
	int is_turn = client->is_turn;

	client->is_turn = 0;
	if (is_short(access) && !is_turn) {
		*wait = culprit_turn(&access->culprits, &client->from, now_of(access));
		client->is_turn = *wait > 0 && *wait != CULPRIT_CROWD;
		if (*wait > 0)
			return client->is_turn ? ACCESS_LATER : ACCESS_CROWD;
		is_turn = 1;
	}
	if (!is_right(access, client, credentials))
		return refuse(access, client, name, is_turn, wait);
	client->is_known = 1;
	return ACCESS_RIGHT;
}

enum access_answer access_login(struct access *access, struct access_client *client, const char *name,
    const struct access_credentials *credentials, uint64_t *wait)
{
	enum access_answer answer;

	*wait = 0;
	if (!access_is_needed(access))
		return ACCESS_RIGHT;
	pthread_mutex_lock(&access->lock);
	answer = login(access, client, name, credentials, wait);
	pthread_mutex_unlock(&access->lock);
	if (answer == ACCESS_CROWD)
		state_seen("guesses",
		    "wrong tokens or passwords come from one address faster than they are answered: more clients of it that send "
		    "them are closed; the first came from %s",
		    name);
	return answer;
}

uint64_t access_failed(struct access *access, const struct access_client *client, const char *name, const char *what)
{
	uint32_t number;
	uint64_t wait;

	pthread_mutex_lock(&access->lock);
	wait = culprit_failed(&access->culprits, &client->from, now_of(access), &number);
	pthread_mutex_unlock(&access->lock);
	log_failure(name, what, number);
	return wait;
}

/* ---- HTTP */

/* HTTP answers never wait. While an address rests, wrong tokens are counted but do not lengthen the rest. */
static int refuse_http(
    struct access *access, const struct access_client *client, const struct sockaddr *address, int rests)
{
	char name[ADDRESS_TEXT];
	uint32_t number;

	(void)address_show(address, name);
	if (rests)
		number = culprit_again(&access->culprits, &client->from, now_of(access));
	else
		(void)culprit_failed(&access->culprits, &client->from, now_of(access), &number);
	log_failure(name, wrong(access), number);
	return rests ? 429 : 401;
}

int access_http(struct access *access, struct access_client *client, const struct sockaddr *address, const char *field,
    unsigned *rest)
{
	static const char scheme[] = "Bearer ";
	struct access_credentials credentials = {.user = NULL};
	uint64_t rests;
	int status = 0;

	access_enter(access, client, address);
	client->is_known = !access_http_is_needed(access);
	if (client->is_known)
		return 0;
	if (!field || strncasecmp(field, scheme, sizeof scheme - 1) != 0)
		return 401;
	credentials.secret = field + sizeof scheme - 1;
	credentials.size = strlen(credentials.secret);
	pthread_mutex_lock(&access->lock);
	rests = culprit_rests(&access->culprits, &client->from, now_of(access));
	*rest = (unsigned)((rests + WW_SECOND - 1) / WW_SECOND);
	if (rests && is_short(access))
		status = 429;
	else if (!is_right(access, client, &credentials))
		status = refuse_http(access, client, address, rests > 0);
	pthread_mutex_unlock(&access->lock);
	client->is_known = status == 0;
	return status;
}

/* ---- Beginning and end */

void access_start(struct access *access, const char *file, struct tokens *tokens, const char *password)
{
	pthread_mutex_init(&access->lock, NULL);
	access->file = file;
	access->tokens = tokens;
	access->password = password;
}

void access_stop(struct access *access)
{
	tokens_free(access->tokens);
	access->tokens = NULL;
	pthread_mutex_destroy(&access->lock);
}

int access_reload(struct access *access)
{
	struct tokens *tokens;
	struct tokens *former;
	char why[TOKEN_WHY];

	if (!access->file)
		return 0;
	tokens = tokens_read(access->file, why);
	if (!tokens)
		return message_error("the tokens stay as they were: --%sauth-file '%s': %s",
		    access->is_http_only ? "http-" : "", access->file, why);
	pthread_mutex_lock(&access->lock);
	former = access->tokens;
	access->tokens = tokens;
	tokens_free(former);
	pthread_mutex_unlock(&access->lock);
	return 1;
}

void access_enter(struct access *access, struct access_client *client, const struct sockaddr *address)
{
	access_leave(access, client);
	client->from = address_key(address);
	client->is_known = !access_is_needed(access);
}

void access_leave(struct access *access, struct access_client *client)
{
	client->is_known = client->is_turn = 0;
	if (!client->tokens)
		return;
	pthread_mutex_lock(&access->lock);
	take_token(client, NULL, NULL);
	pthread_mutex_unlock(&access->lock);
}

int access_renew(struct access *access, struct access_client *client)
{
	const struct token *old = client->token;
	const struct token *now;
	int is_same;

	if (!old)
		return 1;
	pthread_mutex_lock(&access->lock);
	now = tokens_find_hash(access->tokens, old->hash);
	is_same = now && strcmp(old->text, now->text) == 0;
	if (is_same)
		take_token(client, access->tokens, now);
	pthread_mutex_unlock(&access->lock);
	return is_same;
}
