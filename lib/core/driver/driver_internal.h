#ifndef LIB_CORE_DRIVER_DRIVER_INTERNAL_H
#define LIB_CORE_DRIVER_DRIVER_INTERNAL_H

/*
 * The driver's own timers. A record is in one of these states, under its shard's lock:
 *
 *              schedule             its tick                a worker               its callback ends
 *     unused ----------> pending ----------> queued ----------> running ----------> unused
 *                           ^      ^            |                  |
 *                           |      +------------+                  | periodic, or rescheduled meanwhile
 *                           |        reschedule                    |
 *                           +--------------------------------------+
 *
 * A firing that a worker has taken from the queue stays "queued" until the worker has the shard's lock. Until then
 * cancel and reschedule leave a mark in the record, and the callback does not begin.
 *
 * If no call concerns a one-shot after its tick, its worker needs no lock. The record's states are then the quick ones,
 * and the worker goes from one to the next by a compare-and-exchange. A call or stop that finds such a record has the
 * shard's lock, and first makes the record queued or running (hold_record). The worker's exchange then fails, and it
 * goes on with the lock. A record that ended quickly is unused; the worker returns it to the slab, and the next
 * schedules give it back.
 *
 * A periodic timer whose calls may overlap stays pending. Each of its calls is a record of its own, which names the
 * timer's record in `of`. When such a timer is cancelled or has no further deadline, it is "running" until its calls
 * have ended.
 */

#include <stdatomic.h>

#include "lib/base/slab.h"
#include "lib/core/driver/agenda.h"
#include "lib/core/driver/queue.h"
#include "lib/core/driver/source.h"

enum record_state {
	RECORD_UNUSED,
	RECORD_PENDING,
	RECORD_QUEUED,
	RECORD_RUNNING,
	RECORD_QUICK_QUEUED,
	RECORD_QUICK_RUNNING,
	RECORD_QUICK_ENDED
};

#define RECORD_OVERLAP 1u   /* periodic, and its calls may overlap */
#define RECORD_CANCELLED 2u /* its handle is stale; the worker or call that has it gives it back */
#define RECORD_AGAIN 4u     /* was rescheduled after a worker had taken it: the worker makes it pending again */
#define RECORD_LEFT 8u      /* its worker is done, and left it queued for a stop, which gives it back */
#define RECORD_KEPT 16u     /* its expiries are never dropped */

struct timer_record {
	union {
		struct ww_timer timer;     /* pending */
		struct firing firing;      /* queued */
		struct slab_unused unused; /* unused */
	} as;
	ww_driver_fn *fn;
	void *user;
	uint64_t deadline;
	uint64_t period; /* 0: a one-shot */
	uint64_t missed;
	uint32_t generation; /* of the handle; only grows */
	uint32_t index;      /* its own */
	uint32_t of;         /* of a call that may overlap: the timer's index; otherwise its own */
	uint16_t shard;
	_Atomic uint8_t state;
	uint8_t flags;
	uint32_t calls; /* records that name this one in `of` */
	uint32_t begun; /* those of them that run */
};

struct shard {
	/* Threads that have a shard each must not share a cache line. */
	_Alignas(64) struct timer_source *source;
	struct ww_driver *driver;
	struct slab slab;
	pthread_cond_t ended; /* a callback has ended; sent only while there are watchers */
	uint32_t watchers;
	uint64_t scheduled;
	uint64_t fired;
	uint64_t cancelled;
	uint64_t dropped;
	uint64_t pending;
	/* Written per fire, without the lock. */
	_Alignas(64) struct slab_returns ended_quickly;
};

/* A handle: 6 bits of shard, 26 of index, 32 of generation. A record whose generations are used up is retired. */
#define HANDLE_SHARD 58
#define HANDLE_INDEX 32

/* ---- The life of a record: taken, pending, given back. The shard's lock is held in all of these. */

static inline ww_handle handle_of(const struct timer_record *record)
{
	return (uint64_t)record->shard << HANDLE_SHARD | (uint64_t)record->index << HANDLE_INDEX | record->generation;
}

static inline struct timer_record *record_at(const struct shard *shard, uint32_t index)
{
	return slab_at(&shard->slab, index);
}

static inline void give_record(struct shard *shard, struct timer_record *record)
{
	record->state = RECORD_UNUSED;
	/* If generations began again, old handles would hit new timers. */
	if (record->generation != UINT32_MAX)
		ww_slab_give(&shard->slab, record->index);
}

/* Give back up to `most` records that ended quickly. */
static inline void collect_records(struct shard *shard, size_t most)
{
	struct timer_record *record;

	for (; most && (record = slab_returned(&shard->ended_quickly)); most--)
		give_record(shard, record);
}

/* From here on, the worker that has the record needs the lock. */
static inline void hold_record(struct timer_record *record)
{
	uint8_t state = RECORD_QUICK_QUEUED;

	if (record->state < RECORD_QUICK_QUEUED ||
	    atomic_compare_exchange_strong(&record->state, &state, RECORD_QUEUED))
		return;
	(void)atomic_compare_exchange_strong(&record->state, &(uint8_t){RECORD_QUICK_RUNNING}, RECORD_RUNNING);
}

static inline struct timer_record *take_record(struct shard *shard, uint32_t number)
{
	struct timer_record *record;
	uint32_t index;

	if (!shard->source->wheel && ww_source_prepare(shard->source))
		return NULL;
	/* More than one, so that the list becomes shorter. */
	collect_records(shard, 2);
	index = ww_slab_take(&shard->slab);
	if (index == SLAB_NONE)
		return NULL;
	record = record_at(shard, index);
	record->index = record->of = index;
	record->shard = (uint16_t)number;
	record->generation++;
	record->flags = 0;
	record->missed = 0;
	record->calls = record->begun = 0;
	return record;
}

/* Let the record wait for its deadline. */
static inline void file_record(struct shard *shard, struct timer_record *record)
{
	record->as.timer = (struct ww_timer){0};
	record->state = RECORD_PENDING;
	shard->pending++;
	ww_source_schedule(shard->source, &record->as.timer, record->deadline);
}

/* The timer will not fire any more. Its record is given back when the calls that name it have ended. */
static inline void end_timer(struct shard *shard, struct timer_record *record)
{
	if (record->calls)
		record->state = RECORD_RUNNING;
	else
		give_record(shard, record);
}

/* ---- The driver */

/*
 * The members that every call reads come first. Those that are written while timers fire have cache lines of their own.
 */
struct ww_driver {
	struct ww_clock *clock;
	const struct ww_allocator *allocator;
	struct shard *shards;
	struct timer_group *timers;
	uint64_t tick_ns;
	uint64_t serial; /* no two drivers of the process have the same */
	uint32_t shard_count;
	uint32_t flags;
	uint32_t forks; /* count of forks when the driver was made */
	/*
	 * Set under the queue's lock together with the queue's own mark, before any timer is taken back. A thread that
	 * has a shard's lock and sees it begins no callback and files no timer there. A thread that does not see it
	 * comes before the stop, which takes that lock later.
	 */
	_Atomic int closed;

	/*
	 * What the alarm is set to: nothing while the driver is awake, at once if it was kicked, or else the armed tick.
	 * No lock orders the threads that set it. Whoever changes one of the three so that an earlier wake-up is wanted
	 * sets the alarm by them, reads them again, and sets it again until they are what they were. Therefore, once all
	 * have returned, the alarm is what the three say: the last one to set it has read them after that, and after the
	 * last change of any, as the thread that made that change set it, too.
	 *
	 * No wake-up is lost between a driver that falls asleep and a thread that wants it:
	 * - The thread writes its source's next, tells the agenda, and then reads `armed`. The driver writes `armed`, and
	 *   then asks the agenda once more. If the thread came too late for that, it has seen what is armed, and has made
	 *   it earlier where it must.
	 * - The thread writes `armed` or `kicked`, and then reads `awake`. The driver writes `awake`, and then reads the
	 *   other two to set the alarm. If the thread leaves the alarm to the driver, that sees what the thread has written.
	 * A driver that wakes up may overwrite a change that is being made, or clear an alarm that was just set. What the
	 * thread wrote before that, the pass that follows sees. An alarm that was set late goes off once too often.
	 */
	_Alignas(
	    64) _Atomic uint64_t armed; /* 0 while the driver is awake and looks by itself; otherwise only lowered */
	_Atomic int kicked;             /* a pass is wanted, whatever is due */
	_Atomic int awake;              /* a pass or a dispatch is under way, which sets the alarm when it ends */

	struct queue queue;

	struct agenda agenda;
	uint64_t passes;          /* their number; only the passing thread uses it */
	_Atomic uint64_t expired; /* expiries that passes have found */
	_Atomic uint64_t last;    /* tick of the last pass */
	_Atomic uint64_t wakeups;

	struct ww_alarm *alarm;
	size_t wheel_bytes; /* of each wheel */
	_Atomic size_t groups;
	_Atomic uint32_t homes; /* shards given to threads */
	_Atomic int dispatching;
	int doomed;                 /* destroyed in a callback of a dispatch, which frees it at its end */
	pthread_mutex_t watch_lock; /* before the locks of the watches */
	struct stop_watch *watches;
	pthread_t thread;
};
_Static_assert(offsetof(struct ww_driver, armed) == 64, "what every call reads is one cache line");

/*
 * Whether the source, whose next is given, is due and waits for room in its lane. Until there is some, it is of no use
 * to look at it.
 */
static inline int awaits_room(const struct timer_source *source, uint64_t next)
{
	return source->group->lane.starved && next <= source->group->driver->last;
}

/* Whether the driver's clock never goes backwards. */
static inline int driver_is_steady(const struct ww_driver *driver)
{
	return driver->clock == ww_clock_elapsed() || driver->clock == ww_clock_awake();
}

/* ---- pass.c */

/* Expire what is due in all groups, as far as the queue has room. */
void ww_driver_pass(struct ww_driver *driver);
/* The alarm has gone off, or the program dispatches: the driver is awake. */
void ww_driver_wake_up(struct ww_driver *driver);
/* Set the alarm to the time of the next thing to do. */
void ww_driver_sleep(struct ww_driver *driver);
/* Both, under one lock of the agenda. */
void ww_driver_pass_and_sleep(struct ww_driver *driver);
/* See to it that the alarm goes off at this tick or before. */
void ww_driver_rearm(struct ww_driver *driver, uint64_t tick);
/* Make the driver look now. */
void ww_driver_wake(struct ww_driver *driver);
/* The earliest tick that a source asks for. Sources that wait for room do not count: room_made wakes the driver. */
uint64_t ww_driver_next_tick(struct ww_driver *driver);
/* Whether nothing is due at `time`, or now if that is earlier, except what waits for room. */
int ww_driver_is_settled(struct ww_driver *driver, uint64_t time);

/* ---- fire.c */

extern const struct group_ops ww_driver_fire_ops;
/*
 * Take back every timer, hand each to drain, and return their number. The driver and its queue are closed; `taken` are
 * the firings that workers had taken by then.
 */
size_t ww_driver_fire_drain(struct ww_driver *driver, struct firing *const *taken, uint32_t taken_count,
    ww_driver_drain_fn *drain, void *context);

/* ---- watch.c */

void ww_driver_notify_stop(struct ww_driver *driver);
int ww_driver_is_held(struct ww_driver *driver);

/* ---- driver.c */

/* The geometry of the driver's wheels. */
void ww_driver_wheel_config(const struct ww_driver *driver, struct ww_wheel_config *config);

#endif
