#ifndef TOOLS_BENCH_STRUCTURE_H
#define TOOLS_BENCH_STRUCTURE_H

/*
 * What is compared: timer structures behind one table of operations.
 *
 * An application keeps one object a timer: a session, a connection. So there is an array of objects of a cache line
 * each, and every timer is reached through its object, in the order that the workload names. A structure that is
 * intrusive embeds its node in the object; any other keeps a handle there and pays for its own memory besides.
 *
 *     objects   [ 64 bytes | 64 bytes | 64 bytes | ... ]
 *                 node, or handle ---> memory of the structure's own
 *
 * Every operation is called through the table, so that the cost of the call is the same for all. Time is a number of
 * ticks of a second that begins at 0; no structure reads a clock.
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

/* What there is no room for is counted but not kept: a structure may be wrong, and must not overwrite anything. */
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

	/* The object is idle; its timer shall expire `delay` ticks from now, delay being 1 or more. */
	void (*schedule)(void *state, struct object *object, uint64_t delay);
	/* The object is pending, and is idle afterwards. */
	void (*cancel)(void *state, struct object *object);
	/* The object is pending, and shall expire `delay` ticks from now instead. */
	void (*touch)(void *state, struct object *object, uint64_t delay);
	/*
	 * Move time to `now`, which is later than it was, in one call; report what expired, which is idle afterwards.
	 */
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

/* All structures that this program was built with, in the order in which they are shown; NULL ends them. */
extern const struct structure *const structures[];

/* Return the structure of this name, or NULL. */
const struct structure *structure_by_name(const char *name);

extern const struct structure structure_weekwheel;
extern const struct structure structure_linked;
extern const struct structure structure_linked_clocks;
extern const struct structure structure_flat;
extern const struct structure structure_flat60;
extern const struct structure structure_rounds300;
extern const struct structure structure_rounds3600;
extern const struct structure structure_scan;
extern const struct structure structure_heap2;
extern const struct structure structure_heap4;
#ifdef HAVE_LIBEV
extern const struct structure structure_libev;
#endif
#ifdef HAVE_LIBEVENT
extern const struct structure structure_libevent;
#endif
#ifdef HAVE_LIBUV
extern const struct structure structure_libuv;
#endif
extern const struct structure structure_floor;

/*
 * What the layers above the wheel are measured with (bench/layers/layers.h): names, without operations. NULL ends them.
 */
extern const struct structure *const layer_structures[];
extern const struct structure structure_session;
extern const struct structure structure_uthash;
#ifdef HAVE_KHASH
extern const struct structure structure_khash;
#endif
extern const struct structure structure_driver1;
extern const struct structure structure_driver2;
extern const struct structure structure_driver;
extern const struct structure structure_sleep;

#endif
