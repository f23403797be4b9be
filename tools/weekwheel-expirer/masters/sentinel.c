/* Asks Sentinels for the master: see find.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "lib/base/time.h"
#include "tools/weekwheel-expirer/masters/find.h"
#include "weekwheel/error.h"

static const uint64_t patience = TIME_SECOND;
static const size_t reply_max = (size_t)1 << 20;

struct sentinels {
	struct redis_line_config config;
	struct redis_url url;
	size_t current;          /* which of them is asked */
	struct redis_line *line; /* to it; NULL: none */
	struct redis_address found;
};

struct sentinels *sentinels_make(const struct masters_config *config, const struct redis_url *url)
{
	struct sentinels *made = calloc(1, sizeof *made);

	if (!made)
		return NULL;
	made->url = *url;
	made->config = (struct redis_line_config){.url = config->node.url,
	    .is_sentinel = 1,
	    .user = config->sentinel_user,
	    .password = config->sentinel_password,
	    .reply_max = reply_max,
	    .allocator = ww_allocator_default()};
	return made;
}

static void leave(struct sentinels *sentinels)
{
	ww_redis_line_close(sentinels->line);
	sentinels->line = NULL;
	sentinels->current = (sentinels->current + 1) % sentinels->url.count;
}

void sentinels_free(struct sentinels *sentinels)
{
	if (!sentinels)
		return;
	ww_redis_line_close(sentinels->line);
	free(sentinels);
}

/* The address in an answer: host and port. */
static int read_address(const struct redisReply *reply, struct redis_address *address)
{
	unsigned long port;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !reply->element[0]->str ||
	    !reply->element[1]->str || reply->element[0]->len > REDIS_HOST_MAX)
		return -1;
	port = strtoul(reply->element[1]->str, NULL, 10);
	if (port == 0 || port > 65535)
		return -1;
	*address = (struct redis_address){.port = (unsigned)port};
	memcpy(address->host, reply->element[0]->str, reply->element[0]->len);
	return 0;
}

static enum talk_result judge(
    const struct sentinels *sentinels, const char *place, const struct redisReply *reply, char why[FIND_WHY])
{
	char text[200];
	int error = ww_redis_line_judge(reply, text, sizeof text);

	if (!error) {
		(void)snprintf(why, FIND_WHY,
		    "The Sentinel at %s knows no master \"%s\": SENTINEL MASTERS names those that it knows.", place,
		    sentinels->url.master);
		return TALK_WRONG;
	}
	(void)snprintf(why, FIND_WHY, "What answers at %s with \"%s\" is %s.", place, text,
	    error == WW_EDENIED ? "a Sentinel that does not let it ask: give --sentinel-password-file"
	                        : "no Sentinel: for a Redis write redis://HOST:PORT");
	return error == WW_EAGAIN ? TALK_AGAIN : TALK_WRONG;
}

/* Ask one of them. */
static enum talk_result ask(struct sentinels *sentinels, struct redis_address *address, char why[FIND_WHY])
{
	const char *const argv[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinels->url.master};
	uint64_t until = time_now(CLOCK_MONOTONIC) + patience;
	struct redisReply *reply;
	char text[REDIS_LINE_WHY];
	char place[REDIS_PLACE_MAX];
	enum talk_result result = TALK_WORKS;
	int error = WW_OK;

	ww_redis_address_write(&sentinels->url.hosts[sentinels->current], place);
	sentinels->config.address = &sentinels->url.hosts[sentinels->current];
	if (!sentinels->line)
		error = ww_redis_line_open(&sentinels->line, &sentinels->config, until, text);
	if (error) {
		(void)snprintf(why, FIND_WHY, "The Sentinel at %s cannot be asked: %s%s.", place, text,
		    error == WW_EDENIED ? "; give --sentinel-password-file" : "");
		return error == WW_EDENIED || error == WW_ECORRUPT ? TALK_WRONG : TALK_AGAIN;
	}
	if (ww_redis_line_call(sentinels->line, 3, argv, until, &reply)) {
		(void)snprintf(why, FIND_WHY, "The Sentinel at %s cannot be asked: %s.", place,
		    ww_redis_line_why(sentinels->line));
		return TALK_AGAIN;
	}
	if (read_address(reply, address) != 0)
		result = judge(sentinels, place, reply, why);
	ww_redis_line_free(reply);
	return result;
}

enum talk_result sentinels_find(struct sentinels *sentinels, struct redis_map *map, int is_lost, char why[FIND_WHY])
{
	enum talk_result result = TALK_AGAIN;
	enum talk_result first = TALK_WORKS;
	struct redis_address address;

	/* Another Sentinel may do better. */
	for (size_t i = 0; i < sentinels->url.count && result != TALK_WORKS; i++) {
		result = ask(sentinels, &address, why);
		if (result == TALK_WORKS)
			break;
		leave(sentinels);
		first = i == 0 || result == TALK_AGAIN ? result : first;
	}
	if (result != TALK_WORKS)
		return first;
	if (is_lost && address.port == sentinels->found.port && strcmp(address.host, sentinels->found.host) == 0)
		leave(sentinels);
	sentinels->found = address;
	map->count = 1;
	map->nodes[0] = address;
	memset(map->slots, 0xff, sizeof map->slots);
	return TALK_WORKS;
}
