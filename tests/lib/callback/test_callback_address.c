/* The classes of addresses, and which addresses may be called. */
/* tier: quick, threads */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/callback/address.h"
#include "tests/support/suite.h"
#include "weekwheel/callback.h"

static int may(const struct callback_ranges *ranges, const char *text)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct sockaddr_in in = {.sin_family = AF_INET};

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		return ww_callback_address_may(ranges, (struct sockaddr *)&in);
	ck_assert_int_eq(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
	return ww_callback_address_may(ranges, (struct sockaddr *)&in6);
}

static const struct {
	const char *address;
	uint32_t is; /* 0: public */
} addresses[] = {
    {"8.8.8.8", 0},
    {"1.0.0.0", 0},
    {"223.255.255.255", 0},
    {"2606:4700::1111", 0},
    {"2001:200::1", 0},
    {"127.0.0.1", WW_CALLBACK_LOOPBACK},
    {"127.255.255.255", WW_CALLBACK_LOOPBACK},
    {"::1", WW_CALLBACK_LOOPBACK},
    {"10.0.0.0", WW_CALLBACK_PRIVATE},
    {"10.255.255.255", WW_CALLBACK_PRIVATE},
    {"9.255.255.255", 0},
    {"11.0.0.0", 0},
    {"172.16.0.0", WW_CALLBACK_PRIVATE},
    {"172.31.255.255", WW_CALLBACK_PRIVATE},
    {"172.15.255.255", 0},
    {"172.32.0.0", 0},
    {"192.168.1.1", WW_CALLBACK_PRIVATE},
    {"192.167.255.255", 0},
    {"192.169.0.0", 0},
    {"100.64.0.1", WW_CALLBACK_PRIVATE},
    {"100.127.255.255", WW_CALLBACK_PRIVATE},
    {"100.63.255.255", 0},
    {"100.128.0.0", 0},
    {"fc00::1", WW_CALLBACK_PRIVATE},
    {"fdff::1", WW_CALLBACK_PRIVATE},
    {"fec0::1", WW_CALLBACK_PRIVATE},
    {"169.254.169.254", WW_CALLBACK_LINK_LOCAL},
    {"169.253.255.255", 0},
    {"fe80::1", WW_CALLBACK_LINK_LOCAL},
    {"febf::1", WW_CALLBACK_LINK_LOCAL},
    {"0.0.0.0", WW_CALLBACK_SPECIAL},
    {"0.255.255.255", WW_CALLBACK_SPECIAL},
    {"::", WW_CALLBACK_SPECIAL},
    {"192.0.0.170", WW_CALLBACK_SPECIAL},
    {"192.0.2.1", WW_CALLBACK_SPECIAL},
    {"198.51.100.1", WW_CALLBACK_SPECIAL},
    {"203.0.113.1", WW_CALLBACK_SPECIAL},
    {"192.88.99.1", WW_CALLBACK_SPECIAL},
    {"198.18.0.1", WW_CALLBACK_SPECIAL},
    {"198.19.255.255", WW_CALLBACK_SPECIAL},
    {"198.20.0.0", 0},
    {"224.0.0.1", WW_CALLBACK_SPECIAL},
    {"240.0.0.1", WW_CALLBACK_SPECIAL},
    {"255.255.255.255", WW_CALLBACK_SPECIAL},
    {"ff02::1", WW_CALLBACK_SPECIAL},
    {"2001:db8::1", WW_CALLBACK_SPECIAL},
    {"2001::1", WW_CALLBACK_SPECIAL},
    {"100::1", WW_CALLBACK_SPECIAL},
    {"4000::1", WW_CALLBACK_SPECIAL},
    {"::ffff:8.8.8.8", WW_CALLBACK_SPECIAL},
    {"64:ff9b::8.8.8.8", WW_CALLBACK_SPECIAL},
    {"2002:0808:0808::1", WW_CALLBACK_SPECIAL},
};

START_TEST(by_default_only_public_addresses_may_be_called)
{
	const uint32_t all[] = {
	    0, WW_CALLBACK_LOOPBACK, WW_CALLBACK_PRIVATE, WW_CALLBACK_LINK_LOCAL, WW_CALLBACK_SPECIAL};

	for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
		for (size_t j = 0; j < sizeof all / sizeof *all; j++) {
			const struct callback_ranges ranges = {.networks = all[j]};
			const int expected = !addresses[i].is || (addresses[i].is & all[j]);
			ck_assert_msg(!may(&ranges, addresses[i].address) == !expected, "%s with %u",
			    addresses[i].address, (unsigned)all[j]);
		}
}
END_TEST

START_TEST(an_address_inside_another_is_judged_too)
{
	static const char *const texts[] = {"::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::10.0.0.1",
	    "2002:0a00:0001::1", "::ffff:127.0.0.1", "64:ff9b::169.254.169.254", "::10.0.0.1"};
	const struct callback_ranges special = {.networks = WW_CALLBACK_SPECIAL};
	const struct callback_ranges all = {
	    .networks = WW_CALLBACK_SPECIAL | WW_CALLBACK_PRIVATE | WW_CALLBACK_LOOPBACK | WW_CALLBACK_LINK_LOCAL};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		ck_assert_msg(!may(&special, texts[i]), "%s", texts[i]);
		ck_assert_msg(may(&all, texts[i]), "%s", texts[i]);
	}
}
END_TEST

static uint32_t lacks(const struct callback_ranges *ranges, const char *text)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct sockaddr_in in = {.sin_family = AF_INET};

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		return ww_callback_address_lacks(ranges, (struct sockaddr *)&in);
	ck_assert_int_eq(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
	return ww_callback_address_lacks(ranges, (struct sockaddr *)&in6);
}

START_TEST(a_refusal_names_the_missing_class)
{
	struct callback_range deny[] = {{.bits = 0}};
	const struct callback_ranges none = {.networks = 0};
	const struct callback_ranges special = {.networks = WW_CALLBACK_SPECIAL};
	const struct callback_ranges denied = {.deny = deny, .deny_count = 1};

	for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
		ck_assert_uint_eq(lacks(&none, addresses[i].address), addresses[i].is);
		ck_assert_uint_eq(lacks(&denied, addresses[i].address), 0);
	}
	ck_assert_uint_eq(lacks(&none, "::ffff:127.0.0.1"), WW_CALLBACK_SPECIAL | WW_CALLBACK_LOOPBACK);
	ck_assert_uint_eq(lacks(&special, "::ffff:127.0.0.1"), WW_CALLBACK_LOOPBACK);
	ck_assert_uint_eq(lacks(&special, "64:ff9b::169.254.169.254"), WW_CALLBACK_LINK_LOCAL);
}
END_TEST

static struct callback_range range_of(const char *text)
{
	struct callback_range range;

	ck_assert_msg(ww_callback_address_range(text, &range), "%s", text);
	return range;
}

START_TEST(lists_go_before_classes_and_deny_before_allow)
{
	struct callback_range deny[] = {range_of("8.8.8.0/24"), range_of("10.1.0.0/16"), range_of("2606:4700::/32")};
	struct callback_range allow[] = {range_of("10.0.0.0/8"), range_of("fd00::5")};
	const struct callback_ranges ranges = {deny, 3, allow, 2, 0};

	ck_assert(!may(&ranges, "8.8.8.8"));
	ck_assert(may(&ranges, "8.8.9.8"));
	ck_assert(may(&ranges, "10.2.0.1"));
	ck_assert(!may(&ranges, "10.1.0.1"));
	ck_assert(!may(&ranges, "192.168.0.1"));
	ck_assert(may(&ranges, "fd00::5"));
	ck_assert(!may(&ranges, "fd00::6"));
	ck_assert(!may(&ranges, "2606:4700::1"));
	/* The same address, mapped into IPv6. */
	ck_assert(!may(&ranges, "::ffff:8.8.8.8"));
	ck_assert(may(&ranges, "::ffff:10.2.0.1"));
	const struct callback_ranges all = {deny, 3, NULL, 0, WW_CALLBACK_SPECIAL};
	ck_assert(!may(&all, "64:ff9b::8.8.8.8"));
	ck_assert(may(&all, "64:ff9b::8.8.9.8"));
	/* A denied address is denied in every wrapping, even if the wrapping is allowed. */
	struct callback_range wrapped[] = {range_of("64:ff9b::/96"), range_of("2002::/16")};
	const struct callback_ranges allowed = {deny, 3, wrapped, 2, 0};
	ck_assert(!may(&allowed, "64:ff9b::8.8.8.8"));
	ck_assert(!may(&allowed, "2002:808:808::1"));
	ck_assert(may(&allowed, "64:ff9b::8.8.9.8"));
}
END_TEST

START_TEST(ranges_that_cannot_be_read_are_refused)
{
	static const char *const texts[] = {"", "/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8x", "10.0.0.0/-1",
	    "10.0.0.0/ 8", "10.0.0.1/8", "10.0.0/8", "::/129", "::1/127", "example.org", "1.2.3.4.5",
	    "10.0.0.0/999999999999999999999", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/8"};
	struct callback_range range;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		ck_assert_msg(!ww_callback_address_range(texts[i], &range), "%s", texts[i]);
	ck_assert_uint_eq(range_of("0.0.0.0/0").bits, 96);
	ck_assert_uint_eq(range_of("::/0").bits, 0);
	ck_assert_uint_eq(range_of("192.0.2.1").bits, 128);
}
END_TEST

START_TEST(addresses_of_other_families_are_refused)
{
	const struct callback_ranges all = {.networks = 15};
	const struct sockaddr other = {.sa_family = AF_UNIX};

	ck_assert(!ww_callback_address_may(&all, &other));
}
END_TEST

TEST_MAIN("callback/address", by_default_only_public_addresses_may_be_called, an_address_inside_another_is_judged_too,
    a_refusal_names_the_missing_class, lists_go_before_classes_and_deny_before_allow,
    ranges_that_cannot_be_read_are_refused, addresses_of_other_families_are_refused)
