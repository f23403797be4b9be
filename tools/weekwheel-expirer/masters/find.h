#ifndef TOOLS_WEEKWHEEL_EXPIRER_MASTERS_FIND_H
#define TOOLS_WEEKWHEEL_EXPIRER_MASTERS_FIND_H

/*
 * Two ways to find the masters. Both fill in a map; that of Sentinels has one node and no slots. On an error `why`
 * gets the reason, in whole sentences.
 */

#include "lib/redis/link/link.h"
#include "tools/weekwheel-expirer/masters/masters.h"
#include "tools/weekwheel-expirer/node/talk.h"

enum { FIND_WHY = 1400 };

/* ---- cluster.c: the nodes of a cluster */

struct cluster;

/* NULL without memory. */
struct cluster *cluster_make(const struct masters_config *config);
void cluster_free(struct cluster *cluster);

/* A node about which is_doubted returns 1 is asked last. */
enum talk_result cluster_find(struct cluster *cluster, struct redis_map *map,
    int (*is_doubted)(const struct redis_address *address, void *context), void *context, char why[FIND_WHY]);

/* ---- sentinel.c: Sentinels */

struct sentinels;

struct sentinels *sentinels_make(const struct masters_config *config, const struct redis_url *url);
void sentinels_free(struct sentinels *sentinels);

/* is_lost: the master found last is lost; another Sentinel may know a new one. */
enum talk_result sentinels_find(struct sentinels *sentinels, struct redis_map *map, int is_lost, char why[FIND_WHY]);

#endif
