/* The token that a client says to its server: where it is from, and how it is said. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/common/small_file.h"
#include "tools/weekwheel/jobs/jobs.h"

/* Anything else could end the command and begin another. */
static int is_token(const char *text)
{
	size_t length = strlen(text);

	for (const char *at = text; *at; at++)
		if (*at <= ' ' || *at > '~')
			return 0;
	return length >= JOBS_TOKEN_LEAST && length <= JOBS_TOKEN_MOST;
}

#define EXPECTED "16 to 200 printable bytes without a space, as 'weekwheel token' makes them"

/* The messages do not show what was read. */
static int read_file(const struct options *options, char token[JOBS_TOKEN_MOST + 1])
{
	struct small_file file;
	char why[SMALL_FILE_WHY];
	int is_right;

	if (small_file_read(&file, options->value, SMALL_FILE_LINE, SMALL_FILE_WAIT_MS, why))
		return options_fail(options, "--token-file %s: %s", options->value, why);
	if (file.mode & 077)
		message_line("weekwheel: warning: others may read %s: \"chmod 600\" keeps it secret", options->value);
	is_right = is_token(file.text);
	if (is_right)
		memcpy(token, file.text, file.size + 1);
	free(file.text);
	return is_right ? 0
	                : options_fail(options, "--token-file %s: expected a file whose first line is %s",
	                      options->value, EXPECTED);
}

int jobs_token(struct jobs *jobs, const struct options *options)
{
	jobs->is_token_given = 1;
	return read_file(options, jobs->token);
}

int jobs_token_default(struct jobs *jobs)
{
	const char *token = getenv("WEEKWHEEL_TOKEN");

	if (jobs->is_token_given || !token || !*token)
		return 0;
	if (access(token, F_OK) == 0)
		return message_error(
		    "WEEKWHEEL_TOKEN has the name of a file: it is for the token itself; give the file "
		    "with --token-file");
	if (!is_token(token))
		return message_error("WEEKWHEEL_TOKEN: expected %s", EXPECTED);
	strcpy(jobs->token, token);
	return 0;
}

int client_login(struct client *client, const char *token)
{
	struct reply reply;

	if (!*token)
		return 0;
	/* A connection that was lost has not refused it. */
	if (client_ask(client, &reply, "auth %s", token))
		return -1;
	client->token = reply_is(&reply, "OK") ? CLIENT_TOKEN_KNOWN : CLIENT_TOKEN_REFUSED;
	return client->token == CLIENT_TOKEN_KNOWN ? 0 : reply_refused(client, &reply, "the token");
}
