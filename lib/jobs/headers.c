/* The text of a job's headers: written, read and checked. */
#include "lib/jobs/headers.h"

#include <string.h>
#include <strings.h>

#include "weekwheel/jobs.h"

/* Between name and value. */
static const char colon[] = ": ";

enum { COLON = sizeof colon - 1 };

static int is_letter_or_digit(char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

static int is_name(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!is_letter_or_digit(name[i]) && (!name[i] || !strchr("!#$%&'*+-.^_`|~", name[i])))
			return 0;
	return length > 0;
}

static int is_value(const char *value, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (value[i] < ' ' || value[i] > '~')
			return 0;
	return length == 0 || (value[0] != ' ' && value[length - 1] != ' ');
}

/* Whether one has this name. Stores how many they are. */
static int has_name(const char *headers, size_t length, const struct ww_job_header *header, int *count)
{
	struct ww_job_header other;
	size_t at = 0;
	int found = 0;

	for (*count = 0; ww_job_headers_next(headers, length, &at, &other); ++*count)
		found |= other.name_length == header->name_length &&
		         strncasecmp(other.name, header->name, other.name_length) == 0;
	return found;
}

int ww_job_headers_add(char *headers, size_t *length, const struct ww_job_header *header)
{
	int count;

	if (!headers || !length || !header || !header->name || (header->value_length && !header->value))
		return WW_EINVAL;
	/* First of all: so a sum of lengths does not overflow, and no text of megabytes is read. */
	if (header->name_length > WW_JOB_HEADERS_MAX || header->value_length > WW_JOB_HEADERS_MAX)
		return WW_ETOOBIG;
	if (!is_name(header->name, header->name_length) || !is_value(header->value, header->value_length) ||
	    has_name(headers, *length, header, &count))
		return WW_EINVAL;
	if (count == WW_JOB_HEADERS || *length > WW_JOB_HEADERS_MAX ||
	    header->name_length + COLON + header->value_length + 1 > WW_JOB_HEADERS_MAX - *length)
		return WW_ETOOBIG;
	char *to = headers + *length;
	for (size_t i = 0; i < header->name_length; i++)
		*to++ = (char)(header->name[i] | (header->name[i] >= 'A' && header->name[i] <= 'Z' ? 0x20 : 0));
	to = (char *)memcpy(to, colon, COLON) + COLON;
	if (header->value_length)
		memcpy(to, header->value, header->value_length);
	to[header->value_length] = '\n';
	*length = (size_t)(to + header->value_length + 1 - headers);
	return WW_OK;
}

int ww_job_headers_next(const char *headers, size_t length, size_t *at, struct ww_job_header *header)
{
	const char *name, *colon_at, *end;

	if (!headers || !at || !header || *at >= length)
		return 0;
	name = headers + *at;
	end = memchr(name, '\n', length - *at);
	colon_at = end ? memchr(name, ':', (size_t)(end - name)) : NULL;
	if (!colon_at || end - colon_at < COLON)
		return 0;
	*header =
	    (struct ww_job_header){name, (size_t)(colon_at - name), colon_at + COLON, (size_t)(end - colon_at - COLON)};
	*at = (size_t)(end + 1 - headers);
	return 1;
}

int ww_job_headers_find(const char *headers, size_t length, const char *name, struct ww_job_header *header)
{
	size_t size = name ? strlen(name) : 0;
	struct ww_job_header one;
	size_t at = 0;

	if (!header)
		return WW_EINVAL;
	while (ww_job_headers_next(headers, length, &at, &one))
		if (one.name_length == size && strncasecmp(one.name, name, size) == 0) {
			*header = one;
			return WW_OK;
		}
	return WW_ENOTFOUND;
}

/* What is written again must be the same. */
int ww_job_headers_are_sound(const char *headers, size_t length)
{
	char again[WW_JOB_HEADERS_MAX];
	struct ww_job_header header;
	size_t written = 0;
	size_t at = 0;

	if (length == 0)
		return 1;
	if (!headers || length > WW_JOB_HEADERS_MAX)
		return 0;
	while (ww_job_headers_next(headers, length, &at, &header))
		if (ww_job_headers_add(again, &written, &header) != WW_OK)
			return 0;
	return written == length && memcmp(again, headers, length) == 0;
}
