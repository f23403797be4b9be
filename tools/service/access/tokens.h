#ifndef TOOLS_SERVICE_ACCESS_TOKENS_H
#define TOOLS_SERVICE_ACCESS_TOKENS_H

/*
 * The file of --auth-file, with the rights of clients. A line has a name for the log, the SHA-256 of a token, and
 * grants:
 *
 *     NAME sha256:HEX RIGHT[,RIGHT...]:PATTERN[,PATTERN...] ...
 *     mailer sha256:9f86d0... work:mail,mail.* put:results
 *
 * A pattern is the name of a tube, or for weekwheel-sessiond of a key, in which "*" stands for any bytes. Empty lines
 * and lines that begin with # are ignored.
 */

#include <stddef.h>

enum right {
	RIGHT_READ = 1, /* look at jobs, with their bodies, or sessions, and at numbers */
	RIGHT_PUT = 2,  /* put jobs, and move or delete them by their keys; or as "write", change sessions */
	RIGHT_WORK = 4, /* reserve, end, delete, move and kick jobs */
	RIGHT_ADMIN = 8 /* pause tubes; includes all other rights */
};

enum { TOKEN_HASH = 32, TOKEN_LEAST = 16, TOKEN_MOST = 200, TOKEN_WHY = 200 };

struct grant {
	unsigned rights; /* RIGHT_... */
	const char *patterns;
};

struct token {
	const char *name;
	unsigned char hash[TOKEN_HASH];
	const char *text; /* its grants as the file has them */
	struct grant *grants;
	size_t grant_count;
};

struct tokens {
	size_t count;
	struct token *list;
	unsigned users; /* besides the first */
	char *memory;   /* what the names and patterns point into */
};

/* Read the file. Returns NULL if it is wrong, and in `why` a sentence with the number of the line and what to do. */
struct tokens *tokens_read(const char *path, char why[TOKEN_WHY]);

/* Hold and release the tokens. The last release frees them. */
struct tokens *tokens_hold(struct tokens *tokens);
void tokens_free(struct tokens *tokens);

/* Store the hash of a token's text. Returns 0, or -1 if no token has that length: the hash then matches none. */
int tokens_hash(const char *text, size_t length, unsigned char hash[TOKEN_HASH]);

/* Find a token by its hash; NULL: there is none. The time it takes depends on no token's bytes. */
const struct token *tokens_find_hash(const struct tokens *tokens, const unsigned char hash[TOKEN_HASH]);

/* Return 1 if the token has one of the rights in this tube; NULL: in every tube; "": in any tube. */
int token_may(const struct token *token, unsigned rights, const char *tube);

/* The name of a right, or of the first of several: what the token lacks. */
const char *tokens_right_name(unsigned rights);

#endif
