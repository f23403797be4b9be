<?php
// The server takes nothing for the moment.

declare(strict_types=1);

namespace Weekwheel;

/** Its memory, its disk or a bound is full, or it is about to end. Try again later. */
final class BusyException extends WeekwheelException
{
}
