#ifndef TOOLS_WEEKWHEEL_SESSIOND_KEEP_FORMAT_H
#define TOOLS_WEEKWHEEL_SESSIOND_KEEP_FORMAT_H

/*
 * The bytes of image and journal.
 *
 *     sessions    head | block | block | ... | an empty block
 *     head        magic 8 | version 4 | flags 4 | cut 8 | record 8 | sum 8
 *     block       size of its entries 8 | their sum 8, which goes on from the one before | entries
 *
 *     journal.N   records of lib/journal/format.h: steady time in ms 8 | entries
 *
 *     entry       kind 1 | database 1 | size of the key 2 | of the value 4 | times | key | value
 *     database    with the top bit: of a set whose key had no entry, or one that had expired
 *     times       of a set: TTL 8, ns | deadline 8 | end of the lifetime 8; of a touch without the end; of an entry of an
 *                 exact image all these, and when it expires 8; of what waits to be delivered (outbox.h) id 8 | deadline 8 |
 *                 since 8 | size of the value 4 | 1 if that is left out here 2 | why 2; of a delivered id 8; of the clocks
 *                 the boot 8 | steady time 8 | wall time 8 | steady time less the system's elapsed time 8; of an ended
 *                 key 0 8 | until when it is recalled 8 | end of the lifetime 8; else none
 *
 * An image has an ended entry for each key that is recalled after it has expired, behind the sessions. The journal needs
 * none: a load sees in it what has expired lately.
 *
 * A delivered entry means that all waiting items up to its id need no report any more. With id 0 it means that from here on
 * expiries are not reported. Each start writes one or the other, and so does an image. Numbers are little-endian. Times
 * are steady (data.h), in ms. An entry of the clocks says what they were: each start and each image writes one, and the
 * journal when somebody has set the wall clock. In files of 0.1.0 there is none: there, times are those of the wall clock.
 *
 * The image (the file sessions) has the changes of the journal's files up to `cut`, and perhaps more; the first record
 * of the next file is `record`. An entry has its content in full. Reading changes from the journal that the image
 * already has is therefore harmless.
 */

#include <stddef.h>
#include <stdint.h>

#include "tools/common/buffer.h"

#define KEEP_MAGIC "wwsessd\n"

enum {
	KEEP_VERSION = 3,
	KEEP_OLDEST = 2,
	KEEP_HEAD = 40,
	KEEP_BLOCK_HEAD = 16,
	KEEP_ENTRY_HEAD = 8,
	KEEP_ENTRY_MOST = 40,
	KEEP_TIME = 8
};

/* Flag of an image: writing it was the last thing that a server did, and it has KEEP_LAST for each entry. */
enum { KEEP_EXACT = 1 };

enum keep_kind {
	KEEP_SET = 1,
	KEEP_TOUCH,
	KEEP_ERASE,
	KEEP_CLEAR,
	KEEP_LAST,
	KEEP_WAIT,
	KEEP_DELIVERED,
	KEEP_CLOCK,
	KEEP_ENDED
};

struct keep_entry {
	enum keep_kind kind;
	unsigned database;
	const void *key;
	size_t length;
	const void *value;
	size_t size;
	uint64_t ttl;      /* ns, or DATA_NEVER */
	uint64_t deadline; /* steady time in ms, or DATA_NEVER; so is the next */
	uint64_t end;
	uint64_t expiry; /* what the map had for the deadline */
	int is_new;      /* of a set: the key had no entry, or it had expired */
};

/* Return -1 without memory: nothing was added. */
int keep_format_add(struct buffer *to, const struct keep_entry *entry);
/* Read the entry at the beginning of these bytes. Returns how many it takes; 0: this is none. */
size_t keep_format_read(const unsigned char *from, size_t size, struct keep_entry *entry);

void keep_format_number(unsigned char *to, uint64_t number, int size);
uint64_t keep_format_get(const unsigned char *from, int size);
uint64_t keep_format_sum(uint64_t before, const void *bytes, size_t size);

#endif
