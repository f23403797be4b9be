#include "weekwheel/error.h"

const char *ww_strerror(int error)
{
	switch (error) {
	case WW_OK:
		return "All went well; there is nothing to do.";
	case WW_EINVAL:
		return "An argument is not allowed: check for NULL and compare each value with the range that the "
		       "function's header names.";
	case WW_ENOMEM:
		return "No memory was left: free some, or give the allocator more, and call again.";
	case WW_ERANGE:
		return "The time lies beyond the horizon of a bounded wheel: choose an earlier one, add a level, or "
		       "create the wheel without WW_WHEEL_BOUNDED.";
	case WW_EOVERFLOW:
		return "The time lies beyond WW_TIME_MAX: pass a smaller delay or an earlier deadline.";
	case WW_EBACKWARDS:
		return "The time lies before the one already reached: pass a clock that never runs backwards.";
	case WW_EBUSY:
		return "A callback is running that may not call this, or something still uses it: call it after the "
		       "callback has returned, and destroy first what was made upon it.";
	case WW_ECORRUPT:
		return "A structure or timer is broken: look for an object freed while its timer was pending, or a "
		       "timer used with another wheel; ww_wheel_check says more.";
	case WW_ECLOSED:
		return "It was stopped and takes nothing any more: make a new one; after a fork, make it in the child.";
	case WW_ESTALE:
		return "The timer has fired, was cancelled or replaced, or never was: forget its handle or version.";
	case WW_ESYSTEM:
		return "The system refused a thread or a file descriptor: raise the limits (ulimit -u, ulimit -n) or close "
		       "some, and call again.";
	default:
		return "This number is no error of weekwheel: pass what a weekwheel function returned.";
	}
}
