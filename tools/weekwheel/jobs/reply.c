/* Explains the server's answers to a person. */
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/options.h"
#include "tools/weekwheel/jobs/client.h"

static const struct {
	const char *word, *meaning;
} refusals[] = {
    {"NOT_FOUND", "there is no such job, or another connection has it reserved"},
    {"STALE", "it has another version now; look at it again with 'weekwheel list --json'"},
    {"RESERVED", "a worker runs it; wait until that ends, or cancel it"},
    {"BURIED", "it is buried; 'weekwheel kick' brings it back"},
    {"DRAINING", "the server takes no new jobs; try again after its restart"},
    {"JOB_TOO_BIG",
        "the body is larger than the server allows; make it smaller, or start the server with a larger limit"},
    {"OUT_OF_MEMORY", "the server or its Redis is out of memory, or its disk is full"},
    {"INTERNAL_ERROR", "the server could not write or read it, or its Redis does not answer; see its log"},
    {"UNKNOWN_COMMAND", "this server does not know the command; it may be beanstalkd, or an older weekwheeld"},
    {"BAD_FORMAT",
        "the server refuses its form: in a tube that it delivers over HTTP a job has to be a request, see --url; "
        "or the server has another version than this program"},
    {"EXPECTED_CRLF", "the server missed the end of the body; it may have another version than this program"},
};

int reply_is(const struct reply *reply, const char *word)
{
	return strcmp(reply->word[0], word) == 0;
}

int reply_refused(const struct client *client, const struct reply *reply, const char *what)
{
	char excerpt[80];

	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		if (reply_is(reply, refusals[i].word)) {
			message_error("%s: %s (%s)", what, refusals[i].meaning, refusals[i].word);
			return -1;
		}
	}
	message_error("%s: %s answered %s, which is not expected; is this the port of another server?", what,
	    client->server, message_excerpt(excerpt, sizeof excerpt, reply->word[0], strlen(reply->word[0])));
	return -1;
}

int reply_number(const struct client *client, const struct reply *reply, size_t word, uint64_t *number)
{
	if (word < reply->words && options_whole(reply->word[word], 0, UINT64_MAX, number) == 0)
		return 0;
	message_error("%s: the server's %s lacks a number; has it another version?", client->server, reply->word[0]);
	return -1;
}
