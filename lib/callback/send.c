/* Sending a request: its headers, and libcurl's options and callbacks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"

/* ---- Headers */

struct headers {
	struct curl_slist *list;
	int failed;
};

static void add_line(struct headers *headers, const char *line)
{
	struct curl_slist *longer = headers->failed ? NULL : curl_slist_append(headers->list, line);

	if (longer)
		headers->list = longer;
	else
		headers->failed = 1;
}

/* To libcurl, "name:" means no such header, and "name;" one with an empty value. */
static void add_job_header(
    struct headers *headers, const struct ww_callback *callback, const struct ww_callback_header *header)
{
	size_t size = header->name_length + header->value_length + 3;
	char *line = memory_take(callback->allocator, size);

	if (!line) {
		headers->failed = 1;
		return;
	}
	(void)snprintf(line, size, "%.*s%s%.*s", (int)header->name_length, header->name,
	    header->value_length ? ": " : ";", (int)header->value_length, header->value_length ? header->value : "");
	add_line(headers, line);
	memory_give(callback->allocator, line, size);
}

static void add_number(struct headers *headers, const char *name, uint64_t number)
{
	char line[64];

	(void)snprintf(line, sizeof line, "Weekwheel-%s: %" PRIu64, name, number);
	add_line(headers, line);
}

/* Bytes other than letters, digits, - . _ ~ are written as %XX. */
static void add_bytes(struct headers *headers, const char *name, const void *data, size_t size)
{
	char line[64 + 3 * (WW_JOB_KEY_MAX > WW_TUBE_MAX ? WW_JOB_KEY_MAX : WW_TUBE_MAX)];
	char *escaped = curl_easy_escape(NULL, data, (int)size);

	if (!escaped) {
		headers->failed = 1;
		return;
	}
	(void)snprintf(line, sizeof line, "Weekwheel-%s: %s", name, escaped);
	curl_free(escaped);
	add_line(headers, line);
}

static void add_ours(
    struct headers *headers, const struct delivery *delivery, const struct ww_callback_request *request)
{
	const struct ww_callback_config *config = &delivery->callback->config;
	const struct ww_lease *lease = &delivery->lease;
	uint64_t timestamp = (uint64_t)time(NULL);
	char signature[WW_CALLBACK_SIGNATURE_SIZE];
	char line[WW_CALLBACK_SIGNATURE_SIZE + 32];

	add_number(headers, "Job-Id", lease->id);
	if (lease->key_length)
		add_bytes(headers, "Job-Key", lease->key, lease->key_length);
	add_bytes(headers, "Tube", lease->tube, strlen(lease->tube));
	add_number(headers, "Attempt", lease->attempt);
	add_number(headers, "Token", lease->token);
	add_number(headers, "Timestamp", timestamp);
	if (!config->secret || delivery->is_elsewhere)
		return;
	if (ww_callback_sign(
	        config->secret, config->secret_length, timestamp, lease->id, lease->token, request, signature)) {
		headers->failed = 1;
		return;
	}
	(void)snprintf(line, sizeof line, "Weekwheel-Signature: %s", signature);
	add_line(headers, line);
}

/* What names the run of a job: ids begin anew in another store, and a kicked run may keep its scheduled time. */
static void add_idempotency_key(struct headers *headers, const struct ww_lease *lease)
{
	char line[128];

	(void)snprintf(line, sizeof line, "Idempotency-Key: \"%" PRIu64 "-%" PRIx64 "-%" PRIx64 "-%" PRIu32 "\"",
	    lease->id, lease->created, lease->scheduled, lease->scheduled ? lease->kicks : 0);
	add_line(headers, line);
}

static int has_header(const struct ww_callback_request *request, const struct ww_job_header *header)
{
	for (size_t i = 0; i < request->header_count; i++)
		if (request->headers[i].name_length == header->name_length &&
		    strncasecmp(request->headers[i].name, header->name, header->name_length) == 0)
			return 1;
	return 0;
}

/* The request with the headers of its job, but for those that it has itself, or that are not the job's to set. */
static struct ww_callback_request with_headers(
    const struct ww_callback_request *request, const char *headers, size_t length)
{
	struct ww_callback_request whole = *request;
	struct ww_job_header header;
	size_t at = 0;

	while (whole.header_count < WW_CALLBACK_HEADERS_MAX && ww_job_headers_next(headers, length, &at, &header)) {
		const struct ww_callback_header sent = {
		    header.name, header.name_length, header.value, header.value_length};
		if (!has_header(request, &header) && !ww_callback_text_header(&sent))
			whole.headers[whole.header_count++] = sent;
	}
	return whole;
}

static struct curl_slist *make_headers(const struct delivery *delivery, const struct ww_callback_request *request)
{
	const struct ww_callback_request whole =
	    with_headers(request, delivery->lease.headers, delivery->lease.headers_length);
	struct headers headers = {NULL, 0};
	int has_type = 0;
	int has_key = 0;

	for (size_t i = 0; i < whole.header_count; i++) {
		const struct ww_callback_header *header = &whole.headers[i];
		const struct text_span name = {header->name, header->name_length};
		if (delivery->is_elsewhere && !ww_callback_text_is_plain(name))
			continue;
		has_type |= ww_callback_text_is(name, "Content-Type");
		has_key |= ww_callback_text_is(name, "Idempotency-Key");
		add_job_header(&headers, delivery->callback, header);
	}
	/* Suppress libcurl's own Content-Type, and its question whether the body may come, which takes a round trip. */
	if (!has_type)
		add_line(&headers, "Content-Type:");
	add_line(&headers, "Expect:");
	add_ours(&headers, delivery, request);
	if (!has_key)
		add_idempotency_key(&headers, &delivery->lease);
	if (headers.failed) {
		curl_slist_free_all(headers.list);
		headers.list = NULL;
	}
	return headers.list;
}

/* ---- What libcurl calls */

static size_t on_header(char *data, size_t size, size_t count, void *user)
{
	struct delivery *delivery = user;

	(void)data;
	(void)size;
	delivery->head_bytes += count;
	return delivery->head_bytes > CALLBACK_HEAD_MAX ? 0 : count;
}

static size_t on_body(char *data, size_t size, size_t count, void *user)
{
	struct delivery *delivery = user;
	size_t kept = sizeof delivery->beginning - delivery->beginning_size;

	(void)size;
	if (kept > count)
		kept = count;
	memcpy(delivery->beginning + delivery->beginning_size, data, kept);
	delivery->beginning_size += kept;
	delivery->body_bytes += count;
	if (delivery->body_bytes <= delivery->callback->config.response_max)
		return count;
	delivery->is_cut = 1;
	return 0;
}

/* ---- Options */

static int is_https(const char *url)
{
	return strncasecmp(url, "https:", 6) == 0;
}

static void set_security(CURL *easy, const struct ww_callback_config *config, const char *url, CURLcode *code)
{
	const char *scheme = is_https(url) ? "https" : "http";

	*code |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, scheme);
	*code |= curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, scheme);
	*code |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	*code |= curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
	*code |= curl_easy_setopt(easy, CURLOPT_PROXY, "");
	*code |= curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	*code |= curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	*code |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	*code |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	if (config->ca_file)
		*code |= curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca_file);
}

static void set_transfer(CURL *easy, struct delivery *delivery, uint64_t left, CURLcode *code)
{
	const struct ww_callback_config *config = &delivery->callback->config;
	uint64_t total = left / WW_MILLISECOND;
	uint64_t connecting = config->connect_timeout / WW_MILLISECOND;

	/* To libcurl, 0 means no limit; its own limit is an int of ms. */
	total = total < 1 ? 1 : total > INT32_MAX ? INT32_MAX : total;
	*code |= curl_easy_setopt(easy, CURLOPT_URL, delivery->url);
	*code |= curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	*code |= curl_easy_setopt(easy, CURLOPT_PRIVATE, delivery);
	*code |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* Otherwise giving up a request would wait for a name server that does not answer. */
	*code |= curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	*code |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)total);
	*code |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(connecting < total ? connecting : total));
	*code |= curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	/*
	 * Wait for a new connection that may turn out to be HTTP/2, and share it. Not without TLS: there libcurl would
	 * wait for the first answer to find that out.
	 */
	*code |= curl_easy_setopt(easy, CURLOPT_PIPEWAIT, (long)is_https(delivery->url));
	*code |= curl_easy_setopt(easy, CURLOPT_USERAGENT, config->user_agent);
	*code |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, delivery->failure);
	*code |= ww_callback_socket_options(delivery);
	*code |= curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	*code |= curl_easy_setopt(easy, CURLOPT_HEADERDATA, delivery);
	*code |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	*code |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, delivery);
}

static void set_request(
    CURL *easy, const struct delivery *delivery, const struct ww_callback_request *request, CURLcode *code)
{
	static const char *const without[] = {"GET", "DELETE", "OPTIONS"};
	const struct text_span method = {request->method, request->method_length};
	char name[64];
	int has_body = 1;

	(void)snprintf(name, sizeof name, "%.*s", (int)method.size, method.data);
	for (size_t i = 0; i < sizeof without / sizeof *without; i++)
		if (!request->body_length && strcmp(name, without[i]) == 0)
			has_body = 0;
	if (strcmp(name, "HEAD") == 0) {
		*code |= curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	} else if (!has_body) {
		*code |= curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
	} else {
		*code |= curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
		*code |= curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body_length ? request->body : "");
	}
	*code |= curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, name);
	*code |= curl_easy_setopt(easy, CURLOPT_HTTPHEADER, delivery->headers);
}

/* ---- Starting and ending */

void ww_callback_clean(struct delivery *delivery)
{
	if (delivery->easy)
		curl_easy_cleanup(delivery->easy);
	curl_slist_free_all(delivery->headers);
	delivery->easy = NULL;
	delivery->headers = NULL;
}

static int prepare(struct delivery *delivery, uint64_t left)
{
	struct ww_callback_request request;
	CURLcode code = CURLE_OK;

	delivery->head_bytes = delivery->body_bytes = delivery->beginning_size = 0;
	delivery->is_cut = delivery->is_over = delivery->is_crowded = 0;
	delivery->received = delivery->checked = 0;
	delivery->connection = NULL;
	delivery->refused_count = delivery->allowed_count = 0;
	delivery->failure[0] = '\0';
	if (ww_callback_parse(delivery->lease.body, delivery->lease.body_length, &request, NULL))
		return WW_EINVAL;
	request.url = delivery->url;
	request.url_length = delivery->url_size - 1;
	delivery->easy = curl_easy_init();
	delivery->headers = make_headers(delivery, &request);
	if (!delivery->easy || !delivery->headers)
		return WW_ENOMEM;
	set_security(delivery->easy, &delivery->callback->config, delivery->url, &code);
	set_transfer(delivery->easy, delivery, left, &code);
	set_request(delivery->easy, delivery, &request, &code);
	if (code || curl_multi_add_handle(delivery->callback->multi, delivery->easy))
		return WW_ENOMEM;
	return WW_OK;
}

void ww_callback_send(struct delivery *delivery, uint64_t now)
{
	struct ww_callback *callback = delivery->callback;
	uint64_t left;

	if (!ww_callback_freshen(delivery, now))
		return;
	if (!delivery->began)
		delivery->began = now;
	left = ww_callback_time_left(delivery, now);
	if (!left) {
		ww_callback_result(
		    delivery, CALLBACK_RETRY, WW_JOB_BACKOFF, "the time was up before the request was sent");
		return;
	}
	ww_callback_host_start(delivery);
	if (prepare(delivery, left)) {
		ww_callback_host_stop(delivery);
		ww_callback_clean(delivery);
		ww_callback_result(delivery, CALLBACK_RETRY, WW_JOB_BACKOFF, "there was no memory for the request");
		return;
	}
	callback->counters.requests++;
	delivery->tube->under_way++;
	ww_callback_move(delivery, CALLBACK_UNDER_WAY);
}

void ww_callback_stop(struct delivery *delivery)
{
	(void)curl_multi_remove_handle(delivery->callback->multi, delivery->easy);
	delivery->tube->under_way--;
	delivery->callback->more |= delivery->callback->is_short;
	delivery->callback->is_short = 0;
	ww_callback_host_stop(delivery);
}
