#ifndef TOOLS_SERVICE_ACCESS_ACCESS_H
#define TOOLS_SERVICE_ACCESS_ACCESS_H

/*
 * Who may use a server: clients that have given a token of its file, or its one password. What a token grants is
 * decided where a server knows what a command does (tokens.h).
 *
 * Guessers are slowed by their address (culprit.h), and right clients may work behind the same address, at a proxy. So:
 *
 * * A token, or a password of PASSWORD_LONG bytes or more, is compared at once. A right one gets in at once, and the
 *   answer to a wrong one waits. This wait costs a guesser its connections, but not its pace: silence says "wrong",
 *   too. The pace is of no use to it. "weekwheel token" makes 256 random bits, and a million guesses a second find
 *   none of them.
 * * A shorter password is compared in a turn, when its address does not rest. A guesser that learns from silence
 *   would try all of them in hours. A right one therefore waits as wrong ones do, and so does one that came from there
 *   before: a guesser behind the same address would find it by that. To avoid the wait, take a longer password.
 *
 * Any thread may call all of these functions.
 */

#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tools/service/access/culprit.h"
#include "tools/service/access/tokens.h"

/* A shorter password may be words that people choose. */
enum { PASSWORD_LONG = 32 };

/* A server's. */
struct access {
	pthread_mutex_t lock; /* of tokens and culprits, and of the tokens of all clients */
	struct tokens *tokens;
	const char *file;     /* the file they are read from; NULL if there is none */
	const char *password; /* NULL: none */
	int is_http_only;     /* the tokens are for HTTP, and other clients need none */
	struct culprits culprits;
	uint64_t (*now)(void *context); /* ns of the clock that pauses are measured by */
	void *context;
};

/* A client's. */
struct access_client {
	struct tokens *tokens;     /* those that `token` is one of; held */
	const struct token *token; /* NULL: it has sent none, or the password */
	struct address_key from;
	int is_known; /* it has sent a right one, or none is needed */
	int is_turn;  /* its password will be compared after the wait */
};

/* What a client says. */
struct access_credentials {
	const char *user; /* the user whose token it must be, of user_size bytes; NULL: anyone's */
	size_t user_size;
	const char *secret;
	size_t size;
};

enum access_answer {
	ACCESS_WRONG, /* answer after the wait */
	ACCESS_RIGHT,
	ACCESS_LATER, /* the token has to be sent again after the wait */
	ACCESS_CROWD  /* close it: too many of its address wait already. This has been logged. */
};

/* The tokens become the struct's. Both strings have to stay. */
void access_start(struct access *access, const char *file, struct tokens *tokens, const char *password);
void access_stop(struct access *access);

/* Whether clients must send a token or the password; and whether a request over HTTP must. */
int access_is_needed(const struct access *access);
int access_http_is_needed(const struct access *access);

/* Read the file again. Returns 1, 0 if there is none, or -1 after a message: a wrong file changes nothing. */
int access_reload(struct access *access);

/* A client of this address begins, or is reset; and ends. The struct is zeroed before. */
void access_enter(struct access *access, struct access_client *client, const struct sockaddr *address);
void access_leave(struct access *access, struct access_client *client);

/* After a reload: the client's token is what the file now says of it. Returns 1, or 0 if its line has changed or is gone. */
int access_renew(struct access *access, struct access_client *client);

/* A client sends a token or the password; the name is for the log. Stores in *wait how long the answer waits, in ns. */
enum access_answer access_login(struct access *access, struct access_client *client, const char *name,
    const struct access_credentials *credentials, uint64_t *wait);

/* A client behaved like a guesser; `what` names how. Return how long its address rests, in ns. */
uint64_t access_failed(struct access *access, const struct access_client *client, const char *name, const char *what);

/*
 * A request over HTTP, by its field Authorization, or NULL. It becomes a client, which access_leave ends. Returns 0;
 * 401 if it needs a right token; or 429 if its address rests, with the seconds in *rest.
 */
int access_http(struct access *access, struct access_client *client, const struct sockaddr *address, const char *field,
    unsigned *rest);

#endif
