/* Secrets and the hashes of keys: they differ where they must, and a secret comes from a good source. */
/* tier: quick */

#include "lib/base/hash.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "weekwheel/error.h"

/* ---- The functions that the library calls ----------------------------------------------------------------------- */

static int error_of_getrandom; /* 0: it works */
static int interruptions;

/* Replaces the C library's. */
ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
	/* The signature is the C library's. */
	pthread_testcancel();
	if (interruptions > 0) {
		interruptions--;
		errno = EINTR;
		return -1;
	}
	if (error_of_getrandom != 0) {
		errno = error_of_getrandom;
		return -1;
	}
	return syscall(SYS_getrandom, buffer, length, flags);
}

static struct hash_secret secret(void)
{
	struct hash_secret made;

	memset(&made, 0, sizeof made);
	OK(ww_hash_secret_make(&made));
	return made;
}

/* Random bytes have no eight zeros in a row. */
static void looks_random(const struct hash_secret *made)
{
	for (size_t i = 0; i + 8 <= sizeof made->bytes; i++)
		ck_assert_mem_ne(made->bytes + i, "\0\0\0\0\0\0\0", 8);
}

/* ---- Secrets ---------------------------------------------------------------------------------------------------- */

START_TEST(a_secret_is_filled_and_differs_each_time)
{
	struct hash_secret one = secret(), other = secret();

	looks_random(&one);
	looks_random(&other);
	ck_assert_mem_ne(one.bytes, other.bytes, sizeof one.bytes);
}
END_TEST

START_TEST(a_signal_does_not_disturb_the_making_of_a_secret)
{
	struct hash_secret made;

	interruptions = 3;
	made = secret();
	ck_assert_int_eq(interruptions, 0);
	looks_random(&made);
}
END_TEST

START_TEST(without_getrandom_the_device_file_is_read)
{
	struct hash_secret one, other;

	error_of_getrandom = ENOSYS;
	one = secret();
	other = secret();
	error_of_getrandom = 0;
	looks_random(&one);
	ck_assert_mem_ne(one.bytes, other.bytes, sizeof one.bytes);
}
END_TEST

static void *make_when_cancelled(void *argument)
{
	struct hash_secret *made = argument;

	pthread_cancel(pthread_self());
	if (ww_hash_secret_make(&made[0]) == WW_OK) {
		error_of_getrandom = ENOSYS;
		(void)ww_hash_secret_make(&made[1]);
	}
	pthread_testcancel();
	return NULL;
}

START_TEST(a_thread_is_not_cancelled_while_it_makes_a_secret)
{
	struct hash_secret made[2];
	pthread_t thread;
	void *result = NULL;

	memset(made, 0, sizeof made);
	ck_assert_int_eq(pthread_create(&thread, NULL, make_when_cancelled, made), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	error_of_getrandom = 0;
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	looks_random(&made[0]);
	looks_random(&made[1]);
}
END_TEST

START_TEST(without_either_source_it_fails)
{
	struct rlimit before, none;
	struct hash_secret made;
	int error;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	error_of_getrandom = ENOSYS;
	error = ww_hash_secret_make(&made);
	error_of_getrandom = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_int_eq(error, WW_ESYSTEM);
}
END_TEST

/* ---- Hashes ----------------------------------------------------------------------------------------------------- */

START_TEST(equal_bytes_have_equal_hashes_wherever_they_lie)
{
	struct hash_secret one = secret();
	unsigned char bytes[400], moved[401];
	uint64_t state = seed_of_run("equal_bytes_have_equal_hashes_wherever_they_lie");

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)seed_next(&state);
	memcpy(moved + 1, bytes, sizeof bytes);
	for (size_t length = 0; length <= sizeof bytes; length++)
		ck_assert_uint_eq(ww_hash_bytes(&one, bytes, length), ww_hash_bytes(&one, moved + 1, length));
	ck_assert_uint_eq(ww_hash_bytes(&one, NULL, 0), ww_hash_bytes(&one, bytes, 0));
}
END_TEST

START_TEST(the_hash_depends_on_every_byte_the_length_and_the_secret)
{
	struct hash_secret one = secret(), other = secret();
	unsigned char bytes[400] = {0};

	for (size_t length = 0; length <= sizeof bytes; length++) {
		uint64_t hash = ww_hash_bytes(&one, bytes, length);

		ck_assert_uint_ne(hash, ww_hash_bytes(&other, bytes, length));
		if (length > 0)
			ck_assert_uint_ne(hash, ww_hash_bytes(&one, bytes, length - 1));
		for (size_t i = 0; i < length; i++) {
			bytes[i] ^= 1;
			ck_assert_uint_ne(hash, ww_hash_bytes(&one, bytes, length));
			bytes[i] ^= 1;
		}
	}
}
END_TEST

/* A chi-squared test: keys that differ in a number fill the 65,536 values of the top bits as evenly as random ones. */
START_TEST(the_top_bits_are_spread_evenly)
{
	enum { PLACES = 65536, EACH = 16 };
	static uint32_t counts[PLACES];
	static const size_t lengths[] = {4, 8, 12, 16, 24, 48, 200, 300};
	struct hash_secret one = secret();

	for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
		unsigned char key[300] = {0};
		double sum = 0;

		memset(counts, 0, sizeof counts);
		for (uint32_t i = 0; i < PLACES * EACH; i++) {
			memcpy(key + lengths[l] - 4, &i, 4);
			counts[ww_hash_bytes(&one, key, lengths[l]) >> 48]++;
		}
		for (size_t p = 0; p < PLACES; p++)
			sum += ((double)counts[p] - EACH) * ((double)counts[p] - EACH) / EACH;
		/* 65,535 on average with a standard deviation of 362, and ten of those allowed either way. */
		ck_assert_double_le(sum, 65535 + 3620);
		ck_assert_double_ge(sum, 65535 - 3620);
	}
}
END_TEST

TEST_MAIN("base/hash", a_secret_is_filled_and_differs_each_time, a_signal_does_not_disturb_the_making_of_a_secret,
    without_getrandom_the_device_file_is_read, a_thread_is_not_cancelled_while_it_makes_a_secret,
    without_either_source_it_fails, equal_bytes_have_equal_hashes_wherever_they_lie,
    the_hash_depends_on_every_byte_the_length_and_the_secret, the_top_bits_are_spread_evenly)
