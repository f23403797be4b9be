#ifndef TESTS_TOOLS_COMMON_TLS_CREDENTIALS_H
#define TESTS_TOOLS_COMMON_TLS_CREDENTIALS_H

/* Certificates and their keys in files, made as a test needs them. */

struct credential {
	const char *name;
	const char *for_hosts;       /* as OpenSSL's configuration has it: "DNS:server.example,IP:127.0.0.1" */
	const struct credential *by; /* who signs it; NULL: it signs itself */
	int signs;                   /* it signs others */
	int from, until;             /* days from now */
	const char *phrase;          /* of its key */
	char path[128];              /* of the certificate */
	char key[128];               /* of its key */
	char both[128];              /* of both in one file */
	struct evp_pkey_st *pair;
	struct x509_st *made;
};

/* Make it, and write its files to the folder. */
void credential_make(struct credential *credential, const char *folder);
void credential_free(struct credential *credential);

#endif
