#ifndef LIB_JOBS_THEN_H
#define LIB_JOBS_THEN_H

/*
 * The follow-up of a job travels through a store as bytes, and nothing looks into them before the job is finished: a put has
 * checked them, and those of all jobs that they have in them.
 *
 *     | tag | length | value | tag | length | value | ...
 *
 * A tag is the place of a member of struct ww_job_spec in the table of then.c, from 1 on. A length has seven bits in each
 * byte, the lowest first; the high bit is set in all bytes but the last. A number has up to 8 bytes, the highest first.
 * Members that have their defaults are left out. weekwheel.follow_up of lib/postgres writes the same.
 */

#include "weekwheel/jobs.h"

/*
 * Let *job become its follow-up. WW_EINVAL: it is none, such a job can't have one, or one job of a chain can't follow the
 * other. What holds for any job is not checked.
 */
int ww_job_then_follow(struct ww_job_spec *job);

#endif
