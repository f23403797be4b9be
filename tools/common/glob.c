/* Matches patterns. After a mismatch only the last star tries again: the match of an earlier one need not change. */
#include "tools/common/glob.h"

#include <string.h>

/* A pattern must not make other clients wait: one that is longer, or takes more steps, matches nothing. */
enum { PATTERN_MOST = 4096, STEPS_A_BYTE = 4, TEXT_MOST = 65536 };

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

struct match {
	const char *pattern;
	const char *end;
	const char *text;
	const char *text_end;
	const char *star;  /* behind the last one; NULL: none yet */
	const char *taken; /* where the text goes on behind what that star stands for */
	size_t steps;      /* that it may still take */
};

static void count_steps(struct match *match, size_t steps)
{
	match->steps = steps < match->steps ? match->steps - steps : 0;
}

/* Return how many characters stand for themselves from here on. */
static size_t count_plain(const char *pattern, const char *end)
{
	const char *at = pattern;

	while (at < end && *at != '*' && *at != '?' && *at != '[' && *at != '\\')
		at++;
	return (size_t)(at - pattern);
}

/*
 * The star stands for all before `taken`, or more: go on where the plain characters behind it are found next. At the end of the
 * pattern they can only be at the end of the text. Returns 0: nowhere.
 */
static int seek(struct match *match)
{
	size_t size = count_plain(match->star, match->end);
	size_t room = (size_t)(match->text_end - match->taken);

	if (size > room)
		return 0;
	if (size > 0 && match->star + size == match->end) {
		match->taken = match->text_end - size;
		if (memcmp(match->taken, match->star, size) != 0)
			return 0;
	} else if (size > 0) {
		match->taken = memmem(match->taken, room, match->star, size);
		if (!match->taken)
			return 0;
	}
	match->text = match->taken + size;
	match->pattern = match->star + size;
	count_steps(match, 1 + size);
	return 1;
}

/* Take a character of the text, or a star. Returns 0: it does not match. */
static int take_one(struct match *match)
{
	const char *from = match->pattern;

	if (from < match->end && *from == '*') {
		match->star = from + 1;
		match->taken = match->text;
		return seek(match);
	}
	if (from < match->end && one_matches(&match->pattern, match->end, *match->text)) {
		match->text++;
		count_steps(match, 1 + (size_t)(match->pattern - from));
		return 1;
	}
	/* Also a class that does not match was read to its end. */
	count_steps(match, 1 + (size_t)(match->pattern - from));
	if (!match->star)
		return 0;
	match->taken++;
	return seek(match);
}

static int matches(struct match *match)
{
	/* What is behind a star at the end matches. */
	while (match->text < match->text_end && match->star != match->end)
		if (!take_one(match) || match->steps == 0)
			return 0;
	while (match->pattern < match->end && *match->pattern == '*')
		match->pattern++;
	return match->pattern == match->end;
}

int glob_matches_count(const char *pattern, size_t pattern_size, const char *text, size_t text_size, size_t *steps)
{
	const size_t most = PATTERN_MOST + STEPS_A_BYTE * (text_size < TEXT_MOST ? text_size : TEXT_MOST);
	struct match match = {.pattern = pattern,
	    .end = pattern + pattern_size,
	    .text = text,
	    .text_end = text + text_size,
	    .steps = most};
	int is_match = pattern_size <= PATTERN_MOST && matches(&match);

	*steps += most - match.steps;
	return is_match;
}

int glob_matches(const char *pattern, size_t pattern_size, const char *text, size_t text_size)
{
	size_t steps = 0;

	return glob_matches_count(pattern, pattern_size, text, text_size, &steps);
}
