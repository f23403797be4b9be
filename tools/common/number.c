/* Reads numbers from digits. */
#include "tools/common/number.h"

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int number_digits(const char **at, const char *end, uint64_t most, uint64_t *number)
{
	uint64_t value = 0;
	int large = 0;

	for (; *at < end && is_digit(**at); ++*at) {
		uint64_t digit = (uint64_t)(**at - '0');

		if (digit > most || value > (most - digit) / 10)
			large = 1;
		else
			value = value * 10 + digit;
	}
	*number = large ? most : value;
	return large ? -1 : 0;
}

int number_fraction(const char **at, const char *end, uint32_t *billionths)
{
	uint32_t unit = 1000000000;
	int more = 0;

	*billionths = 0;
	for (; *at < end && is_digit(**at); ++*at) {
		unit /= 10;
		*billionths += (uint32_t)(**at - '0') * unit;
		more |= !unit && **at != '0';
	}
	return more;
}

int number_whole(const char *text, size_t size, uint64_t least, uint64_t most, uint64_t *number)
{
	const char *at = text;
	uint64_t value;

	if (number_digits(&at, text + size, most, &value) || !size || at != text + size || value < least)
		return -1;
	*number = value;
	return 0;
}

uint64_t number_leading(const char *text, size_t size)
{
	uint64_t number;

	(void)number_digits(&text, text + size, UINT64_MAX, &number);
	return number;
}

/* Read e+05 behind all digits, if it is there. It moves the point. */
static int take_exponent(const char *at, const char *end, long *point)
{
	uint64_t exponent;
	int is_negative;

	if (at == end)
		return 0;
	if (*at != 'e' && *at != 'E')
		return -1;
	at++;
	is_negative = at < end && *at == '-';
	if (at < end && (*at == '-' || *at == '+'))
		at++;
	if (number_whole(at, (size_t)(end - at), 0, NUMBER_PLAIN, &exponent))
		return -1;
	*point += is_negative ? -(long)exponent : (long)exponent;
	return 0;
}

/* Write digits with a point before digits[point]. */
static size_t write_plain(char out[NUMBER_PLAIN], const char *digits, long count, long point)
{
	size_t length = 0;
	long first;
	long last;

	while (count > 0 && count > point && digits[count - 1] == '0')
		count--;
	if (count == 0) /* all of it was 0 */
		point = 1;
	first = point < 1 ? point - 1 : 0;
	last = count > point ? count : point;
	if (last - first >= NUMBER_PLAIN)
		return 0;
	for (long i = first; i < last; i++) {
		if (i == point)
			out[length++] = '.';
		out[length++] = (char)(i >= 0 && i < count ? digits[i] : '0');
	}
	return length;
}

size_t number_plain(char out[NUMBER_PLAIN], const char *text, size_t size)
{
	char digits[NUMBER_PLAIN];
	const char *end = text + size;
	long count = 0;
	long point = -1;

	for (; text < end && (is_digit(*text) || (*text == '.' && point < 0 && count)); text++)
		if (*text == '.')
			point = count;
		else if (count == NUMBER_PLAIN)
			return 0;
		else
			digits[count++] = *text;
	if (count == 0 || point == count)
		return 0;
	if (point < 0)
		point = count;
	return take_exponent(text, end, &point) ? 0 : write_plain(out, digits, count, point);
}

int number_seconds(const char *text, size_t size, uint64_t most, uint64_t *ns)
{
	const char *at = text;
	const char *end = text + size;
	const char *fraction;
	uint64_t seconds;
	uint32_t rest = 0;

	if (number_digits(&at, end, most, &seconds) || at == text)
		return -1;
	if (at < end && *at == '.') {
		fraction = ++at;
		(void)number_fraction(&at, end, &rest);
		if (at == fraction)
			return -1;
	}
	if (at != end)
		return -1;
	*ns = seconds * 1000000000 + rest;
	return 0;
}

int number_hex(char digit)
{
	const char letter = (char)(digit | 0x20);

	if (is_digit(digit))
		return digit - '0';
	return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}
