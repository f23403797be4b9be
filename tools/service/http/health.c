/* Reports whether a server is ready: see health.h. */
#include "tools/service/http/health.h"

#include <string.h>

#include "tools/service/state/state.h"

void health_reason(struct health *health, const char *text)
{
	if (health->is_json)
		health->bad |= buffer_format(&health->reasons, "%s", health->count ? "," : "") ||
		               buffer_quote(&health->reasons, text, strlen(text));
	else
		health->bad |= buffer_format(&health->reasons, "%s\n", text);
	health->count++;
}

static void add_state(const struct state_info *state, void *context)
{
	struct health *health = context;

	if (!state->is_on)
		return;
	health->stops |= state->stops;
	health_reason(health, state->text);
}

void health_states(struct health *health)
{
	state_each(add_state, health);
}

static int write_text(const struct health *health, const char *things, struct buffer *out)
{
	static const char *const what[] = {[STATE_STOPS_READING] = "cannot be read",
	    [STATE_STOPS_WRITING] = "cannot be written",
	    [STATE_STOPS_READING | STATE_STOPS_WRITING] = "can be neither read nor written"};
	int bad = health->stops ? buffer_format(out, "not ready: %s %s:\n", things, what[health->stops])
	                        : buffer_format(out, "ok\n");

	return bad || (health->reasons.size && buffer_append(out, health->reasons.data, health->reasons.size));
}

static const char *truth(int is_so)
{
	return is_so ? "true" : "false";
}

static int write_json(const struct health *health, struct buffer *out)
{
	return buffer_format(out, "{\"ready\":%s,\"reads\":%s,\"writes\":%s,\"reasons\":[", truth(!health->stops),
	           truth(!(health->stops & STATE_STOPS_READING)), truth(!(health->stops & STATE_STOPS_WRITING))) ||
	       buffer_append(out, health->reasons.data, health->reasons.size) || buffer_format(out, "]") ||
	       buffer_append(out, health->more.data, health->more.size) || buffer_format(out, "}\n");
}

int health_write(struct health *health, const char *things, struct buffer *out)
{
	int bad = health->bad || (health->is_json ? write_json(health, out) : write_text(health, things, out));

	buffer_free(&health->reasons);
	buffer_free(&health->more);
	return bad ? -1 : health->stops == 0;
}
