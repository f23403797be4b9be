/* Stop early, and keep what has been measured. */
#include "tools/bench/interrupt.h"

#include <signal.h>
#include <stddef.h>

static const int numbers[] = {SIGINT, SIGTERM};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

const char *const interrupt_why = "interrupted before it was measured";

static volatile sig_atomic_t came;
static struct sigaction before[NUMBERS];

void interrupt_end(void)
{
	size_t i;

	for (i = 0; i < NUMBERS; i++)
		sigaction(numbers[i], &before[i], NULL);
}

static void remember(int number)
{
	came = number;
	interrupt_end();
}

/* One that is ignored, as of what runs in the background, stays so. */
void interrupt_begin(void)
{
	struct sigaction action = {.sa_handler = remember, .sa_flags = SA_RESTART};
	size_t i;

	came = 0;
	for (i = 0; i < NUMBERS; i++)
		sigaddset(&action.sa_mask, numbers[i]);
	for (i = 0; i < NUMBERS; i++)
		sigaction(numbers[i], NULL, &before[i]);
	for (i = 0; i < NUMBERS; i++)
		if (before[i].sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
}

int interrupt_signal(void)
{
	return came;
}
