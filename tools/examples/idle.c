/* Two sessions in one wheel: each is logged out when it has been idle for too long. */
#include <stdio.h>
#include <weekwheel/weekwheel.h>

struct session { /* an object of yours, with a timer in it */
	const char *user;
	struct ww_timer idle;
};

static void log_out(struct ww_wheel *wheel, struct ww_timer *timer, uint64_t missed)
{
	struct session *session = WW_TIMER_OWNER(timer, struct session, idle);
	printf("%6llu s: %s was idle for too long\n", (unsigned long long)ww_wheel_now(wheel), session->user);
	(void)missed;
}

int main(void)
{
	struct session ada = {"ada", WW_TIMER_INIT(log_out)}, bob = {"bob", WW_TIMER_INIT(log_out)};
	struct ww_wheel *wheel;

	if (ww_wheel_create(&wheel, NULL) != WW_OK) /* NULL: 60 seconds, 60 minutes, 24 hours, 7 days */
		return 1;
	ww_wheel_schedule(wheel, &ada.idle, 1800);        /* in 30 minutes */
	ww_wheel_schedule(wheel, &bob.idle, 6 * 86400);   /* in 6 days */
	ww_wheel_advance(wheel, 900, WW_UNLIMITED, NULL); /* 15 minutes pass */
	ww_wheel_reschedule(wheel, &ada.idle, 1800);      /* a heartbeat: 30 minutes from now */
	for (uint64_t when; ww_wheel_next(wheel, &when) == 1;)
		if (ww_wheel_advance(wheel, when, WW_UNLIMITED, NULL) < 0)
			return 1;
	return ww_wheel_destroy(wheel) == WW_OK ? 0 : 1;
}
