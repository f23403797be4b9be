/* Reads the words of a line of the protocol: numbers, seconds, names of tubes and keys. */
#include "tools/weekwheeld/protocol/words.h"

#include <string.h>

#include "tools/common/number.h"
#include "tools/common/percent.h"
#include "tools/common/tube.h"
#include "weekwheel/driver.h"
#include "weekwheel/jobs.h"

int words_number(struct span word, uint64_t most, uint64_t *number)
{
	return number_whole(word.at, (size_t)(word.end - word.at), 0, most, number);
}

int words_seconds(struct span word, uint64_t most, uint64_t *ns)
{
	const size_t size = (size_t)(word.end - word.at);
	const char *point = memchr(word.at, '.', size);

	if (most > WW_DRIVER_TIME_MAX / WW_SECOND)
		most = WW_DRIVER_TIME_MAX / WW_SECOND;
	return point && word.end - point > 10 ? -1 : number_seconds(word.at, size, most, ns);
}

int words_tube(struct span word, char *tube)
{
	size_t length = (size_t)(word.end - word.at);

	if (!tube_is_name(word.at, length))
		return -1;
	memcpy(tube, word.at, length);
	tube[length] = 0;
	return 0;
}

int words_decode(struct span word, void *bytes, size_t room, size_t *length)
{
	char *out = bytes;
	size_t count = 0;

	while (word.at < word.end) {
		const char *from = word.at;
		char byte = percent_take(&word.at, word.end);

		if ((word.at == from + 1 && !percent_is_plain(*from)) || count == room)
			return -1;
		out[count++] = byte;
	}
	if (count == 0)
		return -1;
	*length = count;
	return 0;
}

int words_is(struct span word, const char *text)
{
	size_t length = (size_t)(word.end - word.at);

	return strlen(text) == length && memcmp(word.at, text, length) == 0;
}

int words_find(struct span word, const char *const *names, int count)
{
	while (--count >= 0 && !words_is(word, names[count]))
		;
	return count;
}

int words_split(struct span line, struct span *words, int room)
{
	int count = 0;

	for (;;) {
		const char *space = memchr(line.at, ' ', (size_t)(line.end - line.at));

		if (count == room)
			return -1;
		words[count].at = line.at;
		words[count].end = space ? space : line.end;
		if (words[count].at == words[count].end)
			return -1;
		count++;
		if (!space)
			return count;
		line.at = space + 1;
	}
}

struct span words_next(struct span *line)
{
	struct span word;
	const char *space;

	while (line->at < line->end && *line->at == ' ')
		line->at++;
	space = memchr(line->at, ' ', (size_t)(line->end - line->at));
	word.at = line->at;
	word.end = space ? space : line->end;
	line->at = word.end;
	return word;
}
