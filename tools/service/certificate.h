#ifndef TOOLS_SERVICE_CERTIFICATE_H
#define TOOLS_SERVICE_CERTIFICATE_H

/* The certificate that a server shows its clients. */

#include "tools/common/tls/tls.h"

/* Read a server's certificate, and warn if it is not valid now, or soon no more. Returns NULL after a message. */
struct tls *certificate_read(const struct tls_files *files);

/* Read it again. Returns NULL after a message if it is wrong: then the one of before stays in use. */
struct tls *certificate_again(const struct tls_files *files);

#endif
