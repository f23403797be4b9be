#ifndef WEEKWHEEL_WEEKWHEEL_H
#define WEEKWHEEL_WEEKWHEEL_H

/* Every public header at once. */
#include "weekwheel/allocator.h"
#include "weekwheel/error.h"
#include "weekwheel/version.h"
#include "weekwheel/wheel.h"

#endif
