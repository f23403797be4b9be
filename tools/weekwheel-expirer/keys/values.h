#ifndef TOOLS_WEEKWHEEL_EXPIRER_KEYS_VALUES_H
#define TOOLS_WEEKWHEEL_EXPIRER_KEYS_VALUES_H

/*
 * Values that are read shortly before keys end, for their reports. A key with a lead is due twice: early, when its value
 * is read, and at its deadline. Of what is no string, and of a longer one than was asked for, only the type is known.
 *
 *     due, early ---> early[] ---> TYPE and GETRANGE of some ---> a value in the table ---> due again ---> the report
 *
 * When the values take too much memory, no more are read.
 */

#include "tools/weekwheel-expirer/keys/keeper.h"

/* Take the early ones out of the due keys. Returns how many are left. */
size_t values_take_early(struct keeper *keeper, struct due_key *due, size_t count, uint64_t reached);

/* Append requests for values. Returns how many replies they get, 0 if there is nothing to read, or a negative error. */
int values_ask(struct keeper *keeper);
/* As the functions of learn.h. */
int values_learn(struct keeper *keeper, const struct redisReply *reply, uint64_t now);
/* Give up the values in flight. */
void values_lose(struct keeper *keeper);

/* Fill in the value of a key that has ended, if it was read. */
void values_show(const struct keeper *keeper, uint32_t index, struct ended_key *ended);
/* A key is no longer kept, or was changed. */
void values_drop(struct keeper *keeper, uint32_t index);
void values_free(struct keeper *keeper);

#endif
