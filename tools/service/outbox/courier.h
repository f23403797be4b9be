#ifndef TOOLS_SERVICE_OUTBOX_COURIER_H
#define TOOLS_SERVICE_OUTBOX_COURIER_H

/*
 * Reports the items of the outbox to another server: each becomes a job (letter.h). A thread does this on a connection
 * of its own. If the connection is lost, the thread makes it anew, after pauses that grow and are partly random.
 */

#include "tools/service/outbox/beanstalk.h"
#include "tools/service/outbox/letter.h"
#include "tools/service/outbox/outbox.h"

struct courier;

/* All that must outlive the courier. */
struct courier_config {
	struct beanstalk_address address;
	struct tls_files tls;
	const char *token; /* "": none */
};

/* Returns NULL after a message. */
struct courier *courier_start(
    struct outbox *outbox, const struct letter_form *form, const struct courier_config *config);

/* Send the waiting items, for at most COURIER_STOP_MS, and end. Log how many are left. NULL is harmless. */
enum { COURIER_STOP_MS = 5000 };
void courier_stop(struct courier *courier);

#endif
