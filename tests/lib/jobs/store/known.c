/* What a test of faults knows of its jobs. */
#include "tests/lib/jobs/store/known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tests/support/system/fail.h"
#include "weekwheel/weekwheel.h"

struct known known;
int known_allowed[3];

static int is_allowed(int error)
{
	for (size_t i = 0; i < sizeof known_allowed / sizeof *known_allowed; i++)
		if (known_allowed[i] && error == known_allowed[i])
			return 1;
	return 0;
}

int known_step(const char *call, int result, int also)
{
	if (result < 0 && result != also && !is_allowed(result)) {
		fault_disarm();
		ck_abort_msg("%s answered %d: %s", call, result, ww_strerror(result));
	}
	return result >= 0;
}

/* A failed sync leaves open what is on the disk. */
void known_judge(int job, int result, enum fate fate)
{
	if (job < 0)
		return;
	if (result >= 0)
		known.fate[job] = fate;
	else if (result == WW_EIO && known.fate[job] != fate)
		known.fate[job] = EITHER;
}

const char *known_body_of(int job)
{
	static char body[KNOWN_BODY + 1];

	memset(body, 'b', KNOWN_BODY);
	(void)snprintf(body, sizeof body, "%d", job);
	body[strlen(body)] = ' ';
	return body;
}

int known_number_in(const void *body, size_t size)
{
	int job = atoi(body);

	ck_assert_uint_eq(size, KNOWN_BODY);
	ck_assert_int_lt(job, known.jobs);
	ck_assert_mem_eq(body, known_body_of(job), KNOWN_BODY);
	return job;
}
