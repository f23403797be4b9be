#ifndef LIB_JOBS_STORE_SLOT_H
#define LIB_JOBS_STORE_SLOT_H

/* The slots in which waiting jobs are counted and kept: the hours of their due times. */

#include <stdint.h>

#define SLOT_NS UINT64_C(3600000000000)

static inline uint64_t slot_of(uint64_t due)
{
	return due / SLOT_NS;
}

static inline uint64_t slot_start(uint64_t slot)
{
	return slot * SLOT_NS;
}

#endif
