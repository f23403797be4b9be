#ifndef TESTS_SUPPORT_CALLBACK_CERTIFICATE_H
#define TESTS_SUPPORT_CALLBACK_CERTIFICATE_H

/* A self-signed certificate for 127.0.0.1, for a test's server. */

#include <openssl/ssl.h>

struct certificate {
	SSL_CTX *context; /* for a server with this certificate */
	char file[64];    /* PEM, for a client that should trust it */
};

struct certificate certificate_make(void);
void certificate_free(struct certificate *certificate);

#endif
