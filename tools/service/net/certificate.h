#ifndef TOOLS_SERVICE_NET_CERTIFICATE_H
#define TOOLS_SERVICE_NET_CERTIFICATE_H

/* The certificate that a server shows its clients. */

#include <pthread.h>

#include "tools/common/tls/tls.h"

struct certificate {
	const struct tls_files *files;
	pthread_mutex_t lock; /* of the next */
	struct tls *now;      /* NULL: the files name none */
};

/* Read it, and warn if it is not valid now, or expires soon. Return NULL after a message. */
struct tls *certificate_read(const struct tls_files *files);

/* Begin with what was read; NULL: the files name none. The files must outlive it. */
void certificate_start(struct certificate *certificate, const struct tls_files *files, struct tls *now);
void certificate_stop(struct certificate *certificate);

/* Read it again for new connections. If it is wrong now, report that and keep the present one. */
void certificate_reload(struct certificate *certificate);

/* Return the server's end of a new connection, or NULL without memory. Any thread, as above. */
struct tls_link *certificate_open(struct certificate *certificate);

#endif
