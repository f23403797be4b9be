#ifndef TOOLS_COMMON_DURATION_H
#define TOOLS_COMMON_DURATION_H

/*
 * Reads and writes times as people write them. All are in 64 bits of ns. A time is Unix time, and local times are those of
 * the zone that TZ names. A text that looks like a slip is refused, with the place of the slip.
 */

#include <stddef.h>
#include <stdint.h>

#define DURATION_SECOND UINT64_C(1000000000)
/* The longest duration: 136 years, all that 32 bits of seconds in the protocol hold. The last time is in 2116. */
#define DURATION_MAX (UINT64_C(4294967295) * DURATION_SECOND)
#define DURATION_TIME_MAX (UINT64_C(1) << 62)

/* What is wrong with a text. Reading ended at text + at. */
struct duration_problem {
	size_t at;
	char expected[120];
};

/*
 * Read a length of time: "90" (seconds), "90s", "1.5h", "3d12h", "2w", "250ms", "10 min", and all that duration_format writes.
 * Units go from large to small, each at most once. Only a number alone has no unit. Return 0, or -1 with *problem filled and *ns unchanged.
 */
int duration_parse(const char *text, uint64_t *ns, struct duration_problem *problem);

/*
 * Read a time: "2026-12-01" (midnight), "2026-12-01 09:00", "2026-12-01T09:00:30.5", each local or with a zone's offset
 * ("Z", "+02:00", "-0330") behind it, or "@1796115600.25", which is Unix time. A local time that comes twice, when clocks
 * are put back, means the earlier. A local time that is skipped is refused. Return as above.
 */
int time_parse(const char *text, uint64_t *ns, struct duration_problem *problem);

/* Read a time, or a duration from `now` on. Return as above. */
int time_parse_from(const char *text, uint64_t now, uint64_t *ns, struct duration_problem *problem);

enum { DURATION_TEXT = 48 };

/* Write seconds as the protocol has them, "0.25", to text[0 .. DURATION_TEXT-1]. These three return text. */
const char *duration_seconds(char *text, uint64_t ns);

/* Write a length of time for people: "3 d 12 h", "1.5 s", "20 ms". */
const char *duration_format(char *text, uint64_t ns);

/* Write a local time: "2026-12-01 09:00:00". */
const char *time_format(char *text, uint64_t ns);

/* The same with the zone's offset behind it, "+01:00". */
const char *time_format_zone(char *text, uint64_t ns);

/* Return Unix time now. */
uint64_t wall_now(void);

#endif
