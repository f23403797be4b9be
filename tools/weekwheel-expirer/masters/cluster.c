/* Asks the nodes of a cluster which of them serves which slots: see find.h. The link does the same for jobs. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/time.h"
#include "tools/common/message.h"
#include "tools/weekwheel-expirer/masters/find.h"
#include "weekwheel/error.h"

/* After a quarter of the first time, a silent node is left for the next one. */
static const uint64_t timeout = 2 * TIME_SECOND, backoff_most = TIME_SECOND;
static const size_t reply_max = (size_t)16 << 20;

struct cluster {
	struct redis_link_config config;
	struct redis_link *link;
	char said[1000]; /* by the link, last */
};

static void note(const char *sentence, void *context)
{
	struct cluster *cluster = context;

	message_debug("%s", sentence);
	(void)snprintf(cluster->said, sizeof cluster->said, "%s", sentence);
}

struct cluster *cluster_make(const struct masters_config *config)
{
	struct cluster *made = calloc(1, sizeof *made);

	if (!made)
		return NULL;
	made->config = (struct redis_link_config){.url = config->node.url,
	    .user = config->node.user,
	    .password = config->node.password,
	    .is_cluster = 1,
	    .timeout = timeout,
	    .backoff_max = backoff_most,
	    .connections = 2,
	    .reply_max = reply_max,
	    .allocator = ww_allocator_default(),
	    .report = note,
	    .context = made};
	return made;
}

void cluster_free(struct cluster *cluster)
{
	if (!cluster)
		return;
	ww_redis_link_close(cluster->link);
	free(cluster);
}

static enum talk_result judge(const struct cluster *cluster, int error, char why[FIND_WHY])
{
	const char *remedy = "";

	if (error == WW_EDENIED)
		remedy = " Check user, password and rights; weekwheel-expirer(1) has the rights that it needs.";
	else if (error == WW_EINVAL)
		remedy = " Check the url.";
	(void)snprintf(why, FIND_WHY, "%s%s", cluster->said[0] ? cluster->said : ww_strerror(error), remedy);
	return *remedy || error == WW_ECORRUPT ? TALK_WRONG : TALK_AGAIN;
}

enum talk_result cluster_find(struct cluster *cluster, struct redis_map *map,
    int (*is_doubted)(const struct redis_address *address, void *context), void *context, char why[FIND_WHY])
{
	int error = WW_OK;

	cluster->said[0] = '\0';
	if (!cluster->link)
		error = ww_redis_link_open(&cluster->link, &cluster->config);
	if (!error)
		error = ww_redis_link_map(cluster->link, map, is_doubted, context);
	return error ? judge(cluster, error, why) : TALK_WORKS;
}
