<?php
// A schedule that the server does not understand.

declare(strict_types=1);

namespace Weekwheel;

final class ScheduleException extends WeekwheelException
{
	/** What is wrong: cron, zone or name. */
	public string $field = '';
	/** The byte of it at which it is wrong. */
	public int $byte = 0;

	/** @internal */
	public static function at(string $field, int $byte, string $reason): self
	{
		$wrong = new self("$field is wrong at byte $byte: $reason", 'BAD_SCHEDULE');
		[$wrong->field, $wrong->byte] = [$field, $byte];
		return $wrong;
	}
}
