/* What every call of a session map begins and ends with, and how the map calls its owner's functions. */
#include "lib/core/session/session_internal.h"

/* ---- What every call begins and ends with */

/* This thread is in a look, and has a shard's lock. Every call asks: the model makes that one load. */
static _Thread_local int looking __attribute__((tls_model("initial-exec")));

void ww_session_set_looking(int is)
{
	looking = is;
}

int ww_session_is_looking(void)
{
	return looking;
}

int ww_session_refuses(const struct ww_session *session)
{
	if (!session)
		return WW_EINVAL;
	return looking ? WW_EBUSY : ww_driver_refuses(session->driver);
}

int ww_session_seek(struct ww_session *session, const void *key, size_t length, struct session_sought *sought)
{
	int error = session_key_refused(key, length);

	if (!error)
		error = ww_session_refuses(session);
	if (!error)
		*sought = session_seek(session, key, length, 0);
	return error;
}

int ww_session_enter(struct ww_session *session, const void *key, size_t length, struct session_sought *sought)
{
	int error = session_key_refused(key, length);

	if (!error)
		error = ww_session_refuses(session);
	if (error)
		return error;
	*sought = session_seek(session, key, length, 0);
	ww_source_lock(sought->shard->source);
	if (!session->closing) {
		/* The line comes from memory while the clock is read. */
		table_prefetch(&sought->shard->table, sought->hash);
		sought->now = ww_driver_time(session->driver);
		return WW_OK;
	}
	ww_source_unlock(sought->shard->source);
	return WW_ECLOSED;
}

/* ---- Calling the map's functions */

void ww_session_call_look(ww_look_fn *look, void *value, void *context)
{
	int cancel;

	/* If the thread were cancelled in it, the shard would stay locked. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ww_session_set_looking(1);
	look(value, context);
	ww_session_set_looking(0);
	(void)pthread_setcancelstate(cancel, &cancel);
}

/* The value that gone is called for in this thread; 0: none. */
static _Thread_local uint64_t gone_deadline;

int ww_session_gone_deadline(uint64_t *ns)
{
	if (!ns)
		return WW_EINVAL;
	if (!gone_deadline)
		return WW_ENOTFOUND;
	*ns = gone_deadline;
	return WW_OK;
}

void ww_session_report(
    struct ww_session *session, const void *key, size_t length, void *value, enum ww_gone why, uint64_t deadline)
{
	uint64_t outer = gone_deadline;
	struct inside here;
	int cancel;

	if (!session->config.gone)
		return;
	ww_inside_enter(&here, session);
	/* If the thread were cancelled in gone, the value and the memory of its key would be lost. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	gone_deadline = deadline;
	session->config.gone(session, key, length, value, why, session->config.user);
	gone_deadline = outer;
	(void)pthread_setcancelstate(cancel, &cancel);
	ww_inside_leave(&here);
}
