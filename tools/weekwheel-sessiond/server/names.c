/* The names of clients: see names.h. */
#include "tools/weekwheel-sessiond/server/names.h"

#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/server/bounds.h"
#include "tools/weekwheel-sessiond/server/server.h"

/* Text without blanks and control characters, as CLIENT LIST requires. */
static int is_plain(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] < '!' || text[i] > '~')
			return 0;
	return 1;
}

const char *names_set(struct conn *conn, char **to, const char *text, size_t size)
{
	char *made = NULL;
	char *old;

	if (size > NAMES_MOST)
		return "cannot be longer than 1024 bytes.";
	if (!is_plain(text, size))
		return "cannot contain spaces, newlines or special characters.";
	if (size > 0) {
		made = malloc(size + 1);
		if (!made)
			return "cannot be kept: there is no memory.";
		memcpy(made, text, size);
		made[size] = 0;
	}
	/* Others may be reading the list. */
	pthread_mutex_lock(&conn->loop->lock);
	old = *to;
	*to = made;
	pthread_mutex_unlock(&conn->loop->lock);
	bounds_count(conn, size);
	bounds_count_out(conn, old ? strlen(old) : 0);
	free(old);
	return NULL;
}

void names_forget(struct conn *conn)
{
	(void)names_set(conn, &conn->names.client, NULL, 0);
	(void)names_set(conn, &conn->names.library, NULL, 0);
	(void)names_set(conn, &conn->names.version, NULL, 0);
}
