#ifndef TESTS_SUPPORT_CALLBACK_CERTIFICATE_H
#define TESTS_SUPPORT_CALLBACK_CERTIFICATE_H

/* A certificate for 127.0.0.1, signed by itself, for a server of a test. */

#include <openssl/ssl.h>

struct certificate {
	SSL_CTX *context; /* of a server that has it */
	char file[64];    /* PEM, for who is to trust it */
};

struct certificate certificate_make(void);
void certificate_free(struct certificate *certificate);

#endif
