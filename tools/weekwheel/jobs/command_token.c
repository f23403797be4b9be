/* The command token: makes a token, and its line for a server's --auth-file. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/command.h"
#include "tools/common/json.h"
#include "tools/common/message.h"
#include "tools/common/suggest.h"
#include "tools/common/tube.h"
#include "tools/weekwheel/jobs/jobs.h"

enum { FILE_OPTION = 1, BYTES = 32, GRANTS_MAX = 32, NAME_MOST = 64 };

struct making {
	const char *path;
	const char *name;
	const char *grants[GRANTS_MAX];
	size_t count;
	int json;
};

static const struct option table[] = {
    {JOBS_FLAG(struct making, json), 'j', "json", NULL, "write the parts of the line as a JSON object"},
    {FILE_OPTION, 0, "token-file", "FILE", "the file that gets the token; it must not exist"},
    JOBS_HELP_OPTION,
};

static int refuse_right(const struct options *options, const char *word, size_t length)
{
	static const char *const rights[] = {"read", "put", "write", "work", "admin"};
	char typed[40];
	const char *meant;

	snprintf(typed, sizeof typed, "%.*s", (int)length, word);
	for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
		if (strcmp(rights[i], typed) == 0)
			return 0;
	meant = suggest(typed, rights, sizeof rights / sizeof *rights);
	return options_fail(options,
	    "'%s': '%s' is not a right; the rights are read, put or write, work and admin%s%s%s", options->value, typed,
	    meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
}

/* A server would refuse the whole file for it. */
static int check_grant(const struct options *options, const char *value)
{
	size_t length;

	for (const char *at = value;; at += length + 1) {
		length = strcspn(at, ",:");
		if (refuse_right(options, at, length))
			return OPTIONS_ERROR;
		if (at[length] == ':') {
			value = at + length + 1;
			break;
		}
	}
	if (tube_are_patterns(value))
		return 0;
	return options_fail(options,
	    "'%s': expected names of tubes or keys behind the colon, with commas between; * stands for any bytes",
	    options->value);
}

static int take_name(struct making *making, const struct options *options)
{
	making->name = options->value;
	if (strlen(making->name) <= NAME_MOST && strspn(making->name, TUBE_BYTES "@") == strlen(making->name))
		return 0;
	return options_fail(options, "'%s': expected a name of up to 64 letters, digits and - . _ @", making->name);
}

static int take_option(void *context, struct options *options, int id)
{
	struct making *making = context;
	const char *value = options->value;

	if (id == FILE_OPTION) {
		making->path = value;
		return 0;
	}
	if (!*value || (making->name && !strchr(value, ':')))
		return options_fail(options, "'%s': expected %s", value,
		    making->name ? "rights and tubes, such as put,work:mail.*" : "a name");
	if (!making->name)
		return take_name(making, options);
	if (check_grant(options, value))
		return OPTIONS_ERROR;
	if (making->count == GRANTS_MAX)
		return options_fail(options, "'%s': at most 32 grants", value);
	making->grants[making->count++] = value;
	return 0;
}

static int check(void *context, const struct options *options)
{
	const struct making *making = context;

	if (!making->name || making->count == 0)
		return options_fail(options, "a name and what it may do are missing, such as: mailer work:mail");
	return making->path ? 0 : options_fail(options, "--token-file FILE is missing: the token is written there");
}

static void hex(const unsigned char *bytes, char text[2 * BYTES + 1])
{
	for (int i = 0; i < BYTES; i++)
		sprintf(text + (size_t)2 * (size_t)i, "%02x", bytes[i]);
}

static int write_token(const char *path, const char *token)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int bad = fd < 0 || dprintf(fd, "%s\n", token) < 0 || fsync(fd) != 0;

	if (fd >= 0)
		bad |= close(fd) != 0;
	return bad ? message_error("token: %s cannot be made: %s", path, strerror(errno)) : 0;
}

static void write_line(const struct making *making, const char *hash)
{
	printf("%s sha256:%s", making->name, hash);
	for (size_t i = 0; i < making->count; i++)
		printf(" %s", making->grants[i]);
	putchar('\n');
}

/* Neither names nor grants have a character that JSON escapes. */
static void write_json(const struct making *making, const char *hash)
{
	printf("{\"name\": \"%s\", \"hash\": \"sha256:%s\", \"grants\": [", making->name, hash);
	for (size_t i = 0; i < making->count; i++)
		printf("%s\"%s\"", i ? ", " : "", making->grants[i]);
	puts("]}");
}

static int run(void *context)
{
	const struct making *making = context;
	unsigned char bytes[BYTES];
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char text[2 * BYTES + 1];

	if (RAND_bytes(bytes, sizeof bytes) != 1)
		return message_error("token: the system gives no random bytes");
	hex(bytes, text);
	(void)SHA256((const unsigned char *)text, strlen(text), hash);
	if (write_token(making->path, text) != 0)
		return -1;
	hex(hash, text);
	(making->json ? write_json : write_line)(making, text);
	return STATUS_OK;
}

const struct jobs_command command_token = {
    .name = "weekwheel token",
    JOBS_TABLE(table),
    .context = &(struct making){.path = NULL},
    .server = JOBS_NO_SERVER,
    .take = take_option,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel token --token-file FILE NAME RIGHT[,RIGHT...]:TUBE[,TUBE...]...\n"
             "\n"
             "Make a token in FILE, and write its line for the file of weekwheeld --auth-file.\n"
             "The line has only the token's hash. Rights are read, put, work and admin, for\n"
             "weekwheel-sessiond read, write and admin, with keys for tubes; * in a\n"
             "tube's name stands for any bytes.\n",
    .examples = "Examples:\n"
                "  weekwheel token --token-file mailer.token mailer work:mail put:bounces >>tokens\n"
                "  weekwheel work --token-file mailer.token --tube mail -- ./send\n",
};
