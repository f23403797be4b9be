/* The id of the boot. */
/* tier: quick */
#include <string.h>

#include "lib/base/boot.h"
#include "tests/support/suite.h"

START_TEST(it_is_that_of_the_system_and_stays)
{
	unsigned char id[16];
	unsigned char again[16];
	char text[40] = "";
	char digits[3];
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	ck_assert_ptr_nonnull(file);
	ck_assert_ptr_nonnull(fgets(text, sizeof text, file));
	(void)fclose(file);
	memset(again, 0xff, sizeof again);
	boot_id(id);
	boot_id(again);
	ck_assert_mem_eq(id, again, sizeof id);
	(void)snprintf(digits, sizeof digits, "%02x", id[0]);
	ck_assert_mem_eq(digits, text, 2);
	(void)snprintf(digits, sizeof digits, "%02x", id[15]);
	ck_assert_mem_eq(digits, text + 34, 2);
	ck_assert_uint_ne(boot_number(), 0);
	ck_assert_uint_eq(boot_number(), boot_number());
}
END_TEST

TEST_MAIN("base/boot", it_is_that_of_the_system_and_stays)
