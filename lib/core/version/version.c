#include "weekwheel/version.h"

const char *ww_version(void)
{
	return WW_VERSION;
}
