#ifndef LIB_REDIS_LUA_SCRIPTS_H
#define LIB_REDIS_LUA_SCRIPTS_H

/*
 * The scripts that Redis runs, made from the .lua files here. Each file begins with its arguments and replies;
 * part_shard.lua, the prologue of all shard scripts, explains records and sets.
 *
 * The keys of shard S of a store with the prefix P, all in one hash slot by the tag {P:S}:
 *
 *     {P:S}:m          hash    the store's identity, the shard's number, counters, and the alarm
 *     {P:S}:j          hash    id -> job                  everything about a job, as MessagePack
 *     {P:S}:k:<n>      hash    tube NUL key -> id         keys of jobs, in 1024 hashes by a hash of the key
 *     {P:S}:d:<n>      zset    due time -> id             delayed jobs that are due in slice n of time
 *     {P:S}:s          zset    n                          the slices that have jobs
 *     {P:S}:r:<tube>   zset    priority, id               ready jobs
 *     {P:S}:h:<group>  zset    priority, id               ready jobs of a group, as <tube> NUL <name>
 *     {P:S}:o:<tube>   zset    turn -> group              the row of groups that have ready jobs
 *     {P:S}:v:<tube>   zset    until when -> group        groups that a limit holds
 *     {P:S}:v          zset    the first of these -> tube
 *     {P:S}:f          zset    end of lease -> id         jobs in flight
 *     {P:S}:b:<tube>   zset    order of burying -> id     buried jobs
 *     {P:S}:e          zset    when to forget -> id       jobs that have ended and are kept for their keys
 *     {P:S}:x          list    runs that are kept (ww_jobs_history), and {P:S}:n, a hash: id -> report of a run under way
 *     {P:S}:c          hash    t<tube>, r<tube>           a tube's jobs in all, and its reserved ones
 *                              g<tube>, u<tube>, h<tube>  of its groups: ready jobs, urgent ones, and those of held groups
 *     {P:S}:p          hash    tube -> end, span          pauses
 *     {P:S}:l          hash    gate -> limit              limits, and whether this shard is the tube's home. A gate is a tube;
 *                                                         at the home also <tube> NUL <group>, the group '' being each
 *     {P:S}:q:<gate>   zset    until when -> permit       at the home: jobs that run, or are about to
 *     {P:S}:g          hash    gate -> time               at the home: when the next start comes at an even pace
 *     {P:S}:y:<gate>   zset    since when -> shard        at the home: shards with jobs of a group that were refused
 *     {P:S}:i:<tube>   zset    until when -> group        at the home: groups of which something is counted
 *     {P:S}:w          zset    when to try again -> tube  at the home: where somebody was refused
 *     {P}:store        hash    identity, format, shards and slice
 *     {P}:workers      zset    until when -> name         the workers alive
 *     P:wake           channel "a S time": shard S has something due at that time, sooner than before
 *                              "r S priority tube": a tube has a new first ready job
 *                              "l tube": its limit may let another job start
 *                              "w name": a worker came or went
 *
 * A key is gone with its last job, except m, x and store, which stay.
 */

#include "lib/redis/link/link.h"

extern const struct redis_script ww_redis_script_shard_buried, ww_redis_script_shard_cancel,
    ww_redis_script_shard_check, ww_redis_script_shard_delayed, ww_redis_script_shard_end, ww_redis_script_shard_finish,
    ww_redis_script_shard_first, ww_redis_script_shard_forecast, ww_redis_script_shard_history,
    ww_redis_script_shard_leased, ww_redis_script_shard_report, ww_redis_script_shard_kick, ww_redis_script_shard_list,
    ww_redis_script_shard_limit, ww_redis_script_shard_make, ww_redis_script_shard_move, ww_redis_script_shard_pause,
    ww_redis_script_shard_permit, ww_redis_script_shard_peek, ww_redis_script_shard_put, ww_redis_script_shard_reserve,
    ww_redis_script_shard_reserve_job, ww_redis_script_shard_row, ww_redis_script_shard_sweep,
    ww_redis_script_shard_tubes, ww_redis_script_store_beat, ww_redis_script_store_make;

#endif
