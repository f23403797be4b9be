#ifndef LIB_POSTGRES_SCHEMA_H
#define LIB_POSTGRES_SCHEMA_H

/* The SQL files that setup runs, made into C by scripts/file-to-c. No NUL ends them. */

#include <stddef.h>

extern const char schema_sql[], finish_sql[], schedules_sql[], views_sql[], functions_sql[];
extern const size_t schema_sql_size, finish_sql_size, schedules_sql_size, views_sql_size, functions_sql_size;

enum {
	SCHEMA_VERSION = 2,   /* of the tables: weekwheel.about has it */
	SCHEMA_FUNCTIONS = 23 /* those that others call */
};

/* 1 if the options of a request have all members. */
#define SCHEMA_IS_WHOLE                                                                                                \
	"SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass('weekwheel.options') AND attname = 'then'"

#endif
