/* Names of schedules, and those that a server has: see crontab_there.h. */
#include "tools/weekwheel/calendar/crontab_there.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/memory.h"

/* What the command is called: its words without the folders of the first one. */
static void make_base(const char *command, char base[40])
{
	size_t length = 0;
	const char *word = command;

	for (const char *c = command; *c && !isspace((unsigned char)*c); c++)
		if (*c == '/')
			word = c + 1;
	for (; *word && length < 39; word++) {
		int is_plain = isalnum((unsigned char)*word) || *word == '.' || *word == '_';

		if (is_plain)
			base[length++] = *word;
		else if (length && base[length - 1] != '-')
			base[length++] = '-';
	}
	while (length && base[length - 1] == '-')
		length--;
	base[length] = 0;
}

void crontab_there_name(
    const char *zone, const char *fields, const char *command, unsigned number, char name[CRONTAB_NAME])
{
	unsigned hash = XXH32(zone, strlen(zone), 0);
	char base[40];
	int length;

	hash = XXH32(fields, strlen(fields), hash);
	hash = XXH32(command, strlen(command), hash) & 0xffffff;
	make_base(command, base);
	length = snprintf(name, CRONTAB_NAME, "%s-%06x", *base ? base : "job", hash);
	if (number > 1)
		snprintf(name + length, CRONTAB_NAME - (size_t)length, "-%u", number);
}

/* The member as a string of its own. */
static char *copy_text(const char *line, size_t size, const char *member)
{
	struct json_value value = json_member(line, size, member);
	char *text = memory_zeroed(value.size + 1, 1);

	if (value.kind == JSON_STRING)
		(void)json_decode(value, text, value.size + 1);
	return text;
}

/* Seconds, perhaps with a fraction. */
static uint64_t run_of(const char *line, size_t size)
{
	struct duration_problem problem;
	char text[DURATION_TEXT];
	uint64_t ns = 0;

	(void)duration_parse(json_text(line, size, "run", text, sizeof text), &ns, &problem);
	return ns;
}

static void take_one(struct crontab_there *there, const char *line, size_t size)
{
	there->schedules = memory_grow(there->schedules, &there->room, there->count, sizeof *there->schedules);
	there->schedules[there->count++] = (struct crontab_schedule){.tube = copy_text(line, size, "tube"),
	    .name = copy_text(line, size, "name"),
	    .expression = copy_text(line, size, "cron"),
	    .zone = copy_text(line, size, "zone"),
	    .body = copy_text(line, size, "body"),
	    .run = run_of(line, size),
	    .is_paused = memmem(line, size, "\"paused\":true", 13) != NULL};
}

/* One object per line; what follows the last one of a page says where the next page begins, or 0. */
static uint64_t take_page(struct crontab_there *there, const struct reply *reply)
{
	uint64_t next = 0;

	for (size_t at = 0; at < reply->body_size;) {
		const char *line = reply->body + at;
		const char *end = memchr(line, '\n', reply->body_size - at);
		size_t size = end ? (size_t)(end - line) : reply->body_size - at;

		if (json_member(line, size, "name").kind == JSON_STRING)
			take_one(there, line, size);
		else
			next = json_whole(line, size, "next");
		at += size + (end != NULL);
	}
	return next;
}

int crontab_there_read(struct crontab_there *there, struct client *client, const char *tube, int is_optional)
{
	struct reply reply;
	uint64_t next = 0;

	do {
		if (client_ask(client, &reply, "list-schedules body=yes limit=1000 after=%" PRIu64 "%s%s", next,
		        tube ? " tube=" : "", tube ? tube : ""))
			return -1;
		if (is_optional && reply_is(&reply, "DENIED"))
			return 1;
		if (!reply_is(&reply, "OK"))
			return reply_refused(client, &reply, "list-schedules");
		next = take_page(there, &reply);
	} while (next);
	return 0;
}

void crontab_there_free(struct crontab_there *there)
{
	for (size_t i = 0; i < there->count; i++) {
		struct crontab_schedule *schedule = &there->schedules[i];

		free(schedule->tube);
		free(schedule->name);
		free(schedule->expression);
		free(schedule->zone);
		free(schedule->body);
	}
	free(there->schedules);
}

struct crontab_schedule *crontab_there_find(struct crontab_there *there, const char *tube, const char *name)
{
	for (size_t i = 0; i < there->count; i++)
		if (strcmp(there->schedules[i].name, name) == 0 && strcmp(there->schedules[i].tube, tube) == 0) {
			there->schedules[i].is_found = 1;
			return &there->schedules[i];
		}
	return NULL;
}

int crontab_there_remove(struct client *client, const struct crontab_schedule *schedule)
{
	struct reply reply;

	if (client_expect(client, &reply, "USING", schedule->tube, "use %s", schedule->tube) ||
	    client_ask(client, &reply, "delete-schedule %s", schedule->name))
		return -1;
	/* Another import may have removed it meanwhile. */
	return reply_is(&reply, "DELETED") || reply_is(&reply, "NOT_FOUND")
	           ? 0
	           : reply_refused(client, &reply, schedule->name);
}
