<?php
// A connection that there is not, or that broke.

declare(strict_types=1);

namespace Weekwheel;

final class ConnectionException extends WeekwheelException
{
	/** The command may have been carried out. Repeat a put that has a key; ask what became of anything else. */
	public bool $isSent = false;

	/** @internal */
	public static function of(string $address, bool $isSent, string $why): self
	{
		$lost = new self($isSent ? "the connection to $address broke: $why. The command may have been carried out: repeat a put with a key"
			: "there is no connection to $address: $why. Start weekwheeld there, or name another address");
		$lost->isSent = $isSent;
		return $lost;
	}
}
