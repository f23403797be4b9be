/* Reads the file of tokens, finds a token, and decides what it may do. */
#include "tools/service/access/tokens.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/small_file.h"
#include "tools/common/tube.h"
#include "weekwheel/jobs.h"

enum { TOKENS_MAX = 10000, NAME_MOST = 64 };

#define HASH_PREFIX "sha256:"

__attribute__((format(printf, 2, 3))) static int refuse(char why[TOKEN_WHY], const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, TOKEN_WHY, format, arguments);
	va_end(arguments);
	return -1;
}

/* ---- A line */

static int hex_digit(char byte)
{
	return byte >= '0' && byte <= '9' ? byte - '0' : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static int read_hash(const char *word, unsigned char hash[TOKEN_HASH])
{
	size_t prefix = strlen(HASH_PREFIX);

	if (strncmp(word, HASH_PREFIX, prefix) != 0 || strlen(word) != prefix + 2 * (size_t)TOKEN_HASH)
		return -1;
	for (int i = 0; i < TOKEN_HASH; i++) {
		int high = hex_digit(word[prefix + 2 * (size_t)i]);
		int low = hex_digit(word[prefix + 2 * (size_t)i + 1]);

		if (high < 0 || low < 0)
			return -1;
		hash[i] = (unsigned char)(high << 4 | low);
	}
	return 0;
}

/* Read "put,work", which ends at `end`. Returns the rights, or 0 if one is unknown. */
static unsigned read_rights(const char *at, const char *end)
{
	static const struct {
		const char *name;
		unsigned right;
	} names[] = {{"read", RIGHT_READ}, {"put", RIGHT_PUT}, {"write", RIGHT_PUT}, {"work", RIGHT_WORK},
	    {"admin", RIGHT_READ | RIGHT_PUT | RIGHT_WORK | RIGHT_ADMIN}};
	unsigned rights = 0;

	for (; at <= end; at++) {
		size_t length = strcspn(at, ",:");
		unsigned right = 0;

		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (strlen(names[i].name) == length && memcmp(at, names[i].name, length) == 0)
				right = names[i].right;
		if (!right)
			return 0;
		rights |= right;
		at += length;
	}
	return rights;
}

static int read_grant(const char *word, struct grant *grant, char why[TOKEN_WHY])
{
	const char *colon = strchr(word, ':');

	grant->rights = colon ? read_rights(word, colon) : 0;
	if (!grant->rights)
		return refuse(why,
		    "'%.40s' does not begin with rights, which are read, put (or write), work, admin, and a colon",
		    word);
	grant->patterns = colon + 1;
	if (!tube_are_patterns(grant->patterns))
		return refuse(why,
		    "'%.40s' has to end in names of tubes or keys with commas between, where * stands for any bytes",
		    word);
	return 0;
}

static char *next_word(char **line)
{
	char *word;

	do
		word = strsep(line, " \t\r");
	while (word && !*word);
	return word;
}

/* Read the rest of a line. */
static int read_grants(struct token *token, char *line, char why[TOKEN_WHY])
{
	char *word;

	while ((word = next_word(&line)) != NULL) {
		struct grant *more = realloc(token->grants, (token->grant_count + 1) * sizeof *more);

		if (!more)
			return refuse(why, "there is no memory for it");
		token->grants = more;
		if (read_grant(word, &more[token->grant_count], why) != 0)
			return -1;
		token->grant_count++;
	}
	return token->grant_count ? 0 : refuse(why, "it grants nothing: add some, such as put,work:mail.*");
}

static int read_token(struct tokens *tokens, char *line, char *copy, char why[TOKEN_WHY])
{
	struct token *token = &tokens->list[tokens->count];
	char *hash;

	memset(token, 0, sizeof *token);
	token->name = next_word(&line);
	hash = line ? next_word(&line) : NULL;
	if (strlen(token->name) > NAME_MOST || strspn(token->name, TUBE_BYTES "@") != strlen(token->name))
		return refuse(why, "a name has up to 64 letters, digits and - . _ @");
	/* The message does not show the word, which may be a token. */
	if (!hash || read_hash(hash, token->hash) != 0)
		return refuse(why,
		    "after the name stands sha256: and 64 digits of 0-9a-f; \"weekwheel token\" makes such a line");
	if (tokens_find_hash(tokens, token->hash))
		return refuse(why, "an earlier line has the same token: put all grants of a token into one line");
	tokens->count++;
	token->text = line ? copy + (line - token->name) : "";
	return read_grants(token, line, why);
}

/* ---- The file */

static struct tokens *parse(const char *text, size_t size, char why[TOKEN_WHY])
{
	struct tokens *tokens = calloc(1, sizeof *tokens);
	char *rest;
	int number = 0;
	int bad = 0;

	/* Words are cut out of the first copy; the second keeps the lines. */
	if (tokens) {
		tokens->list = calloc(TOKENS_MAX, sizeof *tokens->list);
		tokens->memory = malloc(2 * (size + 1));
	}
	if (!tokens || !tokens->list || !tokens->memory) {
		(void)refuse(why, "there is no memory for it");
		tokens_free(tokens);
		return NULL;
	}
	memcpy(tokens->memory, text, size + 1);
	memcpy(tokens->memory + size + 1, text, size + 1);
	for (char *at = tokens->memory + size + 1; *at; at++)
		if (*at == '\n')
			*at = 0;
	rest = tokens->memory;
	while (rest && bad == 0) {
		char reason[TOKEN_WHY];
		char *line = strsep(&rest, "\n");

		number++;
		line += strspn(line, " \t\r");
		if (!*line || *line == '#')
			continue;
		bad = tokens->count == TOKENS_MAX ? refuse(reason, "there are too many tokens")
		                                  : read_token(tokens, line, line + size + 1, reason);
		if (bad)
			snprintf(why, TOKEN_WHY, "line %d: %.180s", number, reason);
	}
	if (bad == 0 && tokens->count == 0)
		bad = refuse(why, "it has no token; \"weekwheel token\" makes one");
	if (bad == 0)
		return tokens;
	tokens_free(tokens);
	return NULL;
}

struct tokens *tokens_read(const char *path, char why[TOKEN_WHY])
{
	struct tokens *tokens = NULL;
	struct small_file file;
	char reason[SMALL_FILE_WHY];

	if (small_file_read(&file, path, SMALL_FILE_WHOLE, 0, reason))
		(void)refuse(why, "%s", reason);
	else if (file.mode & 027)
		(void)refuse(why, "others may read or write it: \"chmod 600\" ends that");
	else
		tokens = parse(file.text, file.size, why);
	free(file.text);
	return tokens;
}

struct tokens *tokens_hold(struct tokens *tokens)
{
	tokens->users++;
	return tokens;
}

void tokens_free(struct tokens *tokens)
{
	if (!tokens || tokens->users-- > 0)
		return;
	for (size_t i = 0; i < tokens->count; i++)
		free(tokens->list[i].grants);
	free(tokens->list);
	free(tokens->memory);
	free(tokens);
}

/* ---- Who it is, and what it may do */

const struct token *tokens_find_hash(const struct tokens *tokens, const unsigned char hash[TOKEN_HASH])
{
	const struct token *found = NULL;

	for (size_t i = 0; i < tokens->count; i++)
		if (CRYPTO_memcmp(tokens->list[i].hash, hash, TOKEN_HASH) == 0)
			found = &tokens->list[i];
	return found;
}

int tokens_hash(const char *text, size_t length, unsigned char hash[TOKEN_HASH])
{
	int is_possible = length >= TOKEN_LEAST && length <= TOKEN_MOST;

	/* No other text with the same hash is known. */
	(void)SHA256((const unsigned char *)text, length, hash);
	for (int i = 0; !is_possible && i < TOKEN_HASH; i++)
		hash[i] ^= 0xff;
	return is_possible ? 0 : -1;
}

/* Match a tube with a pattern that ends at a comma or NUL. After a failure behind a "*", this takes one byte more. */
static int pattern_matches(const char *pattern, const char *tube)
{
	const char *star = NULL;
	const char *taken = NULL;

	for (;;) {
		int is_end = *pattern == 0 || *pattern == ',';

		if (!is_end && *pattern == '*') {
			star = ++pattern;
			taken = tube;
		} else if (*tube && !is_end && *pattern == *tube) {
			pattern++;
			tube++;
		} else if (!*tube) {
			return is_end;
		} else if (star) {
			pattern = star;
			tube = ++taken;
		} else {
			return 0;
		}
	}
}

static int is_every(const char *pattern)
{
	return pattern[0] == '*' && (pattern[1] == 0 || pattern[1] == ',');
}

static int grant_covers(const struct grant *grant, const char *tube)
{
	const char *pattern = grant->patterns;

	if (tube && !*tube)
		return 1;
	for (;;) {
		if (tube ? pattern_matches(pattern, tube) : is_every(pattern))
			return 1;
		pattern = strchr(pattern, ',');
		if (!pattern)
			return 0;
		pattern++;
	}
}

int token_may(const struct token *token, unsigned rights, const char *tube)
{
	for (size_t i = 0; i < token->grant_count; i++)
		if (token->grants[i].rights & rights && grant_covers(&token->grants[i], tube))
			return 1;
	return 0;
}

const char *tokens_right_name(unsigned rights)
{
	static const char *const names[] = {"read", "put", "work", "admin"};
	unsigned first = 0;

	while (first < 3 && !(rights >> first & 1))
		first++;
	return names[first];
}
