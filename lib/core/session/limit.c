/*
 * Which entries a limited map keeps. Each shard has three lists in order of use:
 *
 *     window   new entries: a hundredth of the limit, in a map with WW_SESSION_ADMIT
 *     main     what was admitted; in other maps every entry
 *     pinned   never evicted, in no order
 *
 * A full map removes expired entries, then the least recently used entry of main. With WW_SESSION_ADMIT the oldest
 * entry of the window takes its place only if it was used more often; otherwise it is removed itself. A scan, whose
 * keys are used once, thus passes through the window and leaves most of main, until uses have been halved away. A
 * count-min sketch estimates how often a key was used. It has 4-bit counters that are halved time and again: G.
 * Einziger, R. Friedman, B. Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", ACM Transactions on Storage
 * 13(4), 2017, https://doi.org/10.1145/3149371.
 */

#include <string.h>

#include "lib/core/session/session_internal.h"

/* What a call puts out at most, under one lock. More goes with the next calls. */
#define EVICTIONS 256u

/* ---- The sketch: the low bits of the hash chose the shard, and four counters of four words are the key's */

/* Each word is halved once in ten uses for each entry of the limit, as in the paper, but one at a time: without a pause. */
#define USES_AN_ENTRY 10u

static uint32_t sketch_word(const struct sketch *sketch, uint64_t hash, unsigned row)
{
	static const uint64_t odd[] = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9),
	    UINT64_C(0x94d049bb133111eb), UINT64_C(0xd6e8feb86659fd93)};

	return (uint32_t)((hash * odd[row]) >> 32) & sketch->mask;
}

/* Each row has four counters of a word. */
static unsigned sketch_shift(uint64_t hash, unsigned row)
{
	return (unsigned)(row * 4 + (hash >> (32 + 2 * row) & 3)) * 4;
}

static unsigned sketch_estimate(const struct sketch *sketch, uint64_t hash)
{
	unsigned least = 15;

	for (unsigned row = 0; row < 4; row++) {
		unsigned count = sketch->word[sketch_word(sketch, hash, row)] >> sketch_shift(hash, row) & 15;
		least = count < least ? count : least;
	}
	return least;
}

static void sketch_count(struct sketch *sketch, uint64_t hash)
{
	for (unsigned row = 0; row < 4; row++) {
		uint64_t *word = &sketch->word[sketch_word(sketch, hash, row)];
		unsigned shift = sketch_shift(hash, row);
		if ((*word >> shift & 15) < 15)
			*word += UINT64_C(1) << shift;
	}
	if (++sketch->uses < sketch->uses_a_word)
		return;
	sketch->uses = 0;
	uint64_t *old = &sketch->word[++sketch->next & sketch->mask];
	*old = *old >> 1 & UINT64_C(0x7777777777777777);
}

static size_t sketch_bytes(const struct sketch *sketch)
{
	return sketch->word ? (sketch->mask + (size_t)1) * sizeof *sketch->word : 0;
}

size_t ww_session_limit_bytes(const struct session_shard *shard)
{
	return sketch_bytes(&shard->sketch);
}

int ww_session_limit_init(struct session_shard *shard)
{
	const struct ww_session *session = shard->session;
	size_t entries = session->shard_limit < SLAB_MAX ? session->shard_limit : SLAB_MAX;
	size_t words = 1;

	for (unsigned i = 0; i < LISTS; i++)
		shard->list[i] = (struct use_list){.newest = USE_NONE, .oldest = USE_NONE};
	if (!(session->config.flags & WW_SESSION_ADMIT))
		return WW_OK;
	while (words * 2 <= entries)
		words *= 2;
	shard->sketch.mask = (uint32_t)(words - 1);
	shard->sketch.uses_a_word = (uint32_t)(USES_AN_ENTRY * entries / words);
	shard->sketch.word = session->allocator->allocate(session->allocator->user, words * sizeof *shard->sketch.word);
	if (!shard->sketch.word)
		return WW_ENOMEM;
	memset(shard->sketch.word, 0, words * sizeof *shard->sketch.word);
	return WW_OK;
}

void ww_session_limit_free(struct session_shard *shard)
{
	const struct ww_allocator *allocator = shard->session->allocator;
	struct sketch sketch = shard->sketch;

	/* In this order a child of the process frees it at most once. */
	shard->sketch.word = NULL;
	if (sketch.word)
		allocator->free(allocator->user, sketch.word, sketch_bytes(&sketch));
}

/* ---- Lists */

static struct session_entry *entry_at(const struct session_shard *shard, uint32_t index)
{
	return slab_at(&shard->slab, index);
}

static struct session_use *use_at(const struct session_shard *shard, uint32_t index)
{
	return entry_use(shard->session, entry_at(shard, index));
}

static uint64_t weight_of(const struct session_shard *shard, struct session_entry *entry)
{
	return shard->session->at_weight ? *entry_weight(shard->session, entry) : 0;
}

static void link_newest(struct session_shard *shard, struct session_entry *entry, uint32_t in)
{
	struct use_list *list = &shard->list[in];
	struct session_use *use = entry_use(shard->session, entry);

	*use = (struct session_use){.newer = USE_NONE, .older = list->newest & USE_NONE, .list = in & 3};
	if (list->newest != USE_NONE)
		use_at(shard, list->newest)->newer = entry->index & USE_NONE;
	else
		list->oldest = entry->index;
	list->newest = entry->index;
	list->count++;
	list->weight += weight_of(shard, entry);
}

static void unlink_use(struct session_shard *shard, struct session_entry *entry)
{
	struct session_use use = *entry_use(shard->session, entry);
	struct use_list *list = &shard->list[use.list];

	if (use.newer != USE_NONE)
		use_at(shard, use.newer)->older = use.older;
	else
		list->newest = use.older;
	if (use.older != USE_NONE)
		use_at(shard, use.older)->newer = use.newer;
	else
		list->oldest = use.newer;
	list->count--;
	list->weight -= weight_of(shard, entry);
}

static uint64_t hash_of(const struct session_shard *shard, const struct session_entry *entry)
{
	return ww_hash_bytes(&shard->session->secret, entry_key(entry), entry->length);
}

void ww_session_limit_used(struct session_shard *shard, struct session_entry *entry)
{
	uint32_t list = entry_use(shard->session, entry)->list;

	if (shard->sketch.word)
		sketch_count(&shard->sketch, hash_of(shard, entry));
	if (shard->list[list].newest == entry->index)
		return;
	unlink_use(shard, entry);
	link_newest(shard, entry, list);
}

void ww_session_limit_remove(struct session_shard *shard, struct session_entry *entry)
{
	unlink_use(shard, entry);
}

void ww_session_limit_file(
    struct session_shard *shard, struct session_entry *entry, const struct session_content *content, int is_new)
{
	uint32_t list = shard->sketch.word ? LIST_WINDOW : LIST_MAIN;

	if (shard->sketch.word)
		sketch_count(&shard->sketch, hash_of(shard, entry));
	if (!is_new) {
		list = entry_use(shard->session, entry)->list;
		list = list == LIST_PINNED ? LIST_MAIN : list;
		unlink_use(shard, entry);
	}
	if (shard->session->at_weight)
		*entry_weight(shard->session, entry) = content->weight ? content->weight : 1;
	link_newest(shard, entry, content->pinned ? LIST_PINNED : list);
}

/* ---- Limits */

int ww_session_limit_refuses(
    const struct session_shard *shard, struct session_entry *entry, const struct session_content *content)
{
	const struct ww_session *session = shard->session;
	const struct use_list *pinned = &shard->list[LIST_PINNED];
	uint64_t weight = content->weight ? content->weight : 1;
	int there = entry && entry_use(session, entry)->list == LIST_PINNED;
	uint64_t weighed = there ? weight_of(shard, entry) : 0;

	if (content->moves)
		return 0;
	if (session->shard_limit && !there && pinned->count >= session->shard_limit)
		return 1;
	/* Weights of one shard are below half the range, and so is a sum of two. */
	return session->shard_weight_limit && weight > weighed &&
	       pinned->weight - weighed + weight > session->shard_weight_limit;
}

static int is_over(const struct session_shard *shard)
{
	const struct ww_session *session = shard->session;
	uint64_t weight = 0;

	if (session->shard_limit && table_count(&shard->table) > session->shard_limit)
		return 1;
	for (unsigned i = 0; i < LISTS; i++)
		weight += shard->list[i].weight;
	return session->shard_weight_limit && weight > session->shard_weight_limit;
}

/* By number, or by weight: where entries are large, few fill the map. */
static int is_window_full(const struct session_shard *shard)
{
	const struct use_list *window = &shard->list[LIST_WINDOW];
	const struct ww_session *session = shard->session;

	return window->count > session->shard_limit / 100 + 1 ||
	       (session->at_weight && window->count > 1 && window->weight > session->shard_weight_limit / 100);
}

/* The oldest of the window has been there long enough. */
static void admit(struct session_shard *shard)
{
	struct session_entry *entry = entry_at(shard, shard->list[LIST_WINDOW].oldest);

	unlink_use(shard, entry);
	link_newest(shard, entry, LIST_MAIN);
}

/* What goes, or NULL: all is pinned. */
static struct session_entry *choose(struct session_shard *shard)
{
	uint32_t oldest = shard->list[LIST_MAIN].oldest;
	uint32_t candidate = shard->list[LIST_WINDOW].oldest;

	if (oldest == USE_NONE)
		return candidate == USE_NONE ? NULL : entry_at(shard, candidate);
	if (!is_window_full(shard))
		return entry_at(shard, oldest);
	unsigned new_uses = sketch_estimate(&shard->sketch, hash_of(shard, entry_at(shard, candidate)));
	if (new_uses <= sketch_estimate(&shard->sketch, hash_of(shard, entry_at(shard, oldest)))) {
		shard->stats.not_admitted++;
		return entry_at(shard, candidate);
	}
	admit(shard);
	return entry_at(shard, oldest);
}

static struct session_entry *take_due(const struct session_sought *sought)
{
	struct ww_timer *due;

	do
		due = ww_source_take_due(sought->shard->source, sought->now);
	while (due && ww_session_take_expires(sought->shard, due));
	return (struct session_entry *)(void *)due;
}

/* Put an entry out. Its memory stays, as gone gets its key. */
static int put_out(const struct session_sought *sought, struct taken_out *out)
{
	struct session_shard *shard = sought->shard;
	struct session_entry *due = take_due(sought);
	struct session_entry *entry = due ? due : choose(shard);

	if (!entry)
		return 0;
	uint64_t deadline = due ? entry_met(shard, entry) : entry_deadline(shard, entry);
	int expired = due || deadline <= sought->now;
	if (expired)
		ww_session_recall_expired(shard, entry, deadline);
	ww_session_entry_remove(shard, entry, !due);
	*entry_gone_deadline(entry) = deadline;
	shard->stats.expired += (uint64_t)expired;
	shard->stats.evicted += (uint64_t)!expired;
	entry->as.firing = (struct firing){.next = out->evicted, .since = expired ? WW_GONE_EXPIRED : WW_GONE_EVICTED};
	out->evicted = &entry->as.firing;
	return 1;
}

void ww_session_limit_settle(struct session_shard *shard)
{
	while (shard->sketch.word && is_window_full(shard))
		admit(shard);
}

void ww_session_evict(const struct session_sought *sought, struct taken_out *out)
{
	struct session_shard *shard = sought->shard;

	if (!shard->session->at_use)
		return;
	for (unsigned i = 0; i < EVICTIONS && is_over(shard) && put_out(sought, out); i++)
		continue;
	ww_session_limit_settle(shard);
}
