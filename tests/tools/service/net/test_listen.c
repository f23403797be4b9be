/* Where a server listens, who comes in, what it says if it cannot, and that it rests while there are no descriptors. */
/* tier: check, no-valgrind (it has descriptors of its own when there are no more) */
#include "tools/service/net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/common/message.h"
#include "tools/service/state/state.h"

enum { CAME_MOST = 300 };

static uv_loop_t loop;
static struct listening listening;
static struct listen_config config;
static char folder[] = "/tmp/weekwheel-listen-XXXXXX";
static char path[64];
static char log_text[65536];
static FILE *log_saved;

static int came[CAME_MOST]; /* descriptors */
static int came_count;
static int came_tls;
static sa_family_t came_family;

static void on_client(void *context, int fd, const struct sockaddr *peer, int is_tls)
{
	ck_assert_ptr_eq(context, &loop);
	ck_assert_int_lt(came_count, CAME_MOST);
	came[came_count++] = fd;
	came_tls = is_tls;
	came_family = peer->sa_family;
	ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void begin(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	(void)snprintf(path, sizeof path, "%s/socket", folder);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	config = (struct listen_config){.otherwise = "127.0.0.1:0",
	    .socket_mode = 0600,
	    .passing = "tokens and letters",
	    .came = on_client,
	    .context = &loop};
	message_form = MESSAGE_TEXT;
	log_saved = stderr;
	stderr = fmemopen(log_text, sizeof log_text, "w");
	ck_assert_ptr_nonnull(stderr);
	setvbuf(stderr, NULL, _IONBF, 0);
}

static void close_any(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void stop(void)
{
	listen_stop(&listening);
	uv_walk(&loop, close_any, NULL);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
}

static void finish(void)
{
	struct stat about;

	stop();
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	state_finish();
	fclose(stderr);
	stderr = log_saved;
	while (came_count > 0)
		close(came[--came_count]);
	/* The socket's file went with it. */
	ck_assert_int_eq(lstat(path, &about), -1);
	ck_assert_int_eq(rmdir(folder), 0);
}

static int start(void)
{
	stop();
	return listen_start(&listening, &loop, &config);
}

static void says(const char *words)
{
	ck_assert_msg(strstr(log_text, words) != NULL, "it does not say \"%s\" but: %s", words, log_text);
}

static void wait_for_clients(int count)
{
	while (came_count < count)
		(void)uv_run(&loop, UV_RUN_ONCE);
	ck_assert_int_eq(came_count, count);
}

static int connect_tcp(unsigned port)
{
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static int unix_socket(int (*make)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	ck_assert_int_eq(make(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

START_TEST(without_another_place_it_listens_at_the_usual_one)
{
	char where[64];
	int fd, value = 0;
	socklen_t size = sizeof value;

	begin();
	ck_assert_int_eq(start(), 0);
	(void)snprintf(where, sizeof where, "listening on 127.0.0.1:%u\n", listening.port);
	says(where);
	fd = connect_tcp(listening.port);
	wait_for_clients(1);
	ck_assert_int_eq(came_family, AF_INET);
	ck_assert(!came_tls);
	ck_assert_int_eq(getsockopt(came[0], IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
	ck_assert_int_eq(value, 1);
	ck_assert_int_eq(getsockopt(came[0], IPPROTO_TCP, TCP_KEEPIDLE, &value, &size), 0);
	ck_assert_int_eq(value, 60);
	close(fd);
	finish();
}
END_TEST

START_TEST(an_address_may_have_tls)
{
	const char *const where[] = {"tls:127.0.0.1:0"};
	int fd;

	begin();
	config.where = where;
	config.count = 1;
	ck_assert_int_eq(start(), 0);
	says("listening on tls:127.0.0.1:");
	fd = connect_tcp(listening.port);
	wait_for_clients(1);
	ck_assert(came_tls);
	close(fd);
	finish();
}
END_TEST

START_TEST(http_has_words_of_its_own)
{
	const char *const where[] = {"tls:127.0.0.1:0"};
	char pid[16];

	begin();
	(void)snprintf(pid, sizeof pid, "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	config.is_http = 1;
	config.where = where;
	config.count = 1;
	/* What systemd hands over is for others. */
	ck_assert_int_eq(start(), 0);
	says("serving https://127.0.0.1:");
	ck_assert_ptr_null(strstr(log_text, "listening"));
	finish();
}
END_TEST

START_TEST(it_says_why_it_cannot_listen)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[64];
	const char *where[1] = {text};

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	begin();
	config.where = where;
	config.count = 1;
	(void)snprintf(text, sizeof text, "127.0.0.1:%d", ntohs(address.sin_port));
	ck_assert_int_eq(start(), -1);
	says("is in use: end the server there, or give another --listen");
	where[0] = "192.0.2.1:0";
	config.risk = "they may";
	ck_assert_int_eq(start(), -1);
	says("192.0.2.1:0 is not an address of this machine");
	config.risk = NULL;
	where[0] = "0.0.0.0:0";
	ck_assert_int_eq(start(), -1);
	says("everybody could use it, unencrypted");
	config.has_tokens = 1;
	ck_assert_int_eq(start(), -1);
	says("tokens and letters would pass unencrypted");
	close(fd);
	finish();
}
END_TEST

START_TEST(a_unix_socket_has_its_mode_and_its_group)
{
	struct group *group = getgrgid(getgid());
	struct stat about;
	int fd;

	begin();
	config.unix_path = path;
	config.socket_mode = 0620;
	config.socket_group = group ? group->gr_name : NULL;
	ck_assert_int_eq(start(), 0);
	ck_assert_int_eq(lstat(path, &about), 0);
	ck_assert_uint_eq(about.st_mode & 07777, 0620);
	ck_assert_uint_eq(about.st_gid, getgid());
	/* There is another place, so none is added. */
	ck_assert_uint_eq(listening.port, 0);
	fd = unix_socket(connect);
	wait_for_clients(1);
	ck_assert_int_eq(came_family, AF_UNIX);
	close(fd);
	finish();
}
END_TEST

START_TEST(only_a_socket_without_a_server_is_replaced)
{
	int waiting;
	int fd;

	begin();
	config.unix_path = path;
	fd = unix_socket(bind);
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert_int_eq(start(), -1);
	says("is in use: end the server there, or give another --unix");
	stop();
	ck_assert_int_eq(access(path, F_OK), 0);
	close(fd);
	ck_assert_int_eq(start(), 0);
	stop();
	/* The server there lets nobody in, and as many wait as may: it is known all the same, and at once. */
	fd = unix_socket(bind);
	ck_assert_int_eq(listen(fd, 0), 0);
	waiting = unix_socket(connect);
	rewind(stderr);
	ck_assert_int_eq(start(), -1);
	says("is in use: end the server there, or give another --unix");
	stop();
	close(waiting);
	close(fd);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(start(), 0);
	/* Another server's, in the place of what somebody has removed, stays. */
	ck_assert_int_eq(unlink(path), 0);
	fd = unix_socket(bind);
	stop();
	ck_assert_int_eq(unlink(path), 0);
	close(fd);

	fd = open(path, O_CREAT | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(start(), -1);
	says("exists and is not a socket");
	ck_assert_int_eq(unlink(path), 0);
	config.unix_path = "/tmp/no/such/folder/socket";
	ck_assert_int_eq(start(), -1);
	says("its folder must exist and be writable");
	config.unix_path = path;
	config.socket_group = "nix";
	ck_assert_int_eq(start(), -1);
	says("there is no such group");
	finish();
}
END_TEST

/* One of those that start when nobody can write into `go` any more: it says whether it listens, and goes on until `end`. */
static void start_beside(int ready, int go, int said, int end)
{
	char byte;

	if (uv_loop_init(&loop) != 0)
		_exit(1);
	close(ready);
	if (read(go, &byte, 1) != 0)
		_exit(1);
	byte = listen_start(&listening, &loop, &config) == 0 ? 'y' : 'n';
	_exit(write(said, &byte, 1) != 1 || read(end, &byte, 1) != 0);
}

/* Returns how many listened. */
static int start_at_once(int count)
{
	int ready[2], go[2], said[2], end[2], status;
	int good = 0;
	char byte;

	ck_assert_int_eq(pipe(ready) | pipe(go) | pipe(said) | pipe(end), 0);
	for (int i = 0; i < count; i++) {
		pid_t child = fork();
		ck_assert_int_ge(child, 0);
		if (child == 0) {
			close(go[1]), close(end[1]), close(said[0]);
			start_beside(ready[1], go[0], said[1], end[0]);
		}
	}
	close(ready[1]), close(said[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 0);
	close(go[1]);
	for (int i = 0; i < count; i++) {
		ck_assert_int_eq(read(said[0], &byte, 1), 1);
		good += byte == 'y';
	}
	/* Whoever listens can be reached. */
	close(unix_socket(connect));
	close(end[1]);
	for (int i = 0; i < count; i++)
		ck_assert(waitpid(-1, &status, 0) > 0 && status == 0);
	close(ready[0]), close(go[0]), close(said[0]), close(end[0]);
	return good;
}

START_TEST(of_those_that_start_at_once_one_has_the_socket)
{
	begin();
	config.unix_path = path;
	for (int round = 0; round < 100; round++) {
		close(unix_socket(bind));
		ck_assert_int_eq(start_at_once(4), 1);
		ck_assert_int_eq(unlink(path), 0);
	}
	finish();
}
END_TEST

START_TEST(a_start_waits_for_no_other)
{
	char name[80];
	int fd;

	begin();
	config.unix_path = path;
	(void)snprintf(name, sizeof name, "%s.starting", path);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(start(), -1);
	says("is in use: another server starts there; give another --unix");
	/* One that was killed in that moment has left its file. */
	close(fd);
	ck_assert_int_eq(start(), 0);
	ck_assert_int_eq(access(name, F_OK), -1);
	stop();
	ck_assert_int_eq(mkdir(name, 0700), 0);
	ck_assert_int_eq(start(), -1);
	says("cannot make ");
	ck_assert_int_eq(rmdir(name), 0);
	finish();
}
END_TEST

START_TEST(sockets_of_systemd_are_used)
{
	char pid[16];
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int former; /* what has the number of systemd's first one in this process */

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	former = fcntl(3, F_DUPFD_CLOEXEC, 100);
	ck_assert_int_eq(dup2(fd, 3), 3);
	begin();
	(void)snprintf(pid, sizeof pid, "%d", (int)getpid() + 1);
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	ck_assert_int_eq(start(), 0);
	/* They are for another process. */
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	ck_assert_uint_ne(listening.port, ntohs(address.sin_port));
	(void)snprintf(pid, sizeof pid, "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	ck_assert_int_eq(start(), 0);
	ck_assert_uint_eq(listening.port, ntohs(address.sin_port));
	close(connect_tcp(listening.port));
	wait_for_clients(1);
	ck_assert(fcntl(3, F_GETFD) & FD_CLOEXEC);
	finish();
	if (fd != 3)
		close(fd);
	if (former >= 0)
		ck_assert_int_eq(dup2(former, 3), 3);
}
END_TEST

/* Clients wait in the listener, and the loop does not come round for them all the time. */
START_TEST(it_rests_while_there_are_no_descriptors)
{
	struct rlimit limit, none;
	int clients[2];
	int turns = 0;

	begin();
	ck_assert_int_eq(start(), 0);
	clients[0] = connect_tcp(listening.port);
	clients[1] = connect_tcp(listening.port);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = (rlim_t)clients[1] + 1;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (uint64_t until = uv_hrtime() + 250000000; uv_hrtime() < until; turns++)
		(void)uv_run(&loop, UV_RUN_ONCE);
	ck_assert_int_eq(came_count, 0);
	ck_assert_int_le(turns, 20);
	says("no client is let in for now");
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	wait_for_clients(2);
	close(clients[0]);
	close(clients[1]);
	finish();
}
END_TEST

START_TEST(many_who_come_at_once_are_taken_in_several_turns)
{
	int clients[CAME_MOST];

	begin();
	config.most = 4000;
	ck_assert_int_eq(start(), 0);
	for (int i = 0; i < CAME_MOST; i++)
		clients[i] = connect_tcp(listening.port);
	(void)uv_run(&loop, UV_RUN_ONCE);
	ck_assert_int_gt(came_count, 0);
	ck_assert_int_lt(came_count, CAME_MOST);
	wait_for_clients(CAME_MOST);
	for (int i = 0; i < CAME_MOST; i++)
		close(clients[i]);
	finish();
}
END_TEST

START_TEST(a_server_begins_only_with_some_files_free)
{
	struct rlimit limit, few;
	int next;

	begin();
	next = dup(STDERR_FILENO);
	close(next);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int free = 15; free <= 16; free++) {
		few = limit;
		few.rlim_cur = (rlim_t)(next + free);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
		int answer = listen_check_files();
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		if (free < 16)
			says("raise the limit of open files");
		ck_assert_int_eq(answer, free < 16 ? -1 : 0);
	}
	finish();
}
END_TEST

TEST_MAIN("service/listen", without_another_place_it_listens_at_the_usual_one, an_address_may_have_tls,
    http_has_words_of_its_own, it_says_why_it_cannot_listen, a_unix_socket_has_its_mode_and_its_group,
    only_a_socket_without_a_server_is_replaced, of_those_that_start_at_once_one_has_the_socket,
    a_start_waits_for_no_other, sockets_of_systemd_are_used, it_rests_while_there_are_no_descriptors,
    many_who_come_at_once_are_taken_in_several_turns, a_server_begins_only_with_some_files_free)
