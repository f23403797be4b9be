/*
 * A site's sessions, which survive a restart. A line on standard input is a request of the visitor whom it names. A
 * session ends 30 minutes after its last request, and 12 hours after its first. Run it with the name of a file: on
 * SIGTERM, or when the input ends, it saves the sessions there, and when it starts it loads them. It loses no file that it
 * cannot read: a damaged one is kept as FILE.damaged, and anything else stops the start.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weekwheel/weekwheel.h>

struct session {
	unsigned requests; /* a site has more here */
};

static void gone(struct ww_session *map, const void *key, size_t length, void *value, enum ww_gone why, void *user)
{
	free(value);
	(void)map, (void)key, (void)length, (void)why, (void)user;
}

/* ---- Saving: the new file replaces the old one when it is whole and on the disk, whatever happens before */

static int encode(void *value, void *bytes, size_t *size, void *context)
{
	const struct session *session = value;
	char text[16]; /* any later version can read it */
	size_t length = (size_t)snprintf(text, sizeof text, "%u", session->requests) + 1;

	if (length <= *size)
		memcpy(bytes, text, length);
	*size = length;
	(void)context;
	return 0;
}

static int write_bytes(const void *bytes, size_t size, void *file)
{
	return fwrite(bytes, 1, size, file) == size ? 0 : WW_EIO;
}

static int save(struct ww_session *map, FILE *file)
{
	const struct ww_session_writer writer = {.write = write_bytes, .encode = encode, .context = file};
	int error = ww_session_save(map, &writer, NULL);

	if (!error && (fflush(file) || fsync(fileno(file))))
		error = WW_EIO;
	return error;
}

static int sync_folder(const char *path)
{
	char copy[4096];
	int fd, error;

	snprintf(copy, sizeof copy, "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY);
	error = fd < 0 || fsync(fd);
	if (fd >= 0)
		close(fd);
	return error;
}

/* Returns 0, or 1 after a message; then the old file is still there. */
static int save_to(struct ww_session *map, const char *path)
{
	char fresh[4096 + 8];
	FILE *file;
	int fd, error;

	snprintf(fresh, sizeof fresh, "%s.new", path);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0600); /* sessions are secrets */
	file = fd < 0 ? NULL : fdopen(fd, "w");
	error = file ? save(map, file) : WW_EIO;
	if (!error && (rename(fresh, path) || sync_folder(path)))
		error = WW_EIO;
	if (error) {
		fprintf(stderr, "%s: not saved: %s\n", path, error == WW_EIO ? strerror(errno) : ww_strerror(error));
		unlink(fresh);
	}
	if (file)
		fclose(file);
	return error != 0;
}

/* ---- Loading */

static int read_bytes(void *bytes, size_t size, void *file)
{
	size_t got = fread(bytes, 1, size, file);

	return ferror((FILE *)file) ? WW_EIO : (int)got;
}

static int decode(const void *bytes, size_t size, void **value, void *context)
{
	struct session *session = calloc(1, sizeof *session);

	if (!session)
		return WW_ENOMEM;
	if (size && !((const char *)bytes)[size - 1])
		session->requests = (unsigned)strtoul(bytes, NULL, 10);
	*value = session;
	(void)context;
	return 0;
}

/*
 * A part of the sessions was loaded. The next save would replace the file and the rest of them, so give it another name,
 * under which somebody may still mend it. A link never replaces a file. Returns 0, or 1 after a message.
 */
static int set_aside(const char *path)
{
	char damaged[4096 + 16];

	snprintf(damaged, sizeof damaged, "%s.damaged", path);
	if (link(path, damaged) || unlink(path)) {
		fprintf(stderr, "%s: damaged, and not renamed to %s: %s\n", path, damaged, strerror(errno));
		return 1;
	}
	fprintf(stderr, "%s: damaged, renamed to %s\n", path, damaged);
	return 0;
}

static int load(struct ww_session *map, const char *path, FILE *file)
{
	const struct ww_session_reader reader = {.read = read_bytes, .decode = decode, .context = file};
	struct ww_session_loaded loaded = {0};
	int error = ww_session_load(map, &reader, &loaded);

	if (error == WW_ECORRUPT && !loaded.bytes) {
		fprintf(stderr, "%s: not a file of saved sessions, which this would replace\n", path);
		return 1;
	}
	if (error)
		fprintf(stderr, "%s: %s\n", path, error == WW_EIO ? strerror(errno) : ww_strerror(error));
	if (error && error != WW_ECORRUPT)
		return 1;
	fprintf(stderr, "%s: %llu sessions go on after %llu s, %llu have ended\n", path,
	    (unsigned long long)loaded.entries, (unsigned long long)(loaded.downtime / WW_SECOND),
	    (unsigned long long)loaded.expired);
	return error ? set_aside(path) : 0; /* what comes before the damage has been loaded */
}

/* Returns 0, or 1 after a message if the site must not start: at its end it would replace a file that it cannot read. */
static int load_from(struct ww_session *map, const char *path)
{
	FILE *file = fopen(path, "r");
	int failed;

	if (!file && errno == ENOENT)
		return 0; /* the first start */
	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	failed = load(map, path, file);
	fclose(file);
	return failed;
}

/* ---- Serving */

static void count(void *value, void *context)
{
	struct session *session = value;

	*(unsigned *)context = ++session->requests;
}

static void serve(struct ww_session *map, const char *visitor)
{
	unsigned requests = 1;
	struct session *session;

	/* A lookup renews. In it the session cannot end, so that nobody frees it meanwhile. */
	if (ww_session_look(map, visitor, strlen(visitor), count, &requests) == 0) {
		session = calloc(1, sizeof *session);
		if (!session)
			return;
		session->requests = 1;
		if (ww_session_set(map, visitor, strlen(visitor), session, 0, NULL) != WW_OK)
			free(session);
	}
	printf("%s: request %u\n", visitor, requests);
	fflush(stdout);
}

/* Each line of the input; it may be cancelled only while it waits for one. */
static void *serve_all(void *map)
{
	char line[256];
	size_t length = 0;
	char byte;
	int state;

	for (;;) {
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
		ssize_t got = read(STDIN_FILENO, &byte, 1);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		if (got <= 0)
			break;
		if (byte != '\n' && length < sizeof line - 1) {
			line[length++] = byte;
		} else if (byte == '\n') {
			line[length] = 0;
			serve(map, line);
			length = 0;
		}
	}
	kill(getpid(), SIGTERM);
	return NULL;
}

int main(int argc, char **argv)
{
	struct ww_session_config config;
	struct ww_driver *driver;
	struct ww_session *map;
	pthread_t thread;
	sigset_t stop;
	int signal, failed;

	/* Before there are threads: then the signal waits for sigwait. */
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	pthread_sigmask(SIG_BLOCK, &stop, NULL);
	ww_session_config_default(&config);
	config.ttl = 30 * 60 * WW_SECOND;
	config.lifetime = 12 * 3600 * WW_SECOND;
	config.flags = WW_SESSION_RENEW;
	config.gone = gone;
	if (ww_driver_create(&driver, NULL) || ww_session_create(&map, driver, &config))
		return 1;
	failed = argc > 1 && load_from(map, argv[1]);
	if (!failed && pthread_create(&thread, NULL, serve_all, map) == 0) {
		sigwait(&stop, &signal);
		pthread_cancel(thread);
		pthread_join(thread, NULL); /* nobody changes a session any more: all changes are saved */
		failed = argc > 1 && save_to(map, argv[1]);
	}
	return ww_session_destroy(map) || ww_driver_destroy(driver) || failed;
}
