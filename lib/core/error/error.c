#include "weekwheel/error.h"

const char *ww_strerror(int error)
{
	switch (error) {
	case WW_OK:
		return "All went well; there is nothing to do.";
	case WW_EINVAL:
		return "An argument is not allowed: check for NULL, fill a configuration with its ..._config_default "
		       "before changing it, and compare each value with the range that the function's header names.";
	case WW_ENOMEM:
		return "No memory was left: free some, or give the allocator more, and call again.";
	case WW_ERANGE:
		return "The time lies beyond the horizon of a bounded wheel: choose an earlier one, add a level, or "
		       "create the wheel without WW_WHEEL_BOUNDED.";
	case WW_EOVERFLOW:
		return "The time lies beyond the last one, which is WW_TIME_MAX for a wheel, WW_CLOCK_MAX for a clock and "
		       "WW_DRIVER_TIME_MAX for a driver and what is upon it: pass a smaller delay or an earlier "
		       "deadline.";
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
		return "The timer has fired, was cancelled or replaced, or never was, or the lease has ended: forget its handle, "
		       "version or token.";
	case WW_ESYSTEM:
		return "The system refused a thread, a file descriptor or random numbers: raise the limits (ulimit -u, "
		       "ulimit -n) or close some, see that getrandom is allowed, and call again.";
	case WW_ENOTFOUND:
		return "There is no such job or tube: it has ended, or its id, key or name is another.";
	case WW_EINUSE:
		return "Somebody else has it: a directory belongs to one process, a job to one lease; end that one first.";
	case WW_EDENIED:
		return "The system does not permit it: see that the directory exists and may be read and written; of a server, "
		       "see the user, the password and their rights, and that it is no replica.";
	case WW_EFULL:
		return "The disk or the quota is full, or the server's memory: make room and call again; nothing has changed.";
	case WW_EIO:
		return "A file could not be read or written, or a server not be reached: look whether the disk is full or broken, or "
		       "whether the server runs; the log says more.";
	case WW_EVERSION:
		return "A file was written by a later version: open it with that one, or export and import it.";
	case WW_ETOOBIG:
		return "The body is longer than the configuration allows: raise body_max, or store it elsewhere.";
	case WW_EAGAIN:
		return "The server is not ready for the moment, it is loading, electing or busy: call again; nothing has changed.";
	default:
		return "This number is no error of weekwheel: pass what a weekwheel function returned.";
	}
}
