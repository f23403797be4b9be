/* Remembers the signal that ends a run early. */
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
	for (size_t i = 0; i < NUMBERS; i++)
		sigaction(numbers[i], &before[i], NULL);
}

static void remember(int number)
{
	came = number;
	interrupt_end();
}

/* A signal that is ignored, as in a background job, stays ignored. */
void interrupt_begin(void)
{
	struct sigaction action = {.sa_handler = remember, .sa_flags = SA_RESTART};

	came = 0;
	for (size_t i = 0; i < NUMBERS; i++)
		sigaddset(&action.sa_mask, numbers[i]);
	for (size_t i = 0; i < NUMBERS; i++)
		sigaction(numbers[i], NULL, &before[i]);
	for (size_t i = 0; i < NUMBERS; i++)
		if (before[i].sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
}

int interrupt_signal(void)
{
	return came;
}
