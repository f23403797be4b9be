/* Asks the server for a forecast, and draws its bars. */
#include "tools/weekwheel/jobs/forecast.h"

#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/message.h"

int forecast_read(struct jobs *jobs, uint64_t span, size_t count, uint64_t *counts, struct reply *reply)
{
	char seconds[DURATION_TEXT];
	const char *space = jobs->tube ? " tube=" : "";
	const char *tube = jobs->tube ? jobs->tube : "";

	if (client_ask(
	        &jobs->client, reply, "forecast %s %zu%s%s", duration_seconds(seconds, span), count, space, tube))
		return -1;
	if (reply_is(reply, "UNKNOWN_COMMAND"))
		return 1;
	if (!reply_is(reply, "OK"))
		return reply_refused(&jobs->client, reply, "forecast");
	if (json_array(json_member(reply->body, reply->body_size, "counts"), counts, count) != count) {
		message_error("%s: the forecast lacks some of its %zu numbers; has the server another version?",
		    jobs->server, count);
		return -1;
	}
	return 0;
}

const char *forecast_bar(char *bar, size_t width, uint64_t part, uint64_t most)
{
	size_t length = 0;

	if (part && most)
		length = (size_t)((double)part / (double)most * (double)width + 0.5);
	if (part && length == 0)
		length = 1; /* even a single job must be seen */
	if (length > width)
		length = width;
	memset(bar, '#', length);
	bar[length] = 0;
	return bar;
}
