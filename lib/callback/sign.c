/* Signatures of requests: HMAC-SHA256. */
#include <inttypes.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <string.h>

#include "weekwheel/callback.h"

enum { DIGEST = 32 };

struct piece {
	const void *data;
	size_t size;
};

static int hmac(
    const void *secret, size_t secret_length, const struct piece *pieces, size_t count, unsigned char *result)
{
	char name[] = "SHA256";
	OSSL_PARAM parameters[] = {
	    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0), OSSL_PARAM_construct_end()};
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *context = mac ? EVP_MAC_CTX_new(mac) : NULL;
	int done = context && EVP_MAC_init(context, secret, secret_length, parameters);
	size_t size;

	for (size_t i = 0; i < count && done; i++)
		done = !pieces[i].size || EVP_MAC_update(context, pieces[i].data, pieces[i].size);
	done = done && EVP_MAC_final(context, result, &size, DIGEST) && size == DIGEST;
	EVP_MAC_CTX_free(context);
	EVP_MAC_free(mac);
	return done ? WW_OK : WW_ESYSTEM;
}

int ww_callback_sign(const void *secret, size_t secret_length, uint64_t timestamp, uint64_t id, uint64_t token,
    const struct ww_callback_request *request, char signature[WW_CALLBACK_SIGNATURE_SIZE])
{
	char numbers[3 * 21 + 1];
	unsigned char result[DIGEST];
	int length;
	int error;

	if (!secret || !secret_length || !request || !signature)
		return WW_EINVAL;
	length = snprintf(numbers, sizeof numbers, "%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n", timestamp, id, token);
	const struct piece pieces[] = {{numbers, (size_t)length}, {request->method, request->method_length}, {"\n", 1},
	    {request->url, request->url_length}, {"\n", 1}, {request->body, request->body_length}};
	error = hmac(secret, secret_length, pieces, sizeof pieces / sizeof *pieces, result);
	if (error)
		return error;
	memcpy(signature, "v1=", 3);
	for (size_t i = 0; i < DIGEST; i++)
		(void)snprintf(signature + 3 + 2 * i, 3, "%02x", result[i]);
	return WW_OK;
}
