/* Hashing with xxHash, and the secret for it. */

#include "lib/base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#if defined __linux__
#include <sys/random.h>
#endif

#include "lib/base/xxh3.h"
#include "weekwheel/error.h"

static int fill_from_file(unsigned char *bytes, size_t size)
{
	int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	ssize_t got = 1;

	if (file < 0)
		return WW_ESYSTEM;
	while (size > 0 && (got > 0 || (got < 0 && errno == EINTR))) {
		got = read(file, bytes, size);
		if (got > 0) {
			bytes += got;
			size -= (size_t)got;
		}
	}
	(void)close(file);
	return size == 0 ? WW_OK : WW_ESYSTEM;
}

static int fill(unsigned char *bytes, size_t size)
{
#if defined __linux__
	ssize_t got;

	/* Up to 256 bytes come whole, and no signal interrupts that once there are random numbers at all. */
	do
		got = getrandom(bytes, size, 0);
	while (got < 0 && errno == EINTR);
	if (got == (ssize_t)size)
		return WW_OK;
#endif
	return fill_from_file(bytes, size);
}

int ww_hash_secret_make(struct hash_secret *secret)
{
	int cancel;
	int error;

	/* These calls are cancellation points, and creating a map is not. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	error = fill(secret->bytes, sizeof secret->bytes);
	(void)pthread_setcancelstate(cancel, &cancel);
	return error;
}

uint64_t ww_hash_bytes(const struct hash_secret *secret, const void *key, size_t length)
{
	return XXH3_64bits_withSecret(key, length, secret->bytes, sizeof secret->bytes);
}
