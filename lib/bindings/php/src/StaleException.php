<?php
// A job has changed.

declare(strict_types=1);

namespace Weekwheel;

/** It has another version than the one that was named. */
final class StaleException extends WeekwheelException
{
}
