#ifndef WEEKWHEEL_ERROR_H
#define WEEKWHEEL_ERROR_H

/*
 * The errors of every weekwheel function.
 *
 * A function that can fail returns an int: 0 or a positive answer on success, a negative WW_E* on failure. On error
 * nothing has changed, not the object, not the timer, not the target of an output pointer, unless the function says
 * otherwise: a call for many timers or entries keeps what it did before the error.
 */

#include "weekwheel/export.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ww_error {
	WW_OK = 0,
	WW_EINVAL = -1,     /* an argument is outside the range of the function's contract */
	WW_ENOMEM = -2,     /* the allocator had no memory, or pinned entries leave no room in a session map */
	WW_ERANGE = -3,     /* beyond the horizon of a wheel configured to refuse that */
	WW_EOVERFLOW = -4,  /* a time beyond the layer's last: WW_TIME_MAX, WW_CLOCK_MAX, WW_DRIVER_TIME_MAX */
	WW_EBACKWARDS = -5, /* a time before the one that the wheel has reached, or a due time that has passed */
	WW_EBUSY = -6,      /* called in a callback that may not call it, or an object made on it is left */
	WW_ECORRUPT =
	    -7, /* a structure or a timer is broken: freed while pending, or of another wheel; or damaged bytes */
	WW_ECLOSED = -8,    /* the object was stopped */
	WW_ESTALE = -9,     /* the timer fired, was cancelled or replaced, or never existed; another is in its place */
	WW_ESYSTEM = -10,   /* the system refused a thread, a descriptor, memory of its own or random numbers */
	WW_ENOTFOUND = -11, /* there is no such job, tube, limit, schedule or store */
	WW_EINUSE = -12,    /* already in use: a store by another process, a job by another lease, a key by an entry */
	WW_EDENIED = -13,   /* the system or a server denies it: rights, read-only, no directory */
	WW_EFULL = -14,     /* the disk, the quota or a server's memory is full */
	WW_EIO = -15,       /* a file could not be read or written, or a server could not be reached */
	WW_EVERSION = -16,  /* a file was written by another version, mostly a later one */
	WW_ETOOBIG = -17,   /* a body is longer, or an entry heavier, than the configuration allows */
	WW_EAGAIN = -18,    /* a server is loading, electing or busy, or others changed too much meanwhile */
	WW_ETIMEOUT = -19   /* what the call waits for has not come within the time limit */
};

/*
 * Describe an error in a sentence that says what to do.
 * Range: any int. A number that is no error of this library gets a sentence that says so.
 * Lifetime: the text is constant, never NULL.
 * Threads: any. O(1), allocates nothing.
 */
WW_API const char *ww_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif
