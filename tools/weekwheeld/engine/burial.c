/* Writes a line of the log for each job that is buried, up to a bound a second. */
#include <string.h>

#include "tools/weekwheeld/engine/server.h"

enum { LINES = 10 };

/* Return 1 if this second has room for one more line. */
static int may_log(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t second;
	static unsigned logged;
	uint64_t now = uv_hrtime() / WW_SECOND;
	int may;

	pthread_mutex_lock(&lock);
	if (now != second)
		logged = 0;
	second = now;
	may = logged < LINES;
	logged += (unsigned)may;
	pthread_mutex_unlock(&lock);
	return may;
}

void burial_log(struct ww_jobs *jobs, uint64_t id)
{
	const struct ww_job_ref job = {.id = id};
	char key[WW_JOB_KEY_MAX + 1];
	char shown[WW_JOB_KEY_MAX + 8] = "";
	struct ww_job_info info;

	if (!may_log()) {
		state_seen(
		    "burials", "more than %d jobs a second are buried: the others have no line of the log", LINES);
		return;
	}
	/* It may be kicked already. */
	if (ww_jobs_peek(jobs, &job, &info, NULL) != WW_OK)
		return;
	memcpy(key, info.key, info.key_length);
	key[info.key_length] = '\0';
	if (info.key_length)
		message_excerpt(shown, sizeof shown, key, info.key_length);
	message_log(MESSAGE_INFO,
	    MESSAGE_FIELDS({"job", NULL, id}, {"tube", info.tube, 0}, {"key", key, 0},
	        {"reserves", NULL, info.reserves}, {"reason", info.error, 0}),
	    "job %llu of the tube %s%s%s is buried (deliveries: %u): %s", (unsigned long long)id, info.tube,
	    *shown ? ", key " : "", shown, info.reserves, *info.error ? info.error : "no reason was given");
}
