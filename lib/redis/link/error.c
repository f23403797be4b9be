/* What a reply means. */
#include <string.h>

#include "lib/redis/link/link_internal.h"

/* By how an error begins. */
static const struct {
	const char *begins;
	enum redis_meaning meaning;
	int error;
} meanings[] = {
    {"MOVED ", REDIS_IS_MOVED, WW_EAGAIN},
    {"ASK ", REDIS_IS_ASK, WW_EAGAIN},
    {"NOSCRIPT ", REDIS_IS_UNKNOWN, WW_EAGAIN},
    {"READONLY ", REDIS_IS_READONLY, WW_EDENIED},
    {"LOADING ", REDIS_IS_LATER, WW_EAGAIN},
    {"TRYAGAIN ", REDIS_IS_LATER, WW_EAGAIN},
    {"CLUSTERDOWN ", REDIS_IS_LATER, WW_EAGAIN},
    {"MASTERDOWN ", REDIS_IS_LATER, WW_EAGAIN},
    {"BUSY ", REDIS_IS_LATER, WW_EAGAIN},
    {"NOREPLICAS ", REDIS_IS_LATER, WW_EAGAIN},
    {"ERR max number of clients", REDIS_IS_LATER, WW_EAGAIN},
    {"OOM ", REDIS_IS_ERROR, WW_EFULL},
    {"MISCONF ", REDIS_IS_ERROR, WW_EFULL},
    {"NOAUTH ", REDIS_IS_ERROR, WW_EDENIED},
    {"WRONGPASS ", REDIS_IS_ERROR, WW_EDENIED},
    {"NOPERM ", REDIS_IS_ERROR, WW_EDENIED},
    {"DENIED ", REDIS_IS_ERROR, WW_EDENIED},
};

enum redis_meaning ww_redis_error_meaning(const struct redisReply *reply, int *error)
{
	*error = WW_OK;
	if (reply->type != REDIS_REPLY_ERROR)
		return REDIS_IS_ANSWER;
	for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
		if (strncmp(reply->str, meanings[i].begins, strlen(meanings[i].begins)) == 0) {
			*error = meanings[i].error;
			return meanings[i].meaning;
		}
	}
	*error = WW_ECORRUPT;
	return REDIS_IS_ERROR;
}

void ww_redis_error_copy(char *to, size_t size, const struct redisReply *reply)
{
	size_t count = reply->len < size ? reply->len : size - 1;

	for (size_t i = 0; i < count; i++)
		to[i] = (unsigned char)reply->str[i] < ' ' || reply->str[i] == 0x7f ? '?' : reply->str[i];
	to[count] = '\0';
}

void ww_redis_error_tell(
    struct redis_link *link, const struct redis_node *node, const char *command, const struct redisReply *reply)
{
	char text[200];

	ww_redis_error_copy(text, sizeof text, reply);
	ww_redis_link_complain(link, "Redis at %s answers %s: %s", node->place, command, text);
}
