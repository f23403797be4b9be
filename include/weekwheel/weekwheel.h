#ifndef WEEKWHEEL_WEEKWHEEL_H
#define WEEKWHEEL_WEEKWHEEL_H

/* All public headers of libweekwheel at once. */
#include "weekwheel/after.h"
#include "weekwheel/allocator.h"
#include "weekwheel/clock.h"
#include "weekwheel/driver.h"
#include "weekwheel/error.h"
#include "weekwheel/keyed.h"
#include "weekwheel/session.h"
#include "weekwheel/version.h"
#include "weekwheel/wheel.h"

#endif
