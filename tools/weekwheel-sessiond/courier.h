#ifndef TOOLS_WEEKWHEEL_SESSIOND_COURIER_H
#define TOOLS_WEEKWHEEL_SESSIOND_COURIER_H

/*
 * Tells another server what is in the outbox: each item becomes a job (letter.h). A thread with a connection of its own,
 * which it makes anew after a while that grows, with chance in it.
 */

#include "tools/weekwheel-sessiond/beanstalk.h"
#include "tools/weekwheel-sessiond/outbox.h"

struct courier;

/* What must outlive it. */
struct courier_config {
	struct beanstalk_address address;
	struct tls_files tls;
	const char *token; /* "": none */
};

/* Returns NULL after a message. */
struct courier *courier_start(struct outbox *outbox, const struct courier_config *config);

/* Send what there is, for at most COURIER_STOP_MS, and end. It says what is left. NULL is harmless. */
enum { COURIER_STOP_MS = 5000 };
void courier_stop(struct courier *courier);

#endif
