/* ww_version: the version of the library that runs. */
#include "weekwheel/version.h"

const char *ww_version(void)
{
	return WW_VERSION;
}
