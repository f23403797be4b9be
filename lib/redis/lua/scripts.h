#ifndef LIB_REDIS_LUA_SCRIPTS_H
#define LIB_REDIS_LUA_SCRIPTS_H

/*
 * The scripts that Redis executes, made of the .lua files beside this one. Each begins with what it takes and what it
 * replies; part_shard.lua, which begins those of a shard, explains the shard's keys and records.
 *
 * Of shard S of a store with the prefix P, all in one hash slot by the tag {P:S}:
 *
 *     {P:S}:m          hash    the store's identity, the shard's number, what was counted, and when something is due next
 *     {P:S}:j          hash    id -> job                  everything about a job, as MessagePack
 *     {P:S}:k:<n>      hash    tube NUL key -> id         keys of jobs, by a hash of themselves from 0 to 1023
 *     {P:S}:d:<n>      zset    due time -> id             delayed jobs that are due in slice n of time
 *     {P:S}:s          zset    n                          the slices that there are
 *     {P:S}:r:<tube>   zset    priority, id               ready jobs
 *     {P:S}:f          zset    end of lease -> id         jobs in flight
 *     {P:S}:b:<tube>   zset    order of burying -> id     buried jobs
 *     {P:S}:c          hash    t<tube>, r<tube>           jobs of a tube in all, and reserved ones
 *     {P:S}:p          hash    tube -> end, span          pauses
 *     {P}:store        hash    what is true of the whole
 *     {P}:workers      zset    until when -> name         the workers that live
 *     P:wake           channel "a S time": shard S has something due at that time, sooner than before
 *                              "r S priority tube": the first ready job of a tube is another one
 *                              "w name": a worker came or went
 *
 * But for m and store, which stay, a key is gone with the last job in it.
 */

#include "lib/redis/link/link.h"

extern const struct redis_script ww_redis_script_shard_buried;
extern const struct redis_script ww_redis_script_shard_cancel;
extern const struct redis_script ww_redis_script_shard_check;
extern const struct redis_script ww_redis_script_shard_delayed;
extern const struct redis_script ww_redis_script_shard_end;
extern const struct redis_script ww_redis_script_shard_finish;
extern const struct redis_script ww_redis_script_shard_first;
extern const struct redis_script ww_redis_script_shard_forecast;
extern const struct redis_script ww_redis_script_shard_kick;
extern const struct redis_script ww_redis_script_shard_list;
extern const struct redis_script ww_redis_script_shard_make;
extern const struct redis_script ww_redis_script_shard_move;
extern const struct redis_script ww_redis_script_shard_pause;
extern const struct redis_script ww_redis_script_shard_peek;
extern const struct redis_script ww_redis_script_shard_put;
extern const struct redis_script ww_redis_script_shard_reserve;
extern const struct redis_script ww_redis_script_shard_reserve_job;
extern const struct redis_script ww_redis_script_shard_sweep;
extern const struct redis_script ww_redis_script_shard_tubes;
extern const struct redis_script ww_redis_script_store_beat;
extern const struct redis_script ww_redis_script_store_make;

/* All of them. */
extern const struct redis_script *const ww_redis_scripts[];
extern const size_t ww_redis_script_count;

#endif
