/* Makes a self-signed certificate for 127.0.0.1, for a test's TLS server. */
#include "tests/support/callback/certificate.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/suite.h"

static void add_extension(X509 *certificate, int number, const char *text)
{
	X509V3_CTX context;
	X509_EXTENSION *extension;

	X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, number, text);
	ck_assert_ptr_nonnull(extension);
	ck_assert_int_eq(X509_add_ext(certificate, extension, -1), 1);
	X509_EXTENSION_free(extension);
}

/* Self-signed, for 127.0.0.1. */
static X509 *make_certificate(EVP_PKEY *key)
{
	X509 *certificate = X509_new();
	X509_NAME *name;

	ck_assert_ptr_nonnull(certificate);
	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 36000);
	X509_set_pubkey(certificate, key);
	name = X509_get_subject_name(certificate);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"receiver", -1, -1, 0);
	X509_set_issuer_name(certificate, name);
	add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
	add_extension(certificate, NID_subject_alt_name, "IP:127.0.0.1");
	ck_assert_int_gt(X509_sign(certificate, key, EVP_sha256()), 0);
	return certificate;
}

struct certificate certificate_make(void)
{
	struct certificate made = {.file = "/tmp/weekwheel-callback-XXXXXX"};
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = make_certificate(key);
	FILE *file = fdopen(mkstemp(made.file), "w");

	made.context = SSL_CTX_new(TLS_server_method());
	ck_assert_ptr_nonnull(made.context);
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(SSL_CTX_use_certificate(made.context, certificate), 1);
	ck_assert_int_eq(SSL_CTX_use_PrivateKey(made.context, key), 1);
	ck_assert_int_eq(PEM_write_X509(file, certificate), 1);
	ck_assert_int_eq(fclose(file), 0);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return made;
}

void certificate_free(struct certificate *certificate)
{
	SSL_CTX_free(certificate->context);
	(void)unlink(certificate->file);
}
