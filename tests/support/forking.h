#ifndef TESTS_SUPPORT_FORKING_H
#define TESTS_SUPPORT_FORKING_H

/*
 * An allocator for one thread that forks at each call, before it does what is asked and after. In the child a function
 * of the test frees everything, and the allocator checks each block: it must be one that is there, with its size.
 */

#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "weekwheel/allocator.h"

#define FORKING_BLOCKS 4096

struct forking_memory {
	struct ww_allocator table;
	void (*free_all)(void *context); /* what a child does; NULL: no forks */
	void *context;
	size_t spare; /* blocks that may be left in a child: what a call is about to exchange */
	int in_child;
	size_t forks;
	size_t count;
	struct {
		void *block;
		size_t size;
	} live[FORKING_BLOCKS];
};

#define FORKING_WRONG_BLOCK 3
#define FORKING_LEFT 4

static inline void forking_fork(struct forking_memory *memory)
{
	int status = -1;
	pid_t child;

	if (!memory->free_all || memory->in_child)
		return;
	memory->forks++;
	child = fork();
	if (child == 0) {
		memory->in_child = 1;
		memory->free_all(memory->context);
		_exit(memory->count <= memory->spare ? 0 : FORKING_LEFT);
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(status == 0, "at fork %zu the child ends with status %d", memory->forks, status);
}

static inline void *forking_allocate(void *user, size_t size)
{
	struct forking_memory *memory = user;
	void *block;

	forking_fork(memory);
	block = aligned_alloc(64, (size + 63) & ~(size_t)63);
	ck_assert_ptr_nonnull(block);
	ck_assert_uint_lt(memory->count, FORKING_BLOCKS);
	memory->live[memory->count].block = block;
	memory->live[memory->count++].size = size;
	forking_fork(memory);
	return block;
}

static inline void forking_free(void *user, void *block, size_t size)
{
	struct forking_memory *memory = user;
	size_t i = 0;

	forking_fork(memory);
	while (i < memory->count && memory->live[i].block != block)
		i++;
	if (i == memory->count || memory->live[i].size != size) {
		if (memory->in_child)
			_exit(FORKING_WRONG_BLOCK);
		ck_abort_msg("a block that is not there, or has another size");
	}
	memory->live[i] = memory->live[--memory->count];
	free(block);
	forking_fork(memory);
}

static inline void forking_init(struct forking_memory *memory, size_t spare)
{
	*memory = (struct forking_memory){.table = {forking_allocate, forking_free, memory}, .spare = spare};
}

#endif
