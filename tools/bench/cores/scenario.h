#ifndef TOOLS_BENCH_CORES_SCENARIO_H
#define TOOLS_BENCH_CORES_SCENARIO_H

/*
 * What threads do with timers, for two programs: lockstep.c counts the lines that go from one to another, and race.c
 * takes the time.
 *
 *     own       each thread has a driver without threads, as a server with a loop for each processor
 *     shared    all threads use one driver, whose own threads move its wheels and call the callbacks
 *
 * Errors end the program.
 */

#include <stdint.h>

enum { SCENARIO_TIMERS = 256 }; /* that a thread holds */

/*
 * What a thread does with one of its timers, idle or pending as the one before has left it; CANCEL_OTHERS, with one of
 * the next thread. FIRE, for drivers of its own: it schedules a timer that is due, and with the last one all are called.
 */
enum deed { DEED_SCHEDULE, DEED_HEARTBEAT, DEED_CANCEL, DEED_FIRE, DEED_SCHEDULE_AGAIN, DEED_CANCEL_OTHERS, DEEDS };

struct scenario;

/* workers: of the shared driver; 0: drivers of their own. */
struct scenario *scenario_open(unsigned threads, unsigned workers);
void scenario_close(struct scenario *scenario);
void scenario_do(struct scenario *scenario, enum deed deed, unsigned thread, unsigned i);
/*
 * For a shared driver: schedule all timers of a thread for one moment, which is the later, the more threads there are;
 * and wait until all callbacks have ended, each of which sleeps so long. Returns the ns from that moment to the last.
 */
void scenario_schedule_due(struct scenario *scenario, unsigned thread);
uint64_t scenario_wait_due(struct scenario *scenario);
void scenario_set_callback(struct scenario *scenario, uint64_t ns);
/* How many workers have called callbacks so far. */
unsigned scenario_busy_workers(const struct scenario *scenario);

#endif
