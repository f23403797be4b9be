/* Keeps the texts of scripts for EVALSHA, up to a number. */
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/base/seeded.h"
#include "tools/weekwheel-sessiond/script/script_internal.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)

enum { SCRIPTS_MOST = 1000 };

struct cached {
	UT_hash_handle hh;
	char name[SCRIPT_NAME];
	size_t size;
	char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The first is the one used longest ago. */
static struct cached *scripts;

void cache_name(const char *text, size_t size, char name[SCRIPT_NAME])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char digest[EVP_MAX_MD_SIZE] = {0};

	(void)EVP_Digest(text, size, digest, NULL, EVP_sha1(), NULL);
	for (int i = 0; i < SCRIPT_NAME / 2; i++) {
		name[2 * i] = digits[digest[i] >> 4];
		name[2 * i + 1] = digits[digest[i] & 15];
	}
	name[SCRIPT_NAME - 1] = 0;
}

/* Find it, as the one used last. The lock is held. */
static struct cached *use(const char name[SCRIPT_NAME])
{
	struct cached *found;

	HASH_FIND(hh, scripts, name, SCRIPT_NAME - 1, found);
	if (!found)
		return NULL;
	HASH_DEL(scripts, found);
	HASH_ADD(hh, scripts, name, SCRIPT_NAME - 1, found);
	if (found->hh.tbl)
		return found;
	free(found);
	return NULL;
}

int cache_find(const char name[SCRIPT_NAME], struct sandbox_script *script)
{
	const struct cached *found;
	char *text = NULL;

	pthread_mutex_lock(&lock);
	found = use(name);
	if (found && (text = malloc(found->size + 1))) {
		memcpy(text, found->text, found->size);
		*script = (struct sandbox_script){name, text, found->size};
	}
	pthread_mutex_unlock(&lock);
	return text != NULL;
}

int cache_has(const char name[SCRIPT_NAME])
{
	int is_there;

	pthread_mutex_lock(&lock);
	is_there = use(name) != NULL;
	pthread_mutex_unlock(&lock);
	return is_there;
}

static void drop(struct cached *old)
{
	HASH_DEL(scripts, old);
	free(old);
}

int cache_add(const struct sandbox_script *script)
{
	struct cached *made = malloc(sizeof *made + script->size);
	int is_added;

	if (!made)
		return -1;
	memcpy(made->name, script->name, SCRIPT_NAME);
	made->size = script->size;
	memcpy(made->text, script->text, script->size);
	pthread_mutex_lock(&lock);
	/* Another thread may have added it meanwhile. */
	is_added = use(script->name) != NULL;
	if (is_added) {
		free(made);
	} else {
		if (HASH_COUNT(scripts) >= SCRIPTS_MOST)
			drop(scripts);
		HASH_ADD(hh, scripts, name, SCRIPT_NAME - 1, made);
		is_added = made->hh.tbl != NULL;
		if (!is_added)
			free(made);
	}
	pthread_mutex_unlock(&lock);
	return is_added ? 0 : -1;
}

void cache_clear(void)
{
	pthread_mutex_lock(&lock);
	while (scripts)
		drop(scripts);
	pthread_mutex_unlock(&lock);
}
