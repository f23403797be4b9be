/*
 * Clients at all loops of a server at once: transactions are seen whole, and what they and those who list, kill and
 * publish do to each other is what ThreadSanitizer looks at.
 */
/* tier: check, threads */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tools/common/message.h"
#include "tools/weekwheel-sessiond/serve.h"

enum { ROUNDS = 1000, ANSWER = 65536 };

static char path[64];
static atomic_int faults;
static atomic_int is_over;

/* ---- A client */

struct wire {
	int fd;
	size_t size;
	char bytes[ANSWER];
};

static void wire_open(struct wire *wire)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(address.sun_path, path);
	wire->size = 0;
	wire->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	while (connect(wire->fd, (struct sockaddr *)&address, sizeof address) != 0)
		usleep(1000);
}

/* Lines end answers here: every command of these tests is answered by as many as it says. Returns 0 when it is over. */
static int wire_ask(struct wire *wire, const char *text, int lines)
{
	if (write(wire->fd, text, strlen(text)) != (ssize_t)strlen(text))
		return 0;
	wire->size = 0;
	for (;;) {
		int seen = 0;
		ssize_t got;
		for (size_t i = 0; i < wire->size; i++)
			seen += wire->bytes[i] == '\n';
		wire->bytes[wire->size] = 0;
		if (seen >= lines)
			return 1;
		got = read(wire->fd, wire->bytes + wire->size, sizeof wire->bytes - 1 - wire->size);
		if (got <= 0)
			return 0;
		wire->size += (size_t)got;
	}
}

/* ---- What clients do */

/* Two keys that EXEC sets to the same. */
static void *write_pairs(void *number)
{
	struct wire *wire = malloc(sizeof *wire);
	char text[256];

	wire_open(wire);
	for (int i = 0; i < ROUNDS; i++) {
		(void)snprintf(text, sizeof text,
		    "MULTI\r\nSET left %d:%d PX 100000\r\nINCR counter\r\nPUBLISH news %d\r\nSET right %d:%d\r\n"
		    "DEL once\r\nSET once x\r\nEXEC\r\n",
		    (int)(intptr_t)number, i, i, (int)(intptr_t)number, i);
		if (!wire_ask(wire, text, 7 + 7))
			faults++;
	}
	(void)close(wire->fd);
	free(wire);
	return NULL;
}

/* MGET, or GETs one after the other in a transaction, must not see one of the two alone. */
static void *read_pairs(void *number)
{
	struct wire *wire = malloc(sizeof *wire);

	(void)number;
	wire_open(wire);
	while (!is_over) {
		char left[64];
		char right[64];
		if (!wire_ask(wire, "MGET left right\r\n", 5))
			faults++;
		if (sscanf(wire->bytes, "*2\r\n$%*d\r\n%63s\r\n$%*d\r\n%63s", left, right) == 2 &&
		    strcmp(left, right) != 0)
			faults++;
	}
	(void)close(wire->fd);
	free(wire);
	return NULL;
}

/* A key that a transaction deletes and sets again is always there. Many are asked at once: the moment is short. */
static void *read_one(void *number)
{
	struct wire *wire = malloc(sizeof *wire);
	char text[100 * sizeof "STRLEN once\r\n"] = "";

	(void)number;
	for (int i = 0; i < 100; i++)
		strcat(text, "STRLEN once\r\n");
	wire_open(wire);
	while (!is_over)
		if (!wire_ask(wire, text, 100) || strstr(wire->bytes, ":0"))
			faults++;
	(void)close(wire->fd);
	free(wire);
	return NULL;
}

/* What only grows is never seen to shrink. */
static void *read_in_order(void *number)
{
	struct wire *wire = malloc(sizeof *wire);
	long before = 0;

	(void)number;
	wire_open(wire);
	while (!is_over) {
		long counted = 0;
		if (!wire_ask(wire, "INCRBY counter 0\r\n", 1) || sscanf(wire->bytes, ":%ld", &counted) != 1 ||
		    counted < before)
			faults++;
		before = counted;
	}
	(void)close(wire->fd);
	free(wire);
	return NULL;
}

/* Keys that expire meanwhile, lists, names, and clients that hear and are killed. */
static void *disturb(void *number)
{
	struct wire *wire = malloc(sizeof *wire);
	uint64_t random = (uint64_t)(intptr_t)number;
	char text[256];

	wire_open(wire);
	while (!is_over) {
		int key = (int)seed_below(&random, 50);
		switch (seed_below(&random, 8)) {
		case 0:
			(void)wire_ask(wire, "CLIENT LIST\r\n", 3);
			break;
		case 1:
			(void)wire_ask(wire, "PSUBSCRIBE n* __key*\r\n", 6);
			(void)close(wire->fd);
			wire_open(wire);
			break;
		case 2:
			(void)wire_ask(wire, "CLIENT KILL TYPE pubsub\r\n", 1);
			break;
		case 3:
			(void)wire_ask(wire, "CONFIG SET notify-keyspace-events KEA\r\nCLIENT SETNAME me\r\n", 2);
			break;
		case 4:
			(void)wire_ask(wire, "INFO\r\n", 20);
			break;
		case 5:
			(void)wire_ask(wire, "SCAN 0 COUNT 100\r\nDBSIZE\r\nRANDOMKEY\r\n", 6);
			break;
		case 6:
			(void)snprintf(
			    text, sizeof text, "RENAME k%d k%d\r\nDEL k%d k%d\r\n", key, key + 1, key + 2, key + 3);
			(void)wire_ask(wire, text, 2);
			break;
		default:
			(void)snprintf(text, sizeof text, "SET k%d v PX %d\r\nGETEX k%d PX 3\r\nAPPEND k%d x\r\n", key,
			    1 + key % 5, key + 1, key + 2);
			(void)wire_ask(wire, text, 3);
		}
	}
	(void)close(wire->fd);
	free(wire);
	return NULL;
}

static void *serve(void *settings)
{
	return (void *)(intptr_t)sessiond_run(settings);
}

START_TEST(transactions_are_seen_whole)
{
	static void *(*const readers[])(void *) = {
	    read_pairs, read_pairs, read_in_order, read_one, read_one, disturb, disturb, disturb};
	struct sessiond_settings settings;
	char unix_option[80];
	char *arguments[] = {unix_option, (char[]){"--threads=3"}, (char[]){"--maxmemory=64M"},
	    (char[]){"--maxmemory-policy=allkeys-lru"}, (char[]){"--lifetime=1h"}, NULL};
	pthread_t server;
	pthread_t writer[2];
	pthread_t reader[8];
	struct wire *wire = malloc(sizeof *wire);
	void *status;

	(void)signal(SIGPIPE, SIG_IGN);
	message_level = MESSAGE_ERROR;
	(void)snprintf(path, sizeof path, "/tmp/sessiond-%d", (int)getpid());
	(void)snprintf(unix_option, sizeof unix_option, "--unix=%s", path);
	ck_assert_int_eq(sessiond_settings_read(&settings, arguments), 0);
	ck_assert_int_eq(pthread_create(&server, NULL, serve, &settings), 0);
	wire_open(wire);
	ck_assert_int_eq(wire_ask(wire, "MSET left x right x once x\r\n", 1), 1);
	for (size_t i = 0; i < 8; i++)
		ck_assert_int_eq(pthread_create(&reader[i], NULL, readers[i], (void *)(intptr_t)(i + 1)), 0);
	for (size_t i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&writer[i], NULL, write_pairs, (void *)(intptr_t)i), 0);
	for (size_t i = 0; i < 2; i++)
		pthread_join(writer[i], NULL);
	is_over = 1;
	for (size_t i = 0; i < 8; i++)
		pthread_join(reader[i], NULL);
	ck_assert_int_eq(wire_ask(wire, "GET counter\r\n", 2), 1);
	ck_assert_str_eq(wire->bytes, "$4\r\n2000\r\n");
	(void)wire_ask(wire, "SHUTDOWN\r\n", 1);
	(void)close(wire->fd);
	pthread_join(server, &status);
	ck_assert_ptr_null(status);
	ck_assert_int_eq(faults, 0);
	free(wire);
}
END_TEST

START_TEST(a_reader_hears_of_who_takes_several)
{
	const struct data_config config = {.databases = 1};
	struct data_stripes stripes = {0};
	struct data_reading reading;
	struct data *data;

	ck_assert_int_eq(data_open(&data, &config), WW_OK);
	data_stripes_add(&stripes, "a", 1);
	data_stripes_add(&stripes, "b", 1);
	data_read_begin(data, "a", 1, &reading);
	ck_assert_int_eq(data_read_end(data, &reading), 0);
	data_read_begin(data, "a", 1, &reading);
	data_lock(data, &stripes);
	ck_assert_int_eq(data_read_end(data, &reading), 1);
	data_unlock(data, &stripes);
	ck_assert_int_eq(data_read_end(data, &reading), 1);
	data_close(data);
}
END_TEST

TEST_MAIN("sessiond/threads", transactions_are_seen_whole, a_reader_hears_of_who_takes_several)
