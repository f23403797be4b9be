#ifndef TOOLS_WEEKWHEEL_EXPIRER_KEYS_LEARN_H
#define TOOLS_WEEKWHEEL_EXPIRER_KEYS_LEARN_H

/* What a keeper learns from a reply to each kind of request. Each returns 0, or -1: see keeper_reply. */

#include "tools/weekwheel-expirer/keys/keeper.h"

int learn_clock(struct keeper *keeper, const struct redisReply *reply, uint64_t now);
int learn_ask(struct keeper *keeper, const struct redisReply *reply, uint64_t now);
int learn_look(struct keeper *keeper, const struct redisReply *reply, uint64_t now);
int learn_scan(struct keeper *keeper, const struct redisReply *reply, uint64_t now);

/* All replies of a page, or of lookups, have come. */
void learn_page(struct keeper *keeper, uint64_t now);

#endif
