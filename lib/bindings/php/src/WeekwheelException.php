<?php
// What can go wrong, with the server's own word for it.

declare(strict_types=1);

namespace Weekwheel;

class WeekwheelException extends \RuntimeException
{
	private const MEANINGS = [
		'NOT_FOUND' => [NotFoundException::class, 'there is none, or another connection has it'],
		'RESERVED' => [NotFoundException::class, 'a worker runs the job: wait until that ends, or delete it'],
		'STALE' => [StaleException::class, 'it has another version by now: look at it, and try again with that'],
		'DENIED' => [DeniedException::class, 'the server wants a token with the right to do this: look at its --auth-file'],
		'OUT_OF_MEMORY' => [BusyException::class, 'the server is full: it takes jobs again when some are done'],
		'INTERNAL_ERROR' => [BusyException::class, "the server's disk or Redis takes nothing now: its log says why"],
		'DRAINING' => [BusyException::class, 'the server takes no new jobs: try again after its restart'],
		'JOB_TOO_BIG' => [self::class, 'make the body shorter, or start the server with a larger --max-job-size'],
		'UNKNOWN_COMMAND' => [self::class, 'the server does not know this: it may be beanstalkd, or older'],
		'BAD_FORMAT' => [self::class, 'an argument is out of range, or the server is older; where it delivers over HTTP, a job has to be a request'],
	];

	/** `word` is the server's, such as STALE, or '' if the server has said nothing. */
	final public function __construct(string $message, public readonly string $word = '', ?\Throwable $previous = null)
	{
		parent::__construct($message, 0, $previous);
	}

	/**
	 * The exception for an answer that was not expected.
	 * @internal
	 */
	public static function ofAnswer(string $command, string $line): self
	{
		$words = explode(' ', $line, 4);
		if ($words[0] === 'BAD_SCHEDULE' && count($words) === 4)
			return ScheduleException::at($words[1], (int)$words[2], rawurldecode($words[3]));
		[$class, $meaning] = self::MEANINGS[$words[0]] ?? [self::class, 'this package does not know the answer'];
		return new $class(strtok($command, ' ') . ": $meaning ($line)", $words[0]);
	}
}
