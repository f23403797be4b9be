#ifndef LIB_BASE_SYSTEM_H
#define LIB_BASE_SYSTEM_H

/* What the system says, in the words of error.h. */

#include <errno.h>

#include "weekwheel/error.h"

/* The error for an errno of a call on files. */
static inline int error_of_errno(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case EACCES:
	case EPERM:
	case EROFS:
	case ELOOP:
		return WW_EDENIED;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return WW_EFULL;
	case ENOMEM:
		return WW_ENOMEM;
	default:
		return WW_EIO;
	}
}

#endif
