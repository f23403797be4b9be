<?php
// What became of a put.

declare(strict_types=1);

namespace Weekwheel;

final class Put
{
	/**
	 * `result` is inserted, replaced, kept (the job of the key stays), ended (so does the key of one that has ended) or buried.
	 * `version` is that of a put with a mode, a version, debounce or unique.
	 */
	public function __construct(public readonly string $result, public readonly int $id, public readonly ?int $version)
	{
	}
}
