/* Starts and ends a real PostgreSQL for the tests. */
#include "tests/support/postgres/postgres_server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "weekwheel/jobs_postgres.h"

#define PROGRAMS "/usr/lib/postgresql/15/bin/"
enum { PATIENCE = 60 * 100 }; /* times 10 ms */

static struct postgres_server *running;
static pid_t owner;

int postgres_server_is_there(void)
{
	int is_there = access(PROGRAMS "postgres", X_OK) == 0;

	if (!is_there)
		printf("skipped: there is no PostgreSQL 15: Debian has it in the package postgresql-15\n");
	return is_there;
}

static void rest(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static void end(void)
{
	/* A child that a test forked has no server of its own. */
	if (running && getpid() == owner)
		postgres_server_stop(running);
}

/* PostgreSQL refuses to run as root. */
static void become_user(void)
{
	const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;

	if (geteuid() != 0)
		return;
	if (!user || setgroups(0, NULL) || setgid(user->pw_gid) || setuid(user->pw_uid))
		_exit(126);
}

/* Run a program to its end, or leave it running. */
static pid_t start(const char *const *argv, const char *log)
{
	pid_t parent = getpid();
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	int file = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	(void)dup2(file, 1);
	(void)dup2(file, 2);
	become_user();
	(void)prctl(PR_SET_PDEATHSIG, SIGQUIT);
	if (getppid() != parent)
		_exit(1);
	(void)setsid();
	(void)execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* Remove the folder when this process is gone, though a signal ended it: then the pipe is closed, which nobody writes to. */
static void remove_after_death(const char *folder)
{
	static const char script[] = "read -r nothing; until rm -rf \"$0\"; do sleep 0.1; done";
	int ends[2];
	pid_t pid;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)setsid();
		(void)dup2(ends[0], 0);
		(void)execl("/bin/sh", "sh", "-c", script, folder, (char *)NULL);
		_exit(127);
	}
	(void)close(ends[0]);
}

static void run_to_end(const char *const *argv, const char *log)
{
	pid_t pid = start(argv, log);
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s failed: see %s", argv[0], log);
}

static PGconn *connect_to(const struct postgres_server *server, const char *database)
{
	char text[160];

	(void)snprintf(text, sizeof text, "host=%s user=postgres dbname=%s", server->folder, database);
	return PQconnectdb(text);
}

/* Returns 0 if it ended before it answered. */
static int run(struct postgres_server *server)
{
	char data[96], log[96], sockets[128];
	const char *const argv[] = {PROGRAMS "postgres", "-D", data, "-c", "listen_addresses=", "-c", sockets, "-c",
	    "fsync=off", "-c", "max_connections=40", "-c", "shared_buffers=32MB", NULL};
	PGconn *connection;
	int i = 0;

	(void)snprintf(data, sizeof data, "%s/data", server->folder);
	(void)snprintf(log, sizeof log, "%s/log", server->folder);
	(void)snprintf(sockets, sizeof sockets, "unix_socket_directories=%s", server->folder);
	server->pid = start(argv, log);
	while (connection = connect_to(server, "postgres"), PQstatus(connection) != CONNECTION_OK) {
		PQfinish(connection);
		if (waitpid(server->pid, NULL, WNOHANG) != 0) {
			server->pid = 0;
			return 0;
		}
		ck_assert_int_lt(i++, PATIENCE);
		rest();
	}
	PQfinish(connection);
	return 1;
}

static void execute(const struct postgres_server *server, const char *database, const char *sql)
{
	PGconn *connection = connect_to(server, database);
	PGresult *result = PQexec(connection, sql);

	ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK, "%s",
	    PQerrorMessage(connection));
	PQclear(result);
	PQfinish(connection);
}

void postgres_server_start(struct postgres_server *server)
{
	char data[96], log[96];
	const char *const argv[] = {
	    PROGRAMS "initdb", "-N", "-A", "trust", "-U", "postgres", "--locale=C.UTF-8", "-D", data, NULL};

	memset(server, 0, sizeof *server);
	(void)snprintf(server->folder, sizeof server->folder, "/tmp/weekwheel-postgres-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(server->folder));
	remove_after_death(server->folder);
	if (geteuid() == 0) {
		const struct passwd *user = getpwnam("postgres");
		ck_assert_ptr_nonnull(user);
		ck_assert_int_eq(chown(server->folder, user->pw_uid, user->pw_gid), 0);
	}
	(void)snprintf(data, sizeof data, "%s/data", server->folder);
	(void)snprintf(log, sizeof log, "%s/log", server->folder);
	(void)snprintf(server->url, sizeof server->url, "postgresql://postgres@/weekwheel?host=%s", server->folder);
	run_to_end(argv, log);
	if (owner != getpid()) {
		owner = getpid();
		ck_assert_int_eq(atexit(end), 0);
	}
	running = server;
	ck_assert_msg(run(server), "postgres ended: see %s", log);
	execute(server, "postgres", "CREATE DATABASE weekwheel");
	ck_assert_int_eq(ww_jobs_postgres_setup(server->url, NULL, NULL), 0);
}

static void kill_all(struct postgres_server *server, int signal)
{
	(void)kill(-server->pid, signal);
	(void)kill(server->pid, signal);
	(void)waitpid(server->pid, NULL, 0);
	server->pid = 0;
}

void postgres_server_crash(struct postgres_server *server)
{
	kill_all(server, SIGKILL);
	/* Its backends end when they notice that, and until then there is no other server. */
	while (!run(server))
		rest();
}

void postgres_server_stop(struct postgres_server *server)
{
	char command[128];

	if (server->pid)
		kill_all(server, SIGQUIT);
	(void)snprintf(command, sizeof command, "rm -rf '%s'", server->folder);
	(void)!system(command);
	running = NULL;
}

long long postgres_server_ask(const struct postgres_server *server, const char *sql)
{
	PGconn *connection = connect_to(server, "weekwheel");
	PGresult *result = PQexec(connection, sql);
	long long number = 0;

	ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK, "%s: %s",
	    sql, PQerrorMessage(connection));
	if (PQntuples(result))
		number = atoll(PQgetvalue(result, 0, 0));
	PQclear(result);
	PQfinish(connection);
	return number;
}

void postgres_server_empty(const struct postgres_server *server)
{
	postgres_server_ask(server,
	    "DO $$ DECLARE name text; BEGIN "
	    "TRUNCATE weekwheel.inbox, weekwheel.turn; "
	    "FOR name IN SELECT c.oid::regclass FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace "
	    "WHERE nspname = 'weekwheel' AND relkind = 'r' AND relname ~ '^(job|gone)_' AND pg_relation_size(c.oid) > 0 LOOP "
	    "EXECUTE 'TRUNCATE ' || name; END LOOP; "
	    "PERFORM setval('weekwheel.ids', 1, false), setval('weekwheel.current', 0); END $$");
}
