/* Which addresses may be called: classes by IANA's registries of special addresses, and lists of ranges. */
#include "lib/callback/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weekwheel/callback.h"

enum { V4_BITS = 96 };

static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* The first that fits is the class of an address; one that fits none is public. */
struct address_class {
	unsigned char address[16];
	unsigned bits;
	uint32_t is;
};

static const struct address_class v4[] = {
    {{127}, 8, WW_CALLBACK_LOOPBACK}, {{10}, 8, WW_CALLBACK_PRIVATE}, {{172, 16}, 12, WW_CALLBACK_PRIVATE},
    {{192, 168}, 16, WW_CALLBACK_PRIVATE}, {{100, 64}, 10, WW_CALLBACK_PRIVATE}, /* carriers' translation */
    {{169, 254}, 16, WW_CALLBACK_LINK_LOCAL},
    {{0}, 8, WW_CALLBACK_SPECIAL}, /* this host, on Linux the same as loopback */
    {{192, 0, 0}, 24, WW_CALLBACK_SPECIAL}, {{192, 0, 2}, 24, WW_CALLBACK_SPECIAL}, /* documentation, and the next */
    {{198, 51, 100}, 24, WW_CALLBACK_SPECIAL}, {{203, 0, 113}, 24, WW_CALLBACK_SPECIAL},
    {{192, 88, 99}, 24, WW_CALLBACK_SPECIAL}, /* relays of 6to4 */
    {{198, 18}, 15, WW_CALLBACK_SPECIAL},     /* benchmarks */
    {{224}, 4, WW_CALLBACK_SPECIAL},          /* multicast */
    {{240}, 4, WW_CALLBACK_SPECIAL},          /* reserved, and broadcast */
};

static const struct address_class v6[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, WW_CALLBACK_LOOPBACK}, {{0xfc}, 7, WW_CALLBACK_PRIVATE},
    {{0xfe, 0xc0}, 10, WW_CALLBACK_PRIVATE}, {{0xfe, 0x80}, 10, WW_CALLBACK_LINK_LOCAL},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, WW_CALLBACK_SPECIAL}, /* documentation */
    {{0x20, 0x01}, 23, WW_CALLBACK_SPECIAL},             /* Teredo, benchmarks, ORCHID */
    {{0x20, 0x02}, 16, WW_CALLBACK_SPECIAL},             /* 6to4 */
    {{0x3f, 0xff}, 20, WW_CALLBACK_SPECIAL},             /* documentation */
    {{0x20}, 3, 0},                                      /* public */
    {{0}, 0, WW_CALLBACK_SPECIAL},                       /* all else: unspecified, mapped, NAT64, multicast, unused */
};

/* IPv6 addresses with an IPv4 address inside, and its offset. */
static const struct {
	unsigned char address[16];
	unsigned bits;
	unsigned at;
} inside[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 12},
    {{0}, 96, 12}, /* IPv4-compatible, obsolete */
    {{0, 0x64, 0xff, 0x9b}, 96, 12},
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, 12},
    {{0x20, 0x02}, 16, 2},
};

static int fits(const unsigned char *address, const unsigned char *range, unsigned bits)
{
	unsigned rest = bits % 8;

	if (memcmp(address, range, bits / 8) != 0)
		return 0;
	return !rest || (address[bits / 8] ^ range[bits / 8]) >> (8 - rest) == 0;
}

static uint32_t class_of(const struct address_class *classes, size_t count, const unsigned char *address)
{
	for (size_t i = 0; i < count; i++)
		if (fits(address, classes[i].address, classes[i].bits))
			return classes[i].is;
	return 0;
}

static int is_listed(const struct callback_range *list, size_t count, const unsigned char *address)
{
	for (size_t i = 0; i < count; i++)
		if (fits(address, list[i].address, list[i].bits))
			return 1;
	return 0;
}

/* An IPv4 address in 16 bytes. */
static void widen(const unsigned char *address, unsigned char *whole)
{
	memcpy(whole, mapped, sizeof mapped);
	memcpy(whole + sizeof mapped, address, 4);
}

/* Whether a denied IPv4 address is inside. */
static int hides_denied(const struct callback_ranges *ranges, const unsigned char *address)
{
	unsigned char whole[16];

	for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
		if (!fits(address, inside[i].address, inside[i].bits))
			continue;
		widen(address + inside[i].at, whole);
		if (is_listed(ranges->deny, ranges->deny_count, whole))
			return 1;
	}
	return 0;
}

static int may_v4(const struct callback_ranges *ranges, const unsigned char *address)
{
	unsigned char whole[16];

	widen(address, whole);
	if (is_listed(ranges->deny, ranges->deny_count, whole))
		return 0;
	if (is_listed(ranges->allow, ranges->allow_count, whole))
		return 1;
	uint32_t is = class_of(v4, sizeof v4 / sizeof *v4, address);
	return !is || (is & ranges->networks);
}

static int may_v6(const struct callback_ranges *ranges, const unsigned char *address)
{
	uint32_t is = class_of(v6, sizeof v6 / sizeof *v6, address);

	if (is_listed(ranges->deny, ranges->deny_count, address) || hides_denied(ranges, address))
		return 0;
	if (is_listed(ranges->allow, ranges->allow_count, address))
		return 1;
	if (is && !(is & ranges->networks))
		return 0;
	if (is & WW_CALLBACK_LOOPBACK)
		return 1;
	for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
		if (fits(address, inside[i].address, inside[i].bits) && !may_v4(ranges, address + inside[i].at))
			return 0;
	return 1;
}

int ww_callback_address_may(const struct callback_ranges *ranges, const struct sockaddr *address)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (address->sa_family == AF_INET) {
		memcpy(&in, address, sizeof in);
		return may_v4(ranges, (const unsigned char *)&in.sin_addr);
	}
	if (address->sa_family == AF_INET6) {
		memcpy(&in6, address, sizeof in6);
		return may_v6(ranges, (const unsigned char *)&in6.sin6_addr);
	}
	return 0;
}

uint32_t ww_callback_address_lacks(const struct callback_ranges *ranges, const struct sockaddr *address)
{
	struct callback_ranges more = *ranges;
	uint32_t lacks = CALLBACK_NETWORKS & ~ranges->networks;

	more.networks |= lacks;
	if (!ww_callback_address_may(&more, address))
		return 0;
	for (uint32_t network = 1; network <= CALLBACK_NETWORKS; network <<= 1) {
		more.networks = ranges->networks | (lacks & ~network);
		if (ww_callback_address_may(&more, address))
			lacks &= ~network;
	}
	return lacks;
}

void ww_callback_address_text(const struct sockaddr *address, char *text, size_t size)
{
	const void *bytes = address->sa_family == AF_INET6
	                        ? (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr
	                        : (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;

	if (!inet_ntop(address->sa_family, bytes, text, (socklen_t)size))
		(void)snprintf(text, size, "of a kind that is not known");
}

int ww_callback_address_range(const char *text, struct callback_range *range)
{
	const char *slash = strchr(text, '/');
	size_t size = slash ? (size_t)(slash - text) : strlen(text);
	char name[INET6_ADDRSTRLEN];
	char *end;
	unsigned long bits;
	unsigned all = 128;
	struct callback_range read = {.bits = 128};

	if (size >= sizeof name)
		return 0;
	memcpy(name, text, size);
	name[size] = '\0';
	if (inet_pton(AF_INET, name, read.address + sizeof mapped) == 1) {
		memcpy(read.address, mapped, sizeof mapped);
		all = 32;
	} else if (inet_pton(AF_INET6, name, read.address) != 1) {
		return 0;
	}
	if (slash) {
		bits = strtoul(slash + 1, &end, 10);
		if (slash[1] < '0' || slash[1] > '9' || *end || bits > all)
			return 0;
		read.bits = (unsigned)bits + (all == 32 ? V4_BITS : 0);
	}
	for (unsigned bit = read.bits; bit < 128; bit++)
		if (read.address[bit / 8] >> (7 - bit % 8) & 1)
			return 0;
	*range = read;
	return 1;
}
