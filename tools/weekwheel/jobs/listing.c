/* Asks for pages of jobs and takes them apart. See listing.h. */
#include "tools/weekwheel/jobs/listing.h"

#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"

enum { STATES = 5 };

int listing_states(struct listing *listing, const struct options *options)
{
	static const char *const names[STATES] = {"delayed", "ready", "reserved", "buried", "ended"};
	const char *at = options->value;

	listing->states = options->value;
	for (;;) {
		size_t length = strcspn(at, ",");
		size_t i = 0;

		while (i < STATES && (strlen(names[i]) != length || memcmp(names[i], at, length) != 0))
			i++;
		if (i == STATES)
			return options_bad_value(options, "state",
			    "delayed, ready, reserved, buried or ended, or several with commas between");
		if (!at[length])
			return 0;
		at += length + 1;
	}
}

uint64_t listing_due(const char *line, size_t size)
{
	char text[40];
	struct duration_problem problem;
	uint64_t ns;
	int is_wall = strcmp(json_text(line, size, "clock", text, sizeof text), "wall") == 0;

	json_text(line, size, is_wall ? "due" : "left", text, sizeof text);
	if (duration_parse(text, &ns, &problem))
		ns = 0;
	return is_wall ? ns : time_now() + ns;
}

uint64_t listing_attempts(const char *line, size_t size)
{
	char state[20];

	return json_whole(line, size, "tries") +
	       (strcmp(json_text(line, size, "state", state, sizeof state), "reserved") == 0);
}

static int ask(const struct listing *listing, struct client *client, uint64_t limit, struct reply *reply)
{
	char filter[2 * JOBS_KEY_TEXT] = "";

	jobs_add(filter, sizeof filter, "tube", listing->tube);
	jobs_add(filter, sizeof filter, "state", listing->states);
	jobs_add(filter, sizeof filter, "prefix", listing->prefix);
	if (listing->id)
		jobs_add_number(filter, sizeof filter, "id", listing->id);
	if (listing->next)
		jobs_add_number(filter, sizeof filter, "after", listing->next);
	jobs_add_number(filter, sizeof filter, "limit", limit < LISTING_PAGE ? limit : LISTING_PAGE);
	return client_expect(
	    client, reply, "OK", "list", "%s%s", listing->verb ? listing->verb : "list-delayed", filter);
}

int listing_page(struct listing *listing, struct client *client, uint64_t limit, listing_fn *fn, void *context)
{
	uint64_t previous = listing->next;
	struct reply reply;
	size_t at = 0;

	if (ask(listing, client, limit, &reply))
		return -1;
	listing->next = 0;
	while (at < reply.body_size) {
		const char *line = reply.body + at;
		const char *end = memchr(line, '\n', reply.body_size - at);
		size_t size = end ? (size_t)(end - line) : reply.body_size - at;

		at += size + (end != NULL);
		if (size && line[size - 1] == '\r')
			size--;
		if (size && json_member(line, size, "id").kind == JSON_NUMBER)
			fn(context, line, size);
		else if (size)
			listing->next = json_whole(line, size, "next");
	}
	/* A page that led back would never end. Jobs have growing numbers, and the runs of a history falling ones. */
	if (listing->verb ? previous && listing->next >= previous : listing->next <= previous)
		listing->next = 0;
	return 0;
}
