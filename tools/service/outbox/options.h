#ifndef TOOLS_SERVICE_OUTBOX_OPTIONS_H
#define TOOLS_SERVICE_OUTBOX_OPTIONS_H

/* The options of a program that has an outbox: where it reports expiries, and how. */

#include "tools/service/outbox/courier.h"
#include "tools/service/settings/settings.h"

struct outbox_options {
	int is_reporting; /* --expired-to */
	uint64_t max;     /* bytes */
	struct courier_config courier;
};

/* The rows of a table of settings, whose struct has outbox_options as `member`. `what` is what jobs are made of. */
#define OUTBOX_OPTIONS(type, member, what)                                                                             \
	{0, "expired-to", "URL",                                                                                       \
	    what ", at weekwheeld or\nbeanstalkd: beanstalk://HOST:PORT/TUBE, beanstalks:// with TLS",                 \
	    .read = outbox_options_read, SETTING_AT(type, member)},                                                    \
	    {0, "expired-max", "BYTES", "the most that such keys take while they wait for that server (%s)", "256M",   \
	        SETTING_BYTES, SETTING_AT(type, member.max), 1 << 20, UINT64_C(1) << 40, .needs = "expired-to"},       \
	    {0, "expired-ca", "FILE", "certificates to trust there instead of the system's", NULL, SETTING_TEXT,       \
	        SETTING_AT(type, member.courier.tls.trusted), .needs = "expired-to"},                                  \
	{                                                                                                              \
		0, "expired-token-file", "FILE", "send the token in this file there", NULL, SETTING_SECRET,            \
		    SETTING_AT(type, member.courier.token), .needs = "expired-to"                                      \
	}

int outbox_options_read(void *to, const struct given *given);

/* Set the defaults, and check the options, once all are read. Returns 0, or -1 after a message. */
int outbox_options_complete(struct outbox_options *options);

#endif
