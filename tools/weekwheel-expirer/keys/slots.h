#ifndef TOOLS_WEEKWHEEL_EXPIRER_KEYS_SLOTS_H
#define TOOLS_WEEKWHEEL_EXPIRER_KEYS_SLOTS_H

/*
 * Keys of a node of a cluster. The keeper of a node keeps the keys that the node has: Redis reports each that comes
 * or goes, also when its slot moves. Three things differ from a single Redis:
 *
 *     One command has the keys of one slot. Keys that are due are asked for slot by slot, in one pipeline.
 *     A slot that is coming is served only after ASKING: once a MOVED says so, requests ask with it for some seconds.
 * A key may be elsewhere. If the node does not serve its slot, another keeper has it. If it should, as when a replica
 * 
 * takes over, or the cluster is down, or if Redis keeps a key whose deadline has passed while its slot is leaving, it
 * 
 *     is asked for again.
 */

#include "tools/weekwheel-expirer/keys/keeper.h"

/* A request with keys begins: decide whether it needs ASKING. */
void slots_begin(struct keeper *keeper, uint64_t now);
/* Append a command with keys, and add to *owed how many replies it gets. Returns 0, or an error of append. */
int slots_append(struct keeper *keeper, size_t argc, const char *const *argv, const size_t *lengths, unsigned *owed);

/* Append an EXISTS for the due keys of each slot. Returns as slots_append. */
int slots_ask(struct keeper *keeper, uint64_t now, unsigned *owed);
/* The end of the group of due keys that begins there. */
size_t slots_group(const struct keeper *keeper, size_t from);

/* Ask for some of the due keys again, at `at`. Returns 0, or -1 without memory. */
int slots_hold(struct keeper *keeper, size_t from, size_t end, uint64_t at);
/* Move keys whose time has come back to those that are due. Returns how many. */
size_t slots_take_held(struct keeper *keeper, uint64_t now);

/* Whether a known key belongs to a slot that the node serves. */
int slots_is_served(const struct keeper *keeper, uint32_t index);

/* Whether a reply answers an ASKING; whether it says that keys are elsewhere, or that the cluster is down. */
int slots_is_to_asking(const struct keeper *keeper, const struct redisReply *reply);
int slots_is_elsewhere(const struct keeper *keeper, const struct redisReply *reply);
int slots_is_down(const struct redisReply *reply);

/* Such a reply came for a group of due keys, or for the key that was looked up. Returns 0, or -1 without memory. */
int slots_missed(struct keeper *keeper, size_t from, size_t end, const struct redisReply *reply, uint64_t now);
int slots_lost(struct keeper *keeper, const struct redisReply *reply, uint64_t now);

#endif
