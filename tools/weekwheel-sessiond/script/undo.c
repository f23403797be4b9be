/* Takes back what a script has done, if the server ends it: see script_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheel-sessiond/script/script_internal.h"

struct undo_step {
	struct undo_step *before;
	struct data_key key;
	struct data_entry was;
	struct value *value; /* NULL: there was none */
	char bytes[];
};

struct saved_value {
	struct value *value;
	int failed;
};

static void copy_value(void *pointer, void *context)
{
	const struct value *value = pointer;
	struct saved_value *copy = context;

	copy->value = data_value(value->bytes, value->size);
	copy->failed = !copy->value;
}

static void free_step(struct undo_step *step)
{
	free(step->value);
	free(step);
}

/* Returns a WW_E*. */
static int note_one(struct undo *undo, struct data *data, const struct data_key *key)
{
	struct undo_step *step = malloc(sizeof *step + key->length);
	struct saved_value copy = {0};

	if (!step)
		return WW_ENOMEM;
	*step = (struct undo_step){.before = undo->last, .key = {key->database, step->bytes, key->length}};
	memcpy(step->bytes, key->bytes, key->length);
	(void)data_inspect(data, key, &step->was, copy_value, &copy);
	step->value = copy.value;
	if (copy.failed) {
		free_step(step);
		return WW_ENOMEM;
	}
	undo->last = step;
	undo->count++;
	undo->bytes += key->length + (step->value ? step->value->size : 0);
	return WW_OK;
}

/* The bytes of the present command, and what its keys have. */
static size_t bytes_of(const struct request *request)
{
	size_t bytes = 0;

	for (size_t i = 1; i < request->count; i++)
		bytes += request->arg[i].size;
	return bytes;
}

int undo_note(struct undo *undo, struct request *request)
{
	size_t names = command_names(request->command, request->count);
	size_t before = undo->bytes;

	for (size_t i = 0; i < names; i++) {
		size_t number = (size_t)request->command->first + i * (size_t)request->command->step;
		struct data_key key = request_key(request, number);
		if (request_failed(request, note_one(undo, request->data, &key)))
			return -1;
	}
	if (!request_may_copy(request->conn, undo->bytes - before + names * sizeof(struct undo_step)))
		return -1;
	/* There must be room in the journal's record for the changes and for taking them back. */
	if (!data_takes(request->data, undo->count + names, undo->bytes + bytes_of(request)))
		return request_failed(request, WW_EFULL) ? -1 : 0;
	return 0;
}

/*
 * What has expired by itself does not come back: its end would be reported twice. But what the script had changed, and so kept
 * from that, ends now.
 */
static void take_back(struct undo_step *step, struct data *data)
{
	uint64_t end = step->was.deadline < step->was.end ? step->was.deadline : step->was.end;

	if (step->value && end <= data_now(data) && !data_is_there(data, &step->key)) {
		free(step->value);
		step->value = NULL;
	}
	if (step->value || data_is_there(data, &step->key))
		data_undo(data, &step->key, step->value, &step->was);
	step->value = NULL;
}

void undo_all(struct undo *undo, struct data *data)
{
	for (struct undo_step *step = undo->last; step; step = step->before)
		take_back(step, data);
	undo_forget(undo);
}

void undo_forget(struct undo *undo)
{
	struct undo_step *before;

	for (struct undo_step *step = undo->last; step; step = before) {
		before = step->before;
		free_step(step);
	}
	*undo = (struct undo){0};
}
