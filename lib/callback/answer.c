/*
 * The end of a transfer, and the result of its delivery.
 *
 *   2xx, or a status of config.success   finish
 *   408, 425, 429, 5xx                   retry, after Retry-After or the job's backoff
 *   3xx                                  redirect, or bury
 *   any other status                     bury
 *   no answer, or half of one            retry; bury if all addresses of the host are forbidden or the URL is bad
 *
 * A redirection is followed like this:
 *   1. Only a request that would be repeated unchanged: 301, 302, 307 and 308; 303 for GET and HEAD alone.
 *   2. At most config.redirects times, and to the same scheme: https never falls back to http.
 *   3. The delivery waits for the new host, keeps its lease, and goes there with what is left of its time.
 *   4. Another host gets the job's plain headers only, and no signature (send.c). That holds from then on,
 *      also back at the first host.
 *   5. The new address must be permitted like any other.
 */
#include <stdio.h>
#include <string.h>

#include "lib/callback/callback_internal.h"
#include "weekwheel/driver.h"

static int is_success(const struct ww_callback_config *config, long status)
{
	if (status >= 200 && status <= 299)
		return 1;
	for (size_t i = 0; i < config->success_count; i++)
		if (config->success[i] == status)
			return 1;
	return 0;
}

static int is_passing(long status)
{
	return status == 408 || status == 425 || status == 429 || (status >= 500 && status <= 599);
}

/* Whether Retry-After has a number too great for libcurl, which then ignores it. */
static int is_beyond_numbers(const struct delivery *delivery)
{
	struct curl_header *header;

	if (curl_easy_header(delivery->easy, "Retry-After", 0, CURLH_HEADER, -1, &header))
		return 0;
	const char *digits = header->value + strspn(header->value, "0");
	return strlen(digits) > 18 && strspn(digits, "0123456789") == strlen(digits);
}

/* The delay that the receiver asks for, or the job's backoff. */
static uint64_t retry_after(const struct delivery *delivery)
{
	const uint64_t most = delivery->callback->config.retry_after_max;
	curl_off_t seconds = 0;

	if (curl_easy_getinfo(delivery->easy, CURLINFO_RETRY_AFTER, &seconds))
		return WW_JOB_BACKOFF;
	if (seconds <= 0)
		return is_beyond_numbers(delivery) ? most : WW_JOB_BACKOFF;
	return (uint64_t)seconds > most / WW_SECOND ? most : (uint64_t)seconds * WW_SECOND;
}

/* ---- Redirections */

/* Whether the redirected request is the same request. */
static int keeps_method(const struct delivery *delivery, long status)
{
	struct ww_callback_request request;

	if (status == 301 || status == 302 || status == 307 || status == 308)
		return 1;
	if (status != 303 || ww_callback_parse(delivery->lease.body, delivery->lease.body_length, &request, NULL))
		return 0;
	struct text_span method = {request.method, request.method_length};
	return ww_callback_text_is(method, "GET") || ww_callback_text_is(method, "HEAD");
}

/* Find where it goes. Returns NULL, or why it cannot. */
static const char *next_url(const struct delivery *delivery, struct text_span *url, struct callback_url *parts)
{
	char *location = NULL;
	struct callback_url now;
	const char *reason;

	if (curl_easy_getinfo(delivery->easy, CURLINFO_REDIRECT_URL, &location) || !location)
		return "a redirection to nowhere";
	*url = (struct text_span){location, strcspn(location, "#")};
	if (url->size > WW_CALLBACK_URL_MAX)
		return "a redirection to a URL that is too long";
	reason = ww_callback_text_url(*url, parts);
	if (reason)
		return reason;
	(void)ww_callback_text_url((struct text_span){delivery->url, delivery->url_size - 1}, &now);
	if (now.scheme.size != parts->scheme.size)
		return "a redirection to another scheme";
	return NULL;
}

static void redirect(struct delivery *delivery, long status)
{
	struct ww_callback *callback = delivery->callback;
	struct callback_url parts;
	struct text_span url;
	const char *reason;

	if (!keeps_method(delivery, status))
		reason = "no success, and nothing that can be followed";
	else if (delivery->redirects == callback->config.redirects)
		reason = "one redirection more than are followed";
	else
		reason = next_url(delivery, &url, &parts);
	if (reason) {
		ww_callback_result(delivery, CALLBACK_BURY, 0, "HTTP %ld: %s", status, reason);
		return;
	}
	if (ww_callback_direct(delivery, url, &parts)) {
		ww_callback_result(delivery, CALLBACK_RETRY, WW_JOB_BACKOFF, "there was no memory for the request");
		return;
	}
	delivery->redirects++;
	callback->counters.redirects++;
	ww_callback_move(delivery, CALLBACK_WAITING);
}

/* ---- Results */

static void judge(struct delivery *delivery, long status)
{
	const struct ww_callback_config *config = &delivery->callback->config;
	const char *colon = delivery->beginning_size ? ": " : "";
	int size = (int)delivery->beginning_size;

	if (is_success(config, status))
		ww_callback_result(delivery, CALLBACK_FINISH, 0, NULL);
	else if (is_passing(status))
		ww_callback_result(delivery, CALLBACK_RETRY, retry_after(delivery), "HTTP %ld%s%.*s", status, colon,
		    size, delivery->beginning);
	else if (status >= 300 && status <= 399)
		redirect(delivery, status);
	else
		ww_callback_result(
		    delivery, CALLBACK_BURY, 0, "HTTP %ld%s%.*s", status, colon, size, delivery->beginning);
}

/* No address may be called. The error names the pusher's options: its reader can change these, seldom the job. */
static void refuse(struct delivery *delivery)
{
	static const struct {
		uint32_t network;
		const char *name;
	} names[] = {{WW_CALLBACK_LOOPBACK, "loopback"}, {WW_CALLBACK_PRIVATE, "private"},
	    {WW_CALLBACK_LINK_LOCAL, "link-local"}, {WW_CALLBACK_SPECIAL, "special"}};
	char list[64] = "";

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (delivery->lacks & names[i].network)
			snprintf(
			    list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? "," : "", names[i].name);
	if (*list)
		ww_callback_result(delivery, CALLBACK_BURY, 0,
		    "the address %s may not be called, since it is not public: weekwheeld --push-networks %s allows it",
		    delivery->refused, list);
	else
		ww_callback_result(delivery, CALLBACK_BURY, 0,
		    "the address %s may not be called: it is denied (weekwheeld --push-deny)", delivery->refused);
}

/* It is the job's fault, not the host's. */
static int is_bad_request(const struct delivery *delivery, CURLcode code)
{
	return code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
	       (delivery->refused_count && !delivery->allowed_count);
}

static void fail(struct delivery *delivery, CURLcode code, long status, int was_probe, uint64_t now)
{
	const char *said = delivery->failure[0] ? delivery->failure : curl_easy_strerror(code);
	char bytes[80];

	if (delivery->is_over) {
		(void)snprintf(bytes, sizeof bytes, "more than %zu bytes came, framing included",
		    ww_callback_socket_bytes_max(&delivery->callback->config));
		said = bytes;
	}

	/* Nothing was sent: its place was full, and now it waits for that. */
	if (delivery->is_crowded && !status && !delivery->connection) {
		ww_callback_move(delivery, CALLBACK_WAITING);
		return;
	}
	if (!is_bad_request(delivery, code))
		ww_callback_breaker_failed(delivery, said, was_probe, now);
	/* An address that may be called may answer the next time. */
	if (delivery->refused_count && !delivery->allowed_count)
		refuse(delivery);
	else if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
		ww_callback_result(delivery, CALLBACK_BURY, 0, "%s", said);
	else if (code == CURLE_WRITE_ERROR && delivery->body_bytes == 0)
		ww_callback_result(delivery, CALLBACK_RETRY, WW_JOB_BACKOFF, "the head of the answer is too long");
	else if (status)
		ww_callback_result(delivery, CALLBACK_RETRY, WW_JOB_BACKOFF, "HTTP %ld, and then: %s", status, said);
	else
		ww_callback_result(delivery, CALLBACK_RETRY, WW_JOB_BACKOFF, "no answer: %s", said);
}

void ww_callback_answer(struct delivery *delivery, CURLcode code)
{
	long status = 0;
	long connections = 0;

	const uint64_t now = time_now(CLOCK_BOOTTIME);
	const int was_probe = delivery->is_probe;

	ww_callback_stop(delivery);
	delivery->callback->counters.timed_out += code == CURLE_OPERATION_TIMEDOUT;
	delivery->callback->counters.over += delivery->is_over != 0;
	(void)curl_easy_getinfo(delivery->easy, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(delivery->easy, CURLINFO_NUM_CONNECTS, &connections);
	delivery->callback->counters.connections += (uint64_t)connections;
	if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && delivery->is_cut)) {
		ww_callback_breaker_answered(delivery, now);
		judge(delivery, status);
	} else {
		fail(delivery, code, status, was_probe, now);
	}
	ww_callback_clean(delivery);
}
