/* Compares sessions that are copied with those of the target, and sets or deletes them there. */
#include "tools/weekwheel/sessions/moved.h"

#include "lib/base/time.h"

/* Times that a batch is begun anew because of a change at the target. */
enum { TRIES = 100 };

/* Of two deadlines of the same session, which one was used last? None is later than any. */
static int is_later(const struct moved *moved, int64_t deadline, int64_t other)
{
	return other != MOVED_NO_DEADLINE && (deadline == MOVED_NO_DEADLINE || deadline - other > moved->slack);
}

/* ---- To the target */

/* What is at the target of a key. */
struct there {
	int64_t deadline;
	uint64_t hash;
};

static void ask_there(struct moved *moved, uint32_t id)
{
	size_t size;
	const char *key = keys_text(moved->keys, id, &size);

	peer_ask(&moved->target, "WATCH %b", key, size);
	peer_ask(&moved->target, "GET %b", key, size);
	peer_ask(&moved->target, "PEXPIRETIME %b", key, size);
}

static int read_there(struct moved *moved, struct there *there)
{
	redisReply *value, *deadline;
	int failed;

	if (peer_done(&moved->target))
		return -1;
	value = peer_good(&moved->target);
	deadline = value ? peer_good(&moved->target) : NULL;
	failed = !deadline;
	if (!failed) {
		there->deadline = value->type == REDIS_REPLY_STRING ? moved_number(deadline) : MOVED_NO_KEY;
		there->hash = value->type == REDIS_REPLY_STRING ? moved_hash(value) : 0;
	}
	freeReplyObject(value);
	freeReplyObject(deadline);
	return failed;
}

/* Whether a session that is not at the target was deleted there: it was seen, and its time was not over. */
static int is_deleted(const struct known *known)
{
	return known->there == MOVED_NO_DEADLINE ||
	       (known->there >= 0 && known->there > (int64_t)(time_now(CLOCK_REALTIME) / 1000000));
}

/* Whether the source's counts. What is at the target already, or was used there last, stays. */
static int decide(struct moved *moved, const struct candidate *one, const struct there *there)
{
	const struct known *known = &moved->known[one->key];

	if (there->deadline == MOVED_NO_KEY)
		return !is_deleted(known);
	if (there->hash == one->hash && moved_is_same(moved, there->deadline, one->deadline))
		return 0;
	if (known->there != MOVED_NO_KEY && !known->is_other && there->hash == known->hash &&
	    there->deadline == known->there)
		return 1;
	return is_later(moved, one->deadline, there->deadline);
}

static void ask_set(struct moved *moved, const struct candidate *one)
{
	size_t size;
	const char *key = keys_text(moved->keys, one->key, &size);

	if (one->deadline >= 0)
		peer_ask(&moved->target, "SET %b %b PXAT %lld", key, size, one->value->str, one->value->len,
		    (long long)one->deadline);
	else
		peer_ask(&moved->target, "SET %b %b", key, size, one->value->str, one->value->len);
	peer_ask(&moved->target, "PEXPIRETIME %b", key, size);
}

/* Read the answers of a transaction. Returns 0, 1 if another client has changed a key, or -1 after a message. */
static int end_transaction(struct moved *moved, size_t commands, redisReply **reply)
{
	int failed = 0;

	for (size_t i = 0; i < commands + 1 && !failed; i++)
		failed = peer_done(&moved->target);
	*reply = failed ? NULL : peer_good(&moved->target);
	if (!*reply)
		return -1;
	if ((*reply)->type == REDIS_REPLY_NIL)
		return 1;
	return (*reply)->type == REDIS_REPLY_ARRAY && (*reply)->elements == commands
	           ? 0
	           : peer_fail(&moved->target, "this is not a server of sessions");
}

static void note_set(struct moved *moved, const struct candidate *one, int64_t there)
{
	struct known *known = &moved->known[one->key];

	*known = (struct known){one->hash, one->deadline, there, moved->pass, 0};
}

/* An equal one may be from an earlier import: then it goes when it goes at the source. */
static void note_kept(struct moved *moved, const struct candidate *one, const struct there *there)
{
	struct known *known = &moved->known[one->key];
	const int is_same = there->hash == one->hash && moved_is_same(moved, there->deadline, one->deadline);
	int64_t seen = there->deadline;

	moved->same += (uint64_t)is_same;
	moved->kept += (uint64_t)!is_same;
	/* What was deleted stays so while the source goes on using it. */
	if (seen == MOVED_NO_KEY)
		seen = is_later(moved, one->deadline, known->there) ? one->deadline : known->there;
	note_set(moved, one, seen);
	known->is_other = !is_same;
}

/* Set the sessions that have changed. As end_transaction. */
static int set_some(struct moved *moved, size_t sets)
{
	redisReply *reply = NULL;
	size_t at = 0;
	int failed;

	peer_ask(&moved->target, "MULTI");
	for (size_t i = 0; i < moved->count; i++)
		if (moved->candidates[i].sets)
			ask_set(moved, &moved->candidates[i]);
	peer_ask(&moved->target, "EXEC");
	failed = end_transaction(moved, 2 * sets, &reply);
	for (size_t i = 0; i < moved->count && !failed; i++) {
		const struct candidate *one = &moved->candidates[i];
		if (!one->sets)
			continue;
		if (reply->element[at]->type == REDIS_REPLY_ERROR)
			failed = peer_fail(&moved->target, reply->element[at]->str);
		else
			note_set(moved, one, moved_number(reply->element[at + 1]));
		moved->set += !failed;
		at += 2;
	}
	freeReplyObject(reply);
	return failed;
}

/* Compare the candidates with what is there, and set them. As end_transaction. */
static int try_batch(struct moved *moved)
{
	struct there there;
	size_t sets = 0;
	int failed = 0;

	for (size_t i = 0; i < moved->count; i++)
		ask_there(moved, moved->candidates[i].key);
	for (size_t i = 0; i < moved->count && !failed; i++) {
		struct candidate *one = &moved->candidates[i];
		failed = read_there(moved, &there);
		one->sets = !failed && decide(moved, one, &there);
		sets += (size_t)one->sets;
		if (!failed && !one->sets)
			note_kept(moved, one, &there);
	}
	if (failed)
		return -1;
	if (sets && !moved->dry_run)
		return set_some(moved, sets);
	for (size_t i = 0; i < moved->count; i++)
		if (moved->candidates[i].sets)
			note_set(moved, &moved->candidates[i], MOVED_NO_KEY);
	moved->set += sets;
	peer_ask(&moved->target, "UNWATCH");
	return peer_done(&moved->target);
}

int moved_put(struct moved *moved)
{
	int result = moved->count ? 1 : 0;

	for (int i = 0; i < TRIES && result > 0; i++) {
		const struct moved was = {.same = moved->same, .kept = moved->kept};
		result = try_batch(moved);
		if (result > 0) {
			moved->same = was.same;
			moved->kept = was.kept;
		}
	}
	if (result > 0)
		(void)peer_fail(&moved->target, "its sessions change too often to be compared; try again");
	moved_drop(moved);
	return result ? -1 : 0;
}

/* ---- What has gone at the source */

/* Delete it at the target, if it has not changed there since. */
static int remove_one(struct moved *moved, uint32_t id)
{
	struct known *known = &moved->known[id];
	redisReply *reply = NULL;
	struct there there;
	size_t size;
	const char *key = keys_text(moved->keys, id, &size);
	int gone = 0;
	int failed = moved_is_gone(moved, key, size, &gone);

	if (failed || !gone)
		return failed;
	ask_there(moved, id);
	failed = read_there(moved, &there);
	if (failed)
		return -1;
	peer_ask(&moved->target, "MULTI");
	if (there.deadline == known->there && there.hash == known->hash && !moved->dry_run)
		peer_ask(&moved->target, "DEL %b", key, size);
	else
		gone = 0;
	peer_ask(&moved->target, "EXEC");
	failed = end_transaction(moved, (size_t)gone, &reply);
	freeReplyObject(reply);
	moved->removed += (uint64_t)(gone && !failed);
	known->pass = 0;
	known->there = MOVED_NO_KEY;
	return failed < 0 ? -1 : 0;
}

int moved_remove(struct moved *moved)
{
	size_t count = keys_count(moved->keys);

	for (uint32_t i = 0; i < count && !moved_is_stopped(); i++) {
		struct known *known = &moved->known[i];
		if (!known->pass || known->pass == moved->pass)
			continue;
		if (known->there == MOVED_NO_KEY || known->is_other)
			*known = (struct known){.there = MOVED_NO_KEY};
		else if (remove_one(moved, i))
			return -1;
	}
	return 0;
}
