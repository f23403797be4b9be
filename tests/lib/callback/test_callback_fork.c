/* A pusher in a process that forks: the child may not use it, and the parent does not notice. */
/* tier: check, threads, no-valgrind (it looks at the child of a process with threads) */

#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/callback/pushing.h"

static struct pushing pushing;

START_TEST(calls_in_a_child_are_refused_and_the_parent_goes_on)
{
	struct ww_callback_stats stats;
	int status;

	pushing_make(&pushing);
	pushing_open(&pushing);
	uint64_t id = pushing_post(&pushing, "/", "Answer-Do: wait\n");
	receiver_wait(pushing.receiver, 1);
	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (!child)
		_exit(ww_callback_wake(pushing.callback) != WW_ECLOSED ||
		      ww_callback_stats(pushing.callback, &stats) != WW_ECLOSED ||
		      ww_callback_close(pushing.callback, 0) != WW_ECLOSED);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	receiver_open(pushing.receiver);
	expect_finished(&pushing, id);
	pushing_end(&pushing);
}
END_TEST

TEST_MAIN("callback/fork", calls_in_a_child_are_refused_and_the_parent_goes_on)
