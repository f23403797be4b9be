/* HTTPS, with a certificate of the test's own. */

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "callback/pushing.h"

static struct pushing pushing;
static char authority[] = "/tmp/weekwheel-callback-XXXXXX";

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

/* Signed by itself, for 127.0.0.1. */
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

/* A context with it; the certificate is left in the file of `authority`. */
static SSL_CTX *make_context(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = make_certificate(key);
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	FILE *file = fdopen(mkstemp(authority), "w");

	ck_assert_ptr_nonnull(context);
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(SSL_CTX_use_certificate(context, certificate), 1);
	ck_assert_int_eq(SSL_CTX_use_PrivateKey(context, key), 1);
	ck_assert_int_eq(PEM_write_X509(file, certificate), 1);
	ck_assert_int_eq(fclose(file), 0);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return context;
}

static uint64_t put_https(const char *host, struct receiver *receiver)
{
	return pushing_put(&pushing, NULL, "https://%s:%u/\n\nhello", host, receiver_port(receiver));
}

START_TEST(a_receiver_is_called_over_tls_if_it_is_trusted)
{
	SSL_CTX *context = make_context();
	struct receiver *receiver = receiver_start(context);

	pushing_make(&pushing);
	pushing.config.ca_file = authority;
	pushing.config.per_host = 1;
	pushing_open(&pushing);
	expect_finished(&pushing, put_https("127.0.0.1", receiver));
	expect_finished(&pushing, put_https("127.0.0.1", receiver));
	ck_assert_str_eq(strstr(receiver_got(receiver, 0), "\r\n\r\n") + 4, "hello");
	ck_assert_uint_eq(receiver_connections(receiver), 1);
	/* Its name is another one. */
	expect_backoff(&pushing, put_https("127.0.0.2", receiver), "no answer: ");
	expect_backoff(&pushing, put_https("localhost", receiver), "no answer: ");
	ck_assert_uint_eq(receiver_count(receiver), 2);
	pushing_end(&pushing);
	receiver_stop(receiver);
	SSL_CTX_free(context);
	(void)unlink(authority);
}
END_TEST

START_TEST(nothing_is_sent_to_a_receiver_that_is_not_trusted)
{
	SSL_CTX *context = make_context();
	struct receiver *receiver = receiver_start(context);

	pushing_make(&pushing);
	pushing_open(&pushing);
	expect_backoff(&pushing, put_https("127.0.0.1", receiver), "certificate");
	ck_assert_uint_eq(receiver_count(receiver), 0);
	pushing_end(&pushing);
	receiver_stop(receiver);
	SSL_CTX_free(context);
	(void)unlink(authority);
}
END_TEST

TEST_MAIN(
    "callback/tls", a_receiver_is_called_over_tls_if_it_is_trusted, nothing_is_sent_to_a_receiver_that_is_not_trusted)
