/* Stop early, and keep what has been measured. */
#include "bench/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t came;

static void remember(int number)
{
	came = number;
}

/* One that is ignored, as by nohup's children, stays so. */
static void remember_if_heard(int number)
{
	struct sigaction action = {.sa_handler = remember, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
	struct sigaction before;

	if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(number, &action, NULL);
}

void interrupt_begin(void)
{
	came = 0;
	remember_if_heard(SIGINT);
	remember_if_heard(SIGTERM);
}

int interrupt_signal(void)
{
	return came;
}
