#ifndef LIB_BASE_FORK_H
#define LIB_BASE_FORK_H

/*
 * How an object tells that it is in a child of the process that made it: it keeps this number, which is another in the
 * child. getpid tells the same, but as a system call, which costs as much as a whole call of the layers above.
 */

#include <stdint.h>

/*
 * Begin to count, unless that was done, and return the number now: for objects when they are made. Any thread. Without
 * memory for the handler, the number stays as it is, and a child is not distinguished from its parent.
 */
uint32_t ww_fork_watch(void);

/* How many forks lie between this process and the one that began to count. */
uint32_t ww_fork_count(void);

#endif
