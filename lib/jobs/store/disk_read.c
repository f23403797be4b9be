/* Reads the store on disk through its layers. */

#include "lib/jobs/store/disk_internal.h"

/* What an unreadable page held is lost: write nothing any more. An unreadable value is only its caller's error. */
static int judge(struct disk *disk, int error, sqlite3 *connection)
{
	if (error == WW_ECORRUPT && connection && (sqlite3_errcode(connection) & 0xff) == SQLITE_CORRUPT)
		return ww_sqlite_damage(&disk->fault, disk->path);
	return error;
}

int ww_store_disk_get(void *self, enum store_table table, struct store_bytes key, struct store_bytes *value)
{
	struct disk *disk = self;
	const struct store layers[] = {disk->active, disk->frozen};
	struct store_bytes kept;

	for (int i = 0; i < INDEX; i++) {
		if (!layers[i].ops || layers[i].ops->get(layers[i].self, table, key, &kept))
			continue;
		*value = disk_value_of(kept);
		return disk_is_there(kept) ? WW_OK : WW_ENOTFOUND;
	}
	return judge(disk, ww_sqlite_get(&disk->index, table, key, value), disk->index.reader);
}

static int seek_layer(struct disk *disk, int layer, enum store_table table, struct store_bytes from, int back)
{
	const struct store *store = layer == ACTIVE ? &disk->active : &disk->frozen;
	struct walk *walk = &disk->walk[table];
	int error = WW_ENOTFOUND;

	if (layer == INDEX)
		error = (back ? ww_sqlite_before : ww_sqlite_seek)(
		    &disk->index, table, from, &walk->key[layer], &walk->value[layer]);
	else if (store->ops)
		error = (back ? store->ops->before : store->ops->seek)(
		    store->self, table, from, &walk->key[layer], &walk->value[layer]);
	walk->is_there[layer] = !error;
	return error == WW_ENOTFOUND ? WW_OK : layer == INDEX ? judge(disk, error, disk->index.reader) : error;
}

static int next_in_layer(struct disk *disk, int layer, enum store_table table)
{
	const struct store *store = layer == ACTIVE ? &disk->active : &disk->frozen;
	struct walk *walk = &disk->walk[table];
	int error;

	if (layer == INDEX)
		error = ww_sqlite_next(&disk->index, table, &walk->key[layer], &walk->value[layer]);
	else
		error = store->ops->next(store->self, table, &walk->key[layer], &walk->value[layer]);
	walk->is_there[layer] = !error;
	return error == WW_ENOTFOUND ? WW_OK : layer == INDEX ? judge(disk, error, disk->index.reader) : error;
}

/* The layer whose pair comes next; of equal keys the upper one, which hides the others. LAYERS: no pair is left. */
static int first_layer(const struct walk *walk, int back)
{
	int first = LAYERS;

	for (int i = 0; i < LAYERS; i++) {
		if (!walk->is_there[i])
			continue;
		int order = first == LAYERS ? -1 : store_compare(walk->key[i], walk->key[first]);
		if (first == LAYERS || (back ? order > 0 : order < 0))
			first = i;
	}
	return first;
}

/* Leave this key behind in all layers that are at it. */
static int pass(struct disk *disk, enum store_table table, struct store_bytes key, int back)
{
	const struct walk *walk = &disk->walk[table];
	int error = WW_OK;

	for (int i = 0; i < LAYERS && !error; i++) {
		if (!walk->is_there[i] || store_compare(walk->key[i], key) != 0)
			continue;
		error = back ? seek_layer(disk, i, table, key, 1) : next_in_layer(disk, i, table);
	}
	return error;
}

/* Hand out the pair at which the layers are, or the next one that is there. */
static int hand_out(
    struct disk *disk, enum store_table table, int back, struct store_bytes *key, struct store_bytes *value)
{
	struct walk *walk = &disk->walk[table];
	int error = WW_OK;

	while (!error) {
		int layer = first_layer(walk, back);
		if (layer == LAYERS)
			return WW_ENOTFOUND;
		*key = walk->key[layer];
		*value = layer == INDEX ? walk->value[layer] : disk_value_of(walk->value[layer]);
		if (layer == INDEX || disk_is_there(walk->value[layer]))
			return WW_OK;
		error = pass(disk, table, *key, back);
	}
	return error;
}

static int go(struct disk *disk, enum store_table table, struct store_bytes from, int back, struct store_bytes *key,
    struct store_bytes *value)
{
	int error = WW_OK;

	for (int i = 0; i < LAYERS && !error; i++)
		error = seek_layer(disk, i, table, from, back);
	if (!error)
		error = hand_out(disk, table, back, key, value);
	disk->walk[table].last = error ? (struct store_bytes){NULL, 0} : *key;
	disk->walk[table].back = back;
	return error;
}

int ww_store_disk_seek(
    void *self, enum store_table table, struct store_bytes from, struct store_bytes *key, struct store_bytes *value)
{
	return go(self, table, from, 0, key, value);
}

int ww_store_disk_before(
    void *self, enum store_table table, struct store_bytes to, struct store_bytes *key, struct store_bytes *value)
{
	return go(self, table, to, 1, key, value);
}

int ww_store_disk_next(void *self, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	struct disk *disk = self;
	struct walk *walk = &disk->walk[table];
	int error = WW_OK;

	if (!walk->last.data)
		return WW_ENOTFOUND;
	for (int i = 0; walk->back && i < LAYERS && !error; i++)
		error = seek_layer(disk, i, table, walk->last, 0);
	walk->back = 0;
	if (!error)
		error = pass(disk, table, walk->last, 0);
	if (!error)
		error = hand_out(disk, table, 0, key, value);
	walk->last = error ? (struct store_bytes){NULL, 0} : *key;
	return error;
}
