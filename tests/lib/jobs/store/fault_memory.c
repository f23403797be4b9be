/* Memory of a store that fails when told to. Its program is linked with --wrap for these functions of the C library. */
#include "tests/lib/jobs/store/fault_memory.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/system/fail.h"

int fault_memory_of_sqlite;
struct ww_allocator fault_memory_table;
struct test_memory fault_memory_used;
static sqlite3_mem_methods real_methods;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);

static int no_memory(void)
{
	return !fault_memory_of_sqlite && fault_memory();
}

void *__wrap_malloc(size_t size)
{
	return no_memory() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return no_memory() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
	return no_memory() ? NULL : __real_realloc(block, size);
}

char *__wrap_strdup(const char *text)
{
	return no_memory() ? NULL : __real_strdup(text);
}

static void *allocate(void *user, size_t size)
{
	return no_memory() ? NULL : test_memory_allocate(user, size);
}

static void *sqlite_malloc(int size)
{
	return fault_memory_of_sqlite && fault_memory() ? NULL : real_methods.xMalloc(size);
}

static void *sqlite_realloc(void *block, int size)
{
	return fault_memory_of_sqlite && fault_memory() ? NULL : real_methods.xRealloc(block, size);
}

static void log_sqlite(void *unused, int code, const char *text)
{
	(void)unused;
	(void)fprintf(stderr, "SQLite %d: %s\n", code, text);
}

void fault_memory_count(void)
{
	sqlite3_mem_methods methods;

	ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_methods), SQLITE_OK);
	methods = real_methods;
	methods.xMalloc = sqlite_malloc;
	methods.xRealloc = sqlite_realloc;
	ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods), SQLITE_OK);
	if (getenv("WW_FAULT"))
		ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_LOG, log_sqlite, NULL), SQLITE_OK);
	test_memory_init(&fault_memory_used, 0);
	fault_memory_table = (struct ww_allocator){allocate, test_memory_free, &fault_memory_used};
}
