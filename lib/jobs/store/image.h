#ifndef LIB_JOBS_STORE_IMAGE_H
#define LIB_JOBS_STORE_IMAGE_H

/*
 * The pages of an index as they are on disk, read without SQLite: the committed pages of the log, and below them those
 * of the database. A page with one flipped bit is corrected by its sum.
 */

#include "lib/jobs/store/pages.h"
#include "weekwheel/jobs.h"

struct image_flip;

struct pages_image {
	const char *folder; /* the caller's */
	int database;
	int log;
	uint64_t log_size; /* its bytes up to the last commit: they stay as they are until it begins anew */
	uint32_t pages;    /* that the index has */
	uint64_t *in_log;  /* where the bytes of page i + 1 lie in the log, or 0 */
	unsigned char *reported;
	unsigned char *is_free;
	struct image_flip *flips; /* made when a page is damaged */
	int retries;              /* a process may be writing */
	uint64_t problems;
	ww_jobs_problem_fn *problem;
	void *context;
};

/* Reports what is damaged in the log. Errors: WW_EIO, WW_EDENIED, WW_ENOMEM. */
int ww_image_open(struct pages_image *image, const char *folder, ww_jobs_problem_fn *problem, void *context);
void ww_image_close(struct pages_image *image);
/*
 * Read a page. One that is damaged is reported once. WW_ECORRUPT: it is lost. Also corrected ones count as problems.
 */
int ww_image_page(struct pages_image *image, uint32_t number, unsigned char page[PAGES_SIZE]);
/* Find out which pages are free: they may have rows that were deleted. WW_ECORRUPT: some of them are not known. */
int ww_image_find_free(struct pages_image *image);
/* Report a problem. */
__attribute__((format(printf, 2, 3))) void ww_image_report(struct pages_image *image, const char *format, ...);

#endif
