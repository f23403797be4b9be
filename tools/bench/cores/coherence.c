/* The model of coherent caches. */
#include "tools/bench/cores/coherence.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/memory.h"

enum { WORDS = COHERENCE_THREADS / 64, CAUSES = 4096, FIRST_ROOM = 1 << 12 };

/* A set of threads. */
struct threads {
	uint64_t word[WORDS];
};

struct line {
	uintptr_t number;       /* of the line; 0: this place is free */
	struct threads holders; /* whose caches have it */
	int writer;             /* the thread that has written it since the count began; -1: none; -2: several */
};

struct coherence {
	struct line *lines; /* a hash table */
	size_t room;        /* a power of two */
	size_t used;
	struct coherence_count count;
	struct coherence_cause causes[CAUSES]; /* a hash table that takes no more when it is full */
};

/* ---- Sets */

static int has(const struct threads *set, unsigned thread)
{
	return (set->word[thread / 64] >> thread % 64 & 1) != 0;
}

static void add(struct threads *set, unsigned thread)
{
	set->word[thread / 64] |= UINT64_C(1) << thread % 64;
}

static int has_others(const struct threads *set, unsigned thread)
{
	uint64_t others = 0;

	for (unsigned i = 0; i < WORDS; i++)
		others |= set->word[i] & ~(i == thread / 64 ? UINT64_C(1) << thread % 64 : 0);
	return others != 0;
}

/* ---- Lines */

static size_t hash(uintptr_t number, size_t room)
{
	return (size_t)((uint64_t)number * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (room - 1);
}

static struct line *place_of(struct line *lines, size_t room, uintptr_t number)
{
	size_t i = hash(number, room);

	while (lines[i].number && lines[i].number != number)
		i = (i + 1) & (room - 1);
	return &lines[i];
}

static void grow(struct coherence *model)
{
	size_t room = model->room ? 2 * model->room : FIRST_ROOM;
	struct line *lines = memory_zeroed(room, sizeof *lines);

	for (size_t i = 0; i < model->room; i++)
		if (model->lines[i].number)
			*place_of(lines, room, model->lines[i].number) = model->lines[i];
	free(model->lines);
	model->lines = lines;
	model->room = room;
}

static struct line *line_of(struct coherence *model, uintptr_t number)
{
	if (2 * model->used >= model->room)
		grow(model);
	struct line *line = place_of(model->lines, model->room, number);
	if (!line->number) {
		*line = (struct line){.number = number, .writer = -1};
		model->used++;
	}
	return line;
}

/* ---- Counting */

static void blame(struct coherence *model, uintptr_t code)
{
	size_t i = hash(code, CAUSES);

	for (size_t tries = 0; tries < CAUSES; tries++, i = (i + 1) % CAUSES)
		if (model->causes[i].code == code || !model->causes[i].transfers) {
			model->causes[i].code = code;
			model->causes[i].transfers++;
			return;
		}
}

static void note_writer(struct coherence *model, struct line *line, int thread)
{
	if (line->writer >= 0 && line->writer != thread) {
		model->count.shared++;
		line->writer = -2;
	} else if (line->writer == -1)
		line->writer = thread;
}

static void access_line(struct coherence *model, unsigned thread, uintptr_t number, int writes, uintptr_t code)
{
	struct line *line = line_of(model, number);

	if (has_others(&line->holders, thread) && (writes || !has(&line->holders, thread))) {
		model->count.transfers++;
		blame(model, code);
	}
	if (writes) {
		line->holders = (struct threads){0};
		note_writer(model, line, (int)thread);
	}
	add(&line->holders, thread);
}

struct coherence *coherence_make(void)
{
	return memory_zeroed(1, sizeof(struct coherence));
}

void coherence_free(struct coherence *model)
{
	free(model->lines);
	free(model);
}

void coherence_begin(struct coherence *model)
{
	for (size_t i = 0; i < model->room; i++)
		model->lines[i].writer = -1;
	model->count = (struct coherence_count){0};
	memset(model->causes, 0, sizeof model->causes);
}

void coherence_access(
    struct coherence *model, unsigned thread, uintptr_t address, size_t bytes, int writes, uintptr_t code)
{
	if (bytes == 0)
		return;
	for (uintptr_t line = address / COHERENCE_LINE; line <= (address + bytes - 1) / COHERENCE_LINE; line++)
		access_line(model, thread, line, writes, code);
}

struct coherence_count coherence_counted(const struct coherence *model)
{
	return model->count;
}

static int by_transfers(const void *one, const void *other)
{
	uint64_t a = ((const struct coherence_cause *)one)->transfers,
	         b = ((const struct coherence_cause *)other)->transfers;

	return (a < b) - (a > b);
}

size_t coherence_causes(const struct coherence *model, struct coherence_cause *causes, size_t room)
{
	struct coherence_cause *sorted = memory_zeroed(CAUSES, sizeof *sorted);
	size_t count = 0;

	memcpy(sorted, model->causes, sizeof model->causes);
	qsort(sorted, CAUSES, sizeof *sorted, by_transfers);
	for (; count < room && count < CAUSES && sorted[count].transfers; count++)
		causes[count] = sorted[count];
	free(sorted);
	return count;
}
