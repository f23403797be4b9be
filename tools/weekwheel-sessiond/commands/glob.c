/* Matches patterns. After a mismatch only the last star tries again: the match of an earlier one need not change. */
#include "tools/weekwheel-sessiond/commands/glob.h"

/* A pattern must not make other clients wait: one that is longer, or takes more steps, matches nothing. */
enum { PATTERN_MOST = 4096, STEPS_A_BYTE = 16, TEXT_MOST = 65536 };

/* Behind "[": move *at behind the class and return whether it has the character. */
static int class_has(const char **at, const char *end, unsigned char c)
{
	const char *p = *at;
	int is_not = p < end && *p == '^';
	int has = 0;

	p += is_not;
	for (; p < end && *p != ']'; p++) {
		unsigned char low;
		unsigned char high;
		if (*p == '\\' && end - p >= 2) {
			has |= (unsigned char)*++p == c;
			continue;
		}
		low = high = (unsigned char)*p;
		if (end - p >= 3 && p[1] == '-') {
			high = (unsigned char)p[2];
			p += 2;
		}
		if (low > high) {
			unsigned char other = low;
			low = high;
			high = other;
		}
		has |= low <= c && c <= high;
	}
	*at = p < end ? p + 1 : p;
	return has != is_not;
}

/* Match one character, and move *at behind what stands for it. */
static int one_matches(const char **at, const char *end, char c)
{
	const char *p = (*at)++;

	switch (*p) {
	case '?':
		return 1;
	case '[':
		return class_has(at, end, (unsigned char)c);
	case '\\':
		if (*at < end)
			p = (*at)++;
		return *p == c;
	default:
		return *p == c;
	}
}

int glob_matches(const char *pattern, size_t pattern_size, const char *text, size_t text_size)
{
	const char *end = pattern + pattern_size;
	const char *text_end = text + text_size;
	const char *star = NULL; /* behind the last one */
	const char *taken = NULL;
	size_t steps = PATTERN_MOST + STEPS_A_BYTE * (text_size < TEXT_MOST ? text_size : TEXT_MOST);

	if (pattern_size > PATTERN_MOST)
		return 0;
	/* What is behind a star at the end matches. */
	while (text < text_end && !(star && star == end)) {
		const char *from = pattern;
		size_t taken_steps;
		int is_match;

		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			taken = text;
			continue;
		}
		is_match = pattern < end && one_matches(&pattern, end, *text);
		taken_steps = 1 + (size_t)(pattern - from);
		if ((!is_match && !star) || taken_steps > steps)
			return 0;
		steps -= taken_steps;
		text = is_match ? text + 1 : ++taken;
		pattern = is_match ? pattern : star;
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}
