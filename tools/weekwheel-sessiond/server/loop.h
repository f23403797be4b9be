#ifndef TOOLS_WEEKWHEEL_SESSIOND_SERVER_LOOP_H
#define TOOLS_WEEKWHEEL_SESSIOND_SERVER_LOOP_H

/* A loop: its clients, and their work that waits for a turn. */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <uv.h>

#include "tools/service/net/shake.h"
#include "tools/weekwheel-sessiond/server/mail.h"
#include "tools/weekwheel-sessiond/server/walk.h"

struct sandbox;
struct sessiond;

enum { INPUT_SIZE = 65536 };

struct loop {
	struct sessiond *server;
	unsigned number;
	pthread_t thread;
	uv_loop_t uv;
	uv_prepare_t prepare;
	uv_async_t wake;
	LIST_HEAD(, conn) conns; /* changed under `lock` */
	SLIST_HEAD(, conn) flush;
	struct walks walks;
	struct shakes shakes;
	struct sandbox *sandbox; /* of scripts; NULL: there was none yet */
	uv_timer_t sweep;        /* closes clients that send no token */
	_Alignas(64) pthread_mutex_t lock;
	struct mailbox mail;
	int is_over;              /* no turn follows */
	size_t turn_bytes;        /* read in this turn */
	int is_long;              /* this turn has taken long: long commands wait for another */
	uint64_t notified_bounds; /* ms: when it last notified other loops that memory is short */
	_Alignas(64) _Atomic uint64_t commands;
	_Atomic uint64_t bytes_in;
	_Atomic uint64_t bytes_out;
	char input[INPUT_SIZE];
};

#endif
