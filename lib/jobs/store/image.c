/* The pages of an index, read without SQLite. */

#include "lib/jobs/store/image.h"
#include "lib/base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/crc32c.h"
#include "lib/base/report.h"
#include "lib/jobs/store/files.h"
#include "lib/jobs/store/store.h"

/* The format of the log: www.sqlite.org/fileformat2.html, "The Write-Ahead Log". */
enum { LOG_HEAD = 32, FRAME_HEAD = 24, FRAME = FRAME_HEAD + PAGES_SIZE, RETRIES = 10 };

void ww_image_report(struct pages_image *image, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report_message(image->problem, image->context, format, arguments);
	va_end(arguments);
	image->problems++;
}

static int open_file(const char *folder, const char *name, int *fd)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
		return WW_EINVAL;
	*fd = open_plain(AT_FDCWD, path, O_RDONLY);
	if (*fd >= 0 || errno == ENOENT)
		return WW_OK;
	return error_of_errno(errno);
}

static int read_at(int fd, void *to, size_t size, uint64_t offset)
{
	return pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

/* ---- The log */

struct log_scan {
	unsigned char head[LOG_HEAD];
	int is_big; /* how its sums take words */
	uint32_t sum[2];
	uint64_t whole; /* of them follow each other */
	uint64_t committed;
	uint32_t pages; /* of the index after the last commit */
};

static uint32_t word_of(const struct log_scan *scan, const unsigned char *bytes)
{
	uint32_t word;

	if (scan->is_big)
		return store_read32(bytes);
	memcpy(&word, bytes, sizeof word);
	return word;
}

static void add_sum(struct log_scan *scan, const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		scan->sum[0] += word_of(scan, bytes + i) + scan->sum[1];
		scan->sum[1] += word_of(scan, bytes + i + 4) + scan->sum[0];
	}
}

static int has_sum(const struct log_scan *scan, const unsigned char *bytes)
{
	return store_read32(bytes) == scan->sum[0] && store_read32(bytes + 4) == scan->sum[1];
}

static int read_log_head(struct pages_image *image, struct log_scan *scan)
{
	uint32_t magic;

	if (!read_at(image->log, scan->head, LOG_HEAD, 0))
		return 0;
	magic = store_read32(scan->head);
	scan->is_big = magic & 1;
	scan->sum[0] = scan->sum[1] = 0;
	add_sum(scan, scan->head, LOG_HEAD - 8);
	return (magic & ~1u) == 0x377f0682 && store_read32(scan->head + 8) == PAGES_SIZE &&
	       has_sum(scan, scan->head + LOG_HEAD - 8);
}

static int is_of_this_log(const struct log_scan *scan, const unsigned char *frame)
{
	return memcmp(frame + 8, scan->head + 16, 8) == 0;
}

/* Go through the frames that follow each other, up to the last commit. */
static void scan_frames(struct pages_image *image, struct log_scan *scan)
{
	unsigned char frame[FRAME];

	while (read_at(image->log, frame, FRAME, LOG_HEAD + scan->whole * FRAME)) {
		add_sum(scan, frame, 8);
		add_sum(scan, frame + FRAME_HEAD, PAGES_SIZE);
		if (!is_of_this_log(scan, frame) || !has_sum(scan, frame + 16))
			break;
		scan->whole++;
		if (store_read32(frame + 4)) {
			scan->committed = scan->whole;
			scan->pages = store_read32(frame + 4);
		}
	}
}

/* Whether an unreadable commit of this log follows: it was written, and something before it is damaged. */
static int has_lost_commit(struct pages_image *image, const struct log_scan *scan)
{
	unsigned char head[FRAME_HEAD];

	for (uint64_t i = scan->whole; read_at(image->log, head, sizeof head, LOG_HEAD + i * FRAME); i++)
		if (is_of_this_log(scan, head) && store_read32(head + 4))
			return 1;
	return 0;
}

static int map_frames(struct pages_image *image, const struct log_scan *scan)
{
	unsigned char head[FRAME_HEAD];

	for (uint64_t i = 0; i < scan->committed; i++) {
		uint64_t at = LOG_HEAD + i * FRAME;
		if (!read_at(image->log, head, sizeof head, at))
			return WW_EIO;
		uint32_t number = store_read32(head);
		if (number && number <= image->pages)
			image->in_log[number - 1] = at + FRAME_HEAD;
	}
	return WW_OK;
}

/* A log that begins anew meanwhile may look damaged. */
static void scan_log(struct pages_image *image, struct log_scan *scan)
{
	struct stat status = {0};
	const char *damage;

	for (int i = 0;; i++) {
		*scan = (struct log_scan){.pages = 0};
		damage = NULL;
		if (image->log < 0 || fstat(image->log, &status) || status.st_size == 0)
			return;
		if (!read_log_head(image, scan))
			damage = "its head is damaged, so all of it is lost";
		else {
			scan_frames(image, scan);
			if (has_lost_commit(image, scan))
				damage = "it is damaged, so what was written last is lost";
		}
		if (!damage || i >= image->retries)
			break;
		(void)poll(NULL, 0, 5);
	}
	image->log_size = LOG_HEAD + scan->committed * FRAME;
	if (damage)
		ww_image_report(
		    image, "%s/index.db-wal: %s (page %" PRIu64 " of it)", image->folder, damage, scan->whole + 1);
}

/* ---- The database */

static int count_pages(struct pages_image *image, const struct log_scan *scan)
{
	unsigned char page[PAGES_SIZE];
	struct stat status = {0};
	uint32_t size;

	if (image->database < 0) {
		ww_image_report(image, "%s/index.db is missing", image->folder);
		image->pages = scan->pages;
		return WW_OK;
	}
	if (fstat(image->database, &status))
		return WW_EIO;
	size = (uint32_t)(status.st_size / PAGES_SIZE);
	image->pages = scan->pages;
	if (!scan->pages && size && read_at(image->database, page, sizeof page, 0) && ww_pages_is_sound(page, 1))
		image->pages = store_read32(page + 28);
	if (!image->pages)
		image->pages = size;
	if (!image->pages)
		ww_image_report(
		    image, "%s/index.db was cut short to %lld bytes", image->folder, (long long)status.st_size);
	return WW_OK;
}

int ww_image_open(struct pages_image *image, const char *folder, ww_jobs_problem_fn *problem, void *context)
{
	struct log_scan scan;
	int error;

	*image = (struct pages_image){.folder = folder,
	    .database = -1,
	    .log = -1,
	    .retries = ww_store_files_used(folder) ? RETRIES : 0,
	    .problem = problem,
	    .context = context};
	error = open_file(folder, "index.db", &image->database);
	if (!error)
		error = open_file(folder, "index.db-wal", &image->log);
	if (!error) {
		scan_log(image, &scan);
		error = count_pages(image, &scan);
	}
	if (!error && image->pages) {
		image->in_log = calloc(image->pages, sizeof *image->in_log);
		image->reported = calloc(image->pages, 1);
		image->is_free = calloc(image->pages, 1);
		error = image->in_log && image->reported && image->is_free ? map_frames(image, &scan) : WW_ENOMEM;
	}
	if (error)
		ww_image_close(image);
	return error;
}

void ww_image_close(struct pages_image *image)
{
	if (image->database >= 0)
		close(image->database);
	if (image->log >= 0)
		close(image->log);
	image->database = image->log = -1;
	free(image->in_log);
	free(image->reported);
	free(image->is_free);
	free(image->flips);
	image->flips = NULL;
	image->in_log = NULL;
	image->reported = image->is_free = NULL;
}

/* ---- A flipped bit changes the sum of a page in a way of its own, whatever the page has */

struct image_flip {
	uint32_t change;
	uint32_t bit;
};

enum { SUMMED = PAGES_SIZE - PAGES_SUM, BITS = SUMMED * 8 };

static int by_change(const void *a, const void *b)
{
	const struct image_flip *one = a, *other = b;

	return (one->change > other->change) - (one->change < other->change);
}

static int make_flips(struct pages_image *image)
{
	unsigned char page[SUMMED] = "";
	uint32_t sum = ww_crc32c(0, page, sizeof page);

	image->flips = malloc(BITS * sizeof *image->flips);
	if (!image->flips)
		return WW_ENOMEM;
	for (uint32_t bit = 0; bit < BITS; bit++) {
		page[bit / 8] = (unsigned char)(1 << bit % 8);
		image->flips[bit] = (struct image_flip){ww_crc32c(0, page, sizeof page) ^ sum, bit};
		page[bit / 8] = 0;
	}
	qsort(image->flips, BITS, sizeof *image->flips, by_change);
	return WW_OK;
}

static int correct(struct pages_image *image, unsigned char *page, uint32_t number)
{
	struct image_flip flip = {.change = ww_pages_change(page, number)};
	const struct image_flip *found;

	/* The sum itself may have it. */
	if ((flip.change & (flip.change - 1)) == 0)
		return 1;
	if (!image->flips && make_flips(image))
		return 0;
	found = bsearch(&flip, image->flips, BITS, sizeof flip, by_change);
	if (found)
		page[found->bit / 8] ^= (unsigned char)(1 << found->bit % 8);
	return found != NULL;
}

static int read_sound(struct pages_image *image, uint32_t number, unsigned char *page, int *is_there)
{
	for (int i = 0; i <= image->retries; i++) {
		if (i)
			(void)poll(NULL, 0, 2);
		*is_there = image->database >= 0 &&
		            read_at(image->database, page, PAGES_SIZE, (uint64_t)(number - 1) * PAGES_SIZE);
		if (*is_there && ww_pages_is_sound(page, number))
			return 1;
	}
	return 0;
}

int ww_image_page(struct pages_image *image, uint32_t number, unsigned char page[PAGES_SIZE])
{
	int is_there = 0;
	int is_corrected;

	if (number == 0 || number > image->pages)
		return WW_ECORRUPT;
	if (image->in_log[number - 1])
		return read_at(image->log, page, PAGES_SIZE, image->in_log[number - 1]) ? WW_OK : WW_EIO;
	if (read_sound(image, number, page, &is_there))
		return WW_OK;
	is_corrected = is_there && correct(image, page, number);
	if (!image->reported[number - 1])
		ww_image_report(image, "%s/index.db: page %u %s", image->folder, (unsigned)number,
		    !is_there      ? "is missing"
		    : is_corrected ? "has a flipped bit"
		                   : "is damaged");
	image->reported[number - 1] = 1;
	return is_corrected ? WW_OK : WW_ECORRUPT;
}

/* Pages of the list have the number of the next one, and those of other free pages. */
int ww_image_find_free(struct pages_image *image)
{
	unsigned char page[PAGES_SIZE];
	uint32_t next;

	if (ww_image_page(image, 1, page))
		return WW_ECORRUPT;
	next = store_read32(page + 32);
	while (next) {
		if (ww_image_page(image, next, page) || image->is_free[next - 1])
			return WW_ECORRUPT;
		image->is_free[next - 1] = 1;
		uint32_t count = store_read32(page + 4);
		for (uint32_t i = 0; i < count && 8 + 4 * i < PAGES_SIZE - PAGES_SUM; i++) {
			uint32_t number = store_read32(page + 8 + 4 * i);
			if (number && number <= image->pages)
				image->is_free[number - 1] = 1;
		}
		next = store_read32(page);
	}
	return WW_OK;
}
