#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_SERVER_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_SERVER_H

/*
 * The server: a loop for each thread, and one store of sessions (data/data.h). A command takes this way:
 *
 *     loop.c ---> conn.c ---> input.c ------> commands/dispatch.c ---> strings.c, expiry.c, keys.c, ... ---> data/
 *     accepted,   its bytes   cut into        looked up,               carried out                           the maps
 *     handed on               commands        stripes locked
 *
 * A client belongs to one loop, so its commands are in order. A turn of a loop reads the commands that have come,
 * carries them out, waits for the journal if that was asked for, and sends each client its answers in one write.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "tools/service/access/crowd.h"
#include "tools/service/http/site.h"
#include "tools/service/net/certificate.h"
#include "tools/service/net/listen.h"
#include "tools/service/outbox/courier.h"
#include "tools/service/state/reporter.h"
#include "tools/weekwheel-sessiond/data/data.h"
#include "tools/weekwheel-sessiond/server/auth.h"
#include "tools/weekwheel-sessiond/server/conn.h"
#include "tools/weekwheel-sessiond/server/loop.h"
#include "tools/weekwheel-sessiond/settings/settings.h"

struct viewer;

/* The numbers of INFO that CONFIG RESETSTAT sets to 0. */
enum { SESSIOND_COUNTS = 9 };

struct sessiond {
	const struct sessiond_settings *settings;
	struct web_site site;
	struct viewer *view;
	struct data *data;
	struct keep *keep;     /* NULL: nothing outlasts the server */
	struct outbox *outbox; /* filled with --expired-to */
	struct courier *courier;
	struct loop *loop;
	unsigned loop_count;
	struct access access;
	struct certificate certificate;
	struct listening listening;
	uv_signal_t signals[3];
	uv_timer_t watchdog;
	struct reporter reporter;
	_Atomic uint64_t client_ids;
	_Atomic uint64_t clients;
	_Atomic uint64_t clients_total;
	_Atomic uint64_t refused;
	struct crowd crowd;
	_Atomic uint64_t forgotten[SESSIOND_COUNTS]; /* their values at the last CONFIG RESETSTAT */
	unsigned next_loop;
	int64_t started_ms; /* steady */
	char run_id[41];
	int failed;
};

/* What clients have sent and got, of all loops. */
struct traffic {
	uint64_t commands, in, out;
};

static inline struct traffic sessiond_traffic(const struct sessiond *server)
{
	struct traffic sum = {0, 0, 0};

	for (unsigned i = 0; i < server->loop_count; i++) {
		sum.commands += server->loop[i].commands;
		sum.in += server->loop[i].bytes_in;
		sum.out += server->loop[i].bytes_out;
	}
	return sum;
}

#endif
