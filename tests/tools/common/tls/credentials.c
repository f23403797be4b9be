/* Certificates and their keys in files. */
#include "tests/tools/common/tls/credentials.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "tests/support/suite.h"

static void add_extension(X509 *made, X509 *signer, int what, const char *value)
{
	X509V3_CTX context;
	X509_EXTENSION *extension;

	X509V3_set_ctx(&context, signer, made, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, what, value);
	ck_assert_ptr_nonnull(extension);
	ck_assert_int_eq(X509_add_ext(made, extension, -1), 1);
	X509_EXTENSION_free(extension);
}

static void write_key(const struct credential *credential, FILE *file)
{
	const EVP_CIPHER *cipher = credential->phrase ? EVP_aes_128_cbc() : NULL;

	ck_assert_int_eq(
	    PEM_write_PrivateKey(file, credential->pair, cipher, NULL, 0, NULL, (void *)(uintptr_t)credential->phrase),
	    1);
}

static void write_files(struct credential *credential, const char *folder)
{
	const char *const names[] = {credential->path, credential->key, credential->both};

	(void)snprintf(credential->path, sizeof credential->path, "%s/%s.pem", folder, credential->name);
	(void)snprintf(credential->key, sizeof credential->key, "%s/%s.key", folder, credential->name);
	(void)snprintf(credential->both, sizeof credential->both, "%s/%s.both", folder, credential->name);
	for (int i = 0; i < 3; i++) {
		FILE *file = fopen(names[i], "w");
		ck_assert_ptr_nonnull(file);
		if (i != 1)
			ck_assert_int_eq(PEM_write_X509(file, credential->made), 1);
		if (i != 0)
			write_key(credential, file);
		ck_assert_int_eq(fclose(file), 0);
	}
}

void credential_make(struct credential *credential, const char *folder)
{
	const struct credential *by = credential->by ? credential->by : credential;
	static long serial;
	time_t now = time(NULL);
	X509 *made = X509_new();
	X509_NAME *subject = X509_get_subject_name(made);

	credential->made = made;
	credential->pair = EVP_EC_gen("P-256");
	ck_assert_ptr_nonnull(credential->pair);
	(void)X509_set_version(made, X509_VERSION_3);
	(void)ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial);
	(void)X509_time_adj_ex(X509_getm_notBefore(made), credential->from, 0, &now);
	(void)X509_time_adj_ex(X509_getm_notAfter(made), credential->until, 0, &now);
	(void)X509_NAME_add_entry_by_txt(
	    subject, "CN", MBSTRING_ASC, (const unsigned char *)credential->name, -1, -1, 0);
	(void)X509_set_issuer_name(made, X509_get_subject_name(by->made));
	(void)X509_set_pubkey(made, credential->pair);
	add_extension(
	    made, by->made, NID_basic_constraints, credential->signs ? "critical,CA:TRUE" : "critical,CA:FALSE");
	if (credential->for_hosts)
		add_extension(made, by->made, NID_subject_alt_name, credential->for_hosts);
	ck_assert_int_gt(X509_sign(made, by->pair, EVP_sha256()), 0);
	write_files(credential, folder);
}

void credential_free(struct credential *credential)
{
	(void)remove(credential->path);
	(void)remove(credential->key);
	(void)remove(credential->both);
	X509_free(credential->made);
	EVP_PKEY_free(credential->pair);
}
