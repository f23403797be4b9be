/* The book of keys and the history of the simulation. */
#include "tests/simulate/sessions/book.h"

#include <inttypes.h>
#include <stdarg.h>

#include "tests/simulate/system.h"
#include "tests/simulate/world.h"

struct book book;

static FILE *out;
static uint64_t window;
static uint64_t calls;
static uint64_t failed; /* when a sync failed in this life of the server; 0: none did */
static uint64_t killed; /* when the last server was, which then synced nothing more; 0: another one has opened since */

__attribute__((format(printf, 2, 3))) static void note(const char *event, const char *format, ...)
{
	va_list arguments;

	if (world.is_ghost)
		return;
	(void)fprintf(out, "{\"event\":\"%s\",\"t\":%" PRIu64, event, world.now);
	va_start(arguments, format);
	(void)vfprintf(out, format, arguments);
	va_end(arguments);
	(void)fputs("}\n", out);
}

void book_begin(const struct book_settings *settings, FILE *file)
{
	book = (struct book){0};
	calls = failed = killed = 0;
	window = settings->window;
	out = file;
	note("begin", ",\"lost\":%" PRIu64 ",\"lifetime\":%" PRIu64 ",\"keeps\":%s,\"tells\":%s", window,
	    settings->lifetime, settings->keeps_lifetimes ? "true" : "false", settings->tells ? "true" : "false");
}

/* ---- Commands */

uint64_t book_sends(const char *verb, unsigned key, const char *more)
{
	book.commands++;
	note("call", ",\"call\":%" PRIu64 ",\"verb\":\"%s\",\"key\":\"k%u\"%s", ++calls, verb, key, more);
	return calls;
}

void book_hears(uint64_t call, const char *answer)
{
	book.acknowledged++;
	note("answer", ",\"call\":%" PRIu64 ",\"is\":%s", call, answer);
}

void book_hears_refusal(uint64_t call)
{
	book.refused++;
	note("answer", ",\"call\":%" PRIu64 ",\"refused\":true", call);
}

void book_hears_nothing(uint64_t call)
{
	book.unanswered++;
	note("over", ",\"call\":%" PRIu64, call);
}

void book_hears_end(const char *key, const char *value)
{
	book.told++;
	note("told", ",\"key\":\"%s\",\"value\":\"%s\"", key, value);
}

/* ---- Failures */

/* As data.c finds it: whole ms of the wall clock are whole ms of the driver's. */
static uint64_t find_offset(void)
{
	uint64_t driver = world.now - system_clock.booted + SIM_S;
	uint64_t offset = system_wall() - driver;

	return offset - offset % SIM_MS + SIM_S - system_clock.booted;
}

void book_opened(void)
{
	killed = 0;
	book.offset = find_offset();
	note("start", ",\"offset\":%" PRIu64, book.offset);
}

void book_stepped(int64_t step)
{
	book.offset = find_offset();
	note("step", ",\"by\":%" PRId64 ",\"offset\":%" PRIu64, step, book.offset);
}

void book_sync_failed(void)
{
	if (failed)
		return;
	failed = world.now;
	note("failed", "%s", "");
}

void book_server_died(int is_power, int is_lost, int is_clean)
{
	/* What was known so long before that moment is certain. */
	uint64_t moment = failed ? failed : killed ? killed : world.now;

	if (is_power || failed)
		note("power", ",\"stable\":%" PRIu64, moment > window ? moment - window : 0);
	else
		note(is_clean ? "ended" : "killed", "%s", "");
	if (is_lost)
		book_forget_all();
	if (!killed)
		killed = failed ? failed : world.now;
	failed = 0;
}

void book_forget_all(void)
{
	note("forgotten", "%s", "");
}

void book_final(int is_all_told)
{
	note("end", ",\"all\":%s", is_all_told ? "true" : "false");
}
