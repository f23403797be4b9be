/* TLS by OpenSSL, from memory to memory. */
#include "tools/common/tls/tls.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/small_file.h"

struct tls {
	SSL_CTX *context;
};

struct tls_link {
	SSL *ssl;
	BIO *in;  /* what has come; the SSL owns both */
	BIO *out; /* what is to be sent */
	unsigned long error;
};

/* ---- Memory */

static _Atomic size_t taken;

static void *count_in(void *memory)
{
	taken += malloc_usable_size(memory);
	return memory;
}

static void *counted_malloc(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return size ? count_in(malloc(size)) : NULL;
}

static void counted_free(void *memory, const char *file, int line)
{
	(void)file;
	(void)line;
	taken -= malloc_usable_size(memory);
	free(memory);
}

static void *counted_realloc(void *memory, size_t size, const char *file, int line)
{
	size_t before = malloc_usable_size(memory);
	void *grown;

	if (size == 0) {
		counted_free(memory, file, line);
		return NULL;
	}
	grown = realloc(memory, size);
	if (grown)
		taken -= before;
	return count_in(grown);
}

void tls_count_memory(void)
{
	(void)CRYPTO_set_mem_functions(counted_malloc, counted_realloc, counted_free);
}

size_t tls_memory(void)
{
	return taken;
}

/* ---- What links share */

static int say(char reason[TLS_REASON], const char *file, const char *what)
{
	unsigned long error = ERR_peek_error();
	const char *text = ERR_SYSTEM_ERROR(error) ? strerror(ERR_GET_REASON(error)) : ERR_reason_error_string(error);

	snprintf(reason, TLS_REASON, "%s: %s (%s)", file ? file : "OpenSSL", what, text ? text : "unknown reason");
	return -1;
}

/* OpenSSL would wait for the writer of a pipe. What is read here is read again, for a new certificate or connection. */
static int check(const char *file, const char *what, char reason[TLS_REASON])
{
	char why[SMALL_FILE_WHY];

	if (small_file_check(file, why) == 0)
		return 0;
	snprintf(reason, TLS_REASON, "%s: %s (%s)", file, what, why);
	return -1;
}

/* Keys with a pass phrase are refused. A server that asks for one at its start does not start. */
static int no_phrase(char *phrase, int size, int is_writing, void *context)
{
	(void)phrase;
	(void)size;
	(void)is_writing;
	(void)context;
	return -1;
}

static int use_certificate(SSL_CTX *context, const struct tls_files *files, char reason[TLS_REASON])
{
	static const char no_certificate[] = "is not a readable certificate in PEM";
	const char *key = files->key ? files->key : files->certificate;
	const char *no_key =
	    files->key
	        ? "is not a readable key in PEM, without a pass phrase, of that certificate"
	        : "has no key in PEM, without a pass phrase, of its certificate; --tls-key names a file of its own";

	if (!files->certificate)
		return 0;
	if (check(files->certificate, no_certificate, reason) != 0 || check(key, no_key, reason) != 0)
		return -1;
	if (SSL_CTX_use_certificate_chain_file(context, files->certificate) != 1)
		return say(reason, files->certificate, no_certificate);
	if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(context) != 1)
		return say(reason, key, no_key);
	return 0;
}

static int use_trusted(SSL_CTX *context, const char *file, int is_server, char reason[TLS_REASON])
{
	static const char no_trusted[] = "has no readable certificates in PEM";
	STACK_OF(X509_NAME) * names;

	if (!file && is_server)
		return 0;
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	if (!file) {
		if (SSL_CTX_set_default_verify_paths(context) == 1)
			return 0;
		return say(reason, NULL, "the system has no certificates to trust");
	}
	if (check(file, no_trusted, reason) != 0)
		return -1;
	names = is_server ? SSL_load_client_CA_file(file) : NULL;
	if (SSL_CTX_load_verify_file(context, file) != 1 || (is_server && !names))
		return say(reason, file, no_trusted);
	if (names)
		SSL_CTX_set_client_CA_list(context, names);
	return 0;
}

static struct tls *make(const SSL_METHOD *method, const struct tls_files *files, int is_server, char *reason)
{
	static const unsigned char id[] = "weekwheel";
	struct tls *tls = calloc(1, sizeof *tls);

	ERR_clear_error();
	if (tls)
		tls->context = SSL_CTX_new(method);
	if (!tls || !tls->context) {
		snprintf(reason, TLS_REASON, "no memory");
		tls_free(tls);
		return NULL;
	}
	SSL_CTX_set_default_passwd_cb(tls->context, no_phrase);
	SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	/* What would be kept for clients of TLS 1.2 that take no tickets is within no bound. */
	SSL_CTX_set_session_cache_mode(tls->context, SSL_SESS_CACHE_OFF);
	/* An idle connection gives 32 KiB back. */
	SSL_CTX_set_mode(tls->context, SSL_MODE_RELEASE_BUFFERS);
	if (SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_set_session_id_context(tls->context, id, sizeof id - 1) != 1)
		(void)say(reason, NULL, "cannot be set up");
	else if (use_certificate(tls->context, files, reason) == 0 &&
	         use_trusted(tls->context, files->trusted, is_server, reason) == 0)
		return tls;
	tls_free(tls);
	return NULL;
}

struct tls *tls_server(const struct tls_files *files, char reason[TLS_REASON])
{
	return make(TLS_server_method(), files, 1, reason);
}

struct tls *tls_client(const struct tls_files *files, char reason[TLS_REASON])
{
	return make(TLS_client_method(), files, 0, reason);
}

/* Whole days of the calendar, in which each has as many seconds. */
static int64_t unix_time(const ASN1_TIME *time)
{
	ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
	int days = 0;
	int seconds = 0;

	if (epoch)
		(void)ASN1_TIME_diff(&days, &seconds, epoch, time);
	ASN1_TIME_free(epoch);
	return (int64_t)days * 86400 + seconds;
}

void tls_validity(const struct tls *tls, int64_t *from, int64_t *until)
{
	X509 *certificate = SSL_CTX_get0_certificate(tls->context);
	STACK_OF(X509) *signers = NULL;

	*from = INT64_MIN;
	*until = INT64_MAX;
	(void)SSL_CTX_get0_chain_certs(tls->context, &signers);
	for (int i = 0; certificate; certificate = i < sk_X509_num(signers) ? sk_X509_value(signers, i++) : NULL) {
		int64_t begins = unix_time(X509_get0_notBefore(certificate));
		int64_t ends = unix_time(X509_get0_notAfter(certificate));

		*from = begins > *from ? begins : *from;
		*until = ends < *until ? ends : *until;
	}
}

void tls_free(struct tls *tls)
{
	if (tls)
		SSL_CTX_free(tls->context);
	free(tls);
}

/* ---- One end of a connection */

/* Ask for the name, and let the server know which one is meant: it may have several. */
static int expect_host(SSL *ssl, const char *host)
{
	unsigned char bytes[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct tls_link *tls_open(const struct tls *tls, const char *host)
{
	struct tls_link *link = calloc(1, sizeof *link);

	if (!link)
		return NULL;
	ERR_clear_error();
	link->ssl = SSL_new(tls->context);
	link->in = BIO_new(BIO_s_mem());
	link->out = BIO_new(BIO_s_mem());
	if (!link->ssl || !link->in || !link->out || (host && !expect_host(link->ssl, host))) {
		BIO_free(link->in);
		BIO_free(link->out);
		SSL_free(link->ssl);
		free(link);
		return NULL;
	}
	SSL_set_bio(link->ssl, link->in, link->out);
	if (host)
		SSL_set_connect_state(link->ssl);
	else
		SSL_set_accept_state(link->ssl);
	return link;
}

void tls_close(struct tls_link *link)
{
	if (link)
		SSL_free(link->ssl);
	free(link);
}

/* What a step's result means; 0: bytes must come first. */
static int outcome(struct tls_link *link, int result)
{
	int kind = SSL_get_error(link->ssl, result);

	if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
		return 0;
	if (kind == SSL_ERROR_ZERO_RETURN)
		return TLS_ENDED;
	/* OpenSSL says why once. Later steps fail without a reason. */
	if (!link->error)
		link->error = ERR_peek_error();
	return TLS_BROKEN;
}

enum tls_state tls_feed(struct tls_link *link, const void *bytes, size_t size)
{
	size_t written;

	return BIO_write_ex(link->in, bytes, size, &written) == 1 && written == size ? TLS_OK : TLS_BROKEN;
}

int tls_read(struct tls_link *link, void *bytes, size_t room)
{
	int got;

	ERR_clear_error();
	got = SSL_read(link->ssl, bytes, room > INT32_MAX ? INT32_MAX : (int)room);
	return got > 0 ? got : outcome(link, got);
}

enum tls_state tls_write(struct tls_link *link, const void *bytes, size_t size)
{
	size_t written;

	ERR_clear_error();
	if (size == 0 || SSL_write_ex(link->ssl, bytes, size, &written) == 1)
		return TLS_OK;
	(void)outcome(link, 0);
	return TLS_BROKEN;
}

size_t tls_pending(const struct tls_link *link)
{
	return BIO_ctrl_pending(link->out);
}

size_t tls_drain(struct tls_link *link, void *bytes, size_t room)
{
	size_t got = 0;

	return BIO_read_ex(link->out, bytes, room, &got) == 1 ? got : 0;
}

int tls_shake(struct tls_link *link)
{
	int result;

	ERR_clear_error();
	result = SSL_do_handshake(link->ssl);
	return result == 1 ? 1 : outcome(link, result);
}

int tls_is_ready(const struct tls_link *link)
{
	return SSL_is_init_finished(link->ssl);
}

void tls_end(struct tls_link *link)
{
	ERR_clear_error();
	if (SSL_is_init_finished(link->ssl) && !link->error)
		(void)SSL_shutdown(link->ssl);
}

int tls_is_out_of_time(const struct tls_link *link)
{
	long verified = SSL_get_verify_result(link->ssl);

	return verified == X509_V_ERR_CERT_HAS_EXPIRED || verified == X509_V_ERR_CERT_NOT_YET_VALID;
}

void tls_reason(const struct tls_link *link, char reason[TLS_REASON])
{
	long verified = SSL_get_verify_result(link->ssl);
	const char *text =
	    verified != X509_V_OK ? X509_verify_cert_error_string(verified) : ERR_reason_error_string(link->error);

	snprintf(reason, TLS_REASON, "%s", text ? text : "the other side does not speak TLS");
}
