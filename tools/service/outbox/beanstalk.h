#ifndef TOOLS_SERVICE_OUTBOX_BEANSTALK_H
#define TOOLS_SERVICE_OUTBOX_BEANSTALK_H

/*
 * A connection that puts jobs into a tube of a server that speaks beanstalkd's protocol. Opening it waits; later calls
 * do not. Reasons are sentences for a person, and name neither the server nor the program.
 */

#include "tools/common/tls/channel.h"
#include "weekwheel/jobs.h"

enum { BEANSTALK_SERVER = 300, BEANSTALK_LINE = 256, BEANSTALK_REASON = 300 };

/* The server and tube, read from beanstalk://HOST[:PORT]/TUBE, or with TLS from beanstalks://... */
struct beanstalk_address {
	char server[BEANSTALK_SERVER]; /* as dial.h has it */
	char tube[WW_TUBE_MAX + 1];
};

/* Returns NULL, or what was expected. */
const char *beanstalk_read(const char *text, struct beanstalk_address *address);

struct beanstalk {
	struct tls_channel channel;
	int is_own; /* a weekwheeld, which knows put-key */
};

/*
 * Connect, send the token ("" if there is none) and use the tube. Returns 0, or -1 with a reason: nothing is open then. Each
 * step takes up to timeout_ms.
 */
int beanstalk_open(struct beanstalk *link, const struct beanstalk_address *address, const struct tls_files *files,
    const char *token, int timeout_ms, char reason[BEANSTALK_REASON]);
void beanstalk_close(struct beanstalk *link);

/* Queue a put. id: the key that prevents a second put, where the server knows keys. 0, or -1 without memory. */
int beanstalk_put(struct beanstalk *link, const char *id, const struct buffer *body);

/* Take the line of an answer: 1, 0 if none is there, or -1 if it is not beanstalkd's protocol. */
int beanstalk_line(struct beanstalk *link, char line[BEANSTALK_LINE]);

#endif
