/* The version of the library that runs, and the one whose headers the program was compiled with. */
#include <stdio.h>
#include <weekwheel/weekwheel.h>

int main(void)
{
	printf("weekwheel %s, compiled with %s\n", ww_version(), WW_VERSION);
	return 0;
}
