#ifndef TESTS_LIB_JOBS_STORE_FAULT_MEMORY_H
#define TESTS_LIB_JOBS_STORE_FAULT_MEMORY_H

/* Memory of a store that fails when told to: by its allocator, by the C library, or SQLite's own, as CALL_MEMORY. */

#include "tests/support/memory.h"

extern int fault_memory_of_sqlite; /* count what SQLite asks for, not what the store does */
extern struct ww_allocator fault_memory_table;
extern struct test_memory fault_memory_used;

/* Before SQLite is used. With WW_FAULT in the environment SQLite says what fails. */
void fault_memory_count(void);

#endif
