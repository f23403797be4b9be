<?php
// A job or a schedule is not there.

declare(strict_types=1);

namespace Weekwheel;

/** There is none, or another connection has it: its time to run may have passed. */
final class NotFoundException extends WeekwheelException
{
}
