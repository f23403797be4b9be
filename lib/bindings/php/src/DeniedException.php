<?php
// A token is missing, or lacks a right.

declare(strict_types=1);

namespace Weekwheel;

/** The token does not grant this, or none was given. */
final class DeniedException extends WeekwheelException
{
}
