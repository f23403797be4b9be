/* Makes weekwheel's tables and functions in a database of PostgreSQL, and shows what is in them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <weekwheel/jobs_postgres.h>

static void report(const char *sentence, void *context)
{
	(void)context;
	fprintf(stderr, "%s\n", sentence);
}

int main(int count, char **arguments)
{
	struct ww_jobs_postgres_facts facts;

	if (count < 2) {
		printf("usage: %s postgresql://HOST/DATABASE\n", arguments[0]);
		return EXIT_SUCCESS;
	}
	if (ww_jobs_postgres_setup(arguments[1], report, NULL))
		return EXIT_FAILURE;
	if (ww_jobs_postgres_check(arguments[1], &facts, report, NULL))
		return EXIT_FAILURE;
	for (int i = 0; i < WW_JOBS_POSTGRES_PARTS; i++)
		printf("part %d: %" PRIu64 " rows by SQL\n", i, facts.inbox[i]);
	return EXIT_SUCCESS;
}
