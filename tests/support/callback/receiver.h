#ifndef TESTS_SUPPORT_CALLBACK_RECEIVER_H
#define TESTS_SUPPORT_CALLBACK_RECEIVER_H

/*
 * A server on loopback that does what a request asks, with a thread for each connection. It keeps the requests.
 *
 *     Answer-Status: 503 Busy        its status; 204 otherwise, and always for a path that begins with /end
 *     Answer-Once: x                 only the first such request has what Answer-Status and Answer-Body say
 *     Answer-Header: Name: value     another header of the answer; may come several times
 *     Answer-Body: text
 *     Answer-Do: wait                first waits until receiver_open
 *                cut                  answers half of it, and closes
 *                hang up              closes without an answer
 *                big body             answers with 60,000 bytes
 *                drip                 answers a byte at a time, and never ends
 *                endless head, endless body, endless line, endless interim, endless trailer, endless chunk
 */

#include <stddef.h>
#include <stdint.h>

struct ssl_ctx_st;
struct receiver;

/* tls NULL: no TLS. */
struct receiver *receiver_start(struct ssl_ctx_st *tls);
/* At another address of loopback than 127.0.0.1: another host to a pusher, whatever its port. */
struct receiver *receiver_start_at(const char *where, struct ssl_ctx_st *tls);
/* Waits for its connections to end. */
void receiver_stop(struct receiver *receiver);
unsigned receiver_port(const struct receiver *receiver);
/* Let all waiting requests go on, and those that will come. */
void receiver_open(struct receiver *receiver);
/* Wait until it has got this many requests. */
void receiver_wait(struct receiver *receiver, size_t count);
/* The n-th request, from 0 on, head and body. Valid until the stop. */
const char *receiver_got(struct receiver *receiver, size_t n);
size_t receiver_count(struct receiver *receiver);
size_t receiver_connections(struct receiver *receiver);
/* Bytes that it has sent. */
size_t receiver_sent(struct receiver *receiver);
/* The most requests that it had at one time. */
size_t receiver_most(struct receiver *receiver);

#endif
