#ifndef TOOLS_BENCH_STRUCTURE_H
#define TOOLS_BENCH_STRUCTURE_H

/*
 * Timer structures behind one table of operations.
 *
 * An application keeps one object a timer: a session, a connection. The benchmark has an array of objects of a cache
 * line each. It reaches every timer through its object, in the order that the workload names. An intrusive structure
 * embeds its node in the object. Any other keeps a handle there and pays for memory of its own.
 *
 *     objects   [ 64 bytes | 64 bytes | 64 bytes | ... ]
 *                 node, or handle ---> memory of the structure's own
 *
 * Every operation is called through the table: the cost of the call is the same for all. Time is a number of ticks of a
 * second that begins at 0. No structure reads a clock.
 */

#include <stddef.h>
#include <stdint.h>

#define OBJECT_SIZE 64
#define BENCH_WEEK UINT64_C(604800)

struct object {
	_Alignas(OBJECT_SIZE) unsigned char room[OBJECT_SIZE];
};

/* Where a structure reports each expiry, in the order in which they happen. */
struct sink {
	struct object **expired;
	uint64_t room;  /* for every object of the run, once */
	uint64_t count; /* more than there is room for only if the structure is wrong */
};

/* Count, but do not keep, what there is no room for: a structure may be wrong, and must not overwrite anything. */
static inline void sink_report(struct sink *sink, struct object *object)
{
	if (sink->count < sink->room)
		sink->expired[sink->count] = object;
	sink->count++;
}

struct structure {
	const char *name;    /* as the option --structure takes it */
	const char *summary; /* a line for people, without a final stop */
	uint64_t most;       /* more timers than this it is not asked to hold; 0: any number */
	uint64_t longest;    /* longer delays than this do not fit; 0: any delay */

	/*
	 * Make the structure for objects[0 .. n-1], which are zeroed and idle, at time 0. All memory that it will use
	 * for n timers is allocated and touched here. Ends the program if there is none.
	 */
	void *(*create)(struct object *objects, uint64_t n, struct sink *sink);
	void (*destroy)(void *state);

	/* The object is idle. Its timer shall expire `delay` ticks from now, 1 or more. */
	void (*schedule)(void *state, struct object *object, uint64_t delay);
	/* Make the pending object idle. */
	void (*cancel)(void *state, struct object *object);
	/* The object is pending. It shall expire `delay` ticks from now instead. */
	void (*touch)(void *state, struct object *object, uint64_t delay);
	/*
	 * NULL, or the same of n objects in a call: schedule the i-th with delays[i], or cancel it. A structure with these
	 * is measured in A, B and R only. The arrays are made before the time is taken.
	 */
	void (*schedule_many)(void *state, struct object *const *objects, const uint64_t *delays, uint64_t n);
	void (*cancel_many)(void *state, struct object *const *objects, uint64_t n);
	/* Move time on to `now` in one call; report what expired, which is idle afterwards. */
	void (*advance)(void *state, uint64_t now);

	/* Bytes of a timer in the object and outside it. */
	size_t node_bytes;
	size_t own_bytes;
	/* Bytes of the structure without timers; bytes_for, if set, returns them for delays up to `horizon` ticks. */
	size_t empty_bytes;
	size_t (*bytes_for)(uint64_t horizon);
	int any_horizon; /* bytes_for also takes a horizon beyond `longest`: the structure could be made for it */
};

static inline size_t structure_empty_bytes(const struct structure *structure, uint64_t horizon)
{
	return structure->bytes_for ? structure->bytes_for(horizon) : structure->empty_bytes;
}

/* From session on they are what the layers above the wheel are measured with (layers.h): names, without operations. */
extern const struct structure structure_weekwheel, structure_weekwheel_many, structure_linked, structure_linked_clocks,
    structure_flat, structure_flat60, structure_rounds300, structure_rounds3600, structure_scan, structure_heap2,
    structure_heap4, structure_libev, structure_libevent, structure_libuv, structure_floor, structure_session,
    structure_session_many, structure_khash, structure_uthash, structure_driver1, structure_driver2, structure_driver,
    structure_sleep, structure_map, structure_maps, structure_ww_sleep, structure_nanosleep, structure_driver64,
    structure_short, structure_slow, structure_due, structure_due1, structure_due2, structure_due_alone,
    structure_due_us, structure_due_us1, structure_due_us2;

/* All of them, in the order in which they are shown, without those of missing libraries; NULL ends it. */
extern const struct structure *const structures[];

/* Return the structure of this name, or NULL. */
const struct structure *structure_by_name(const char *name);

/*
 * Drive the structure through random schedules, touches, cancels, ticks and jumps, and compare it with a plain array of
 * deadlines. Return NULL, or a sentence that says what was wrong: a timer expired early, twice, after its cancel or
 * never. *latest gets the most ticks by which a timer was late.
 */
const char *correct_run(const struct structure *structure, uint64_t seed, uint64_t *latest);

#endif
