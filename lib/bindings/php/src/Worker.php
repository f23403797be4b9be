<?php
// Running a function for each job.

declare(strict_types=1);

namespace Weekwheel;

/**
 * When the function returns, the job is deleted. When it throws, the job is released for its own backoff, or for a second that
 * doubles with each delivery up to an hour; one without a limit of its own is buried after `attempts` deliveries. What the function
 * itself has deleted, released or buried stays so.
 *
 * With PHP's extension pcntl, which Debian's php-cli has, the job is touched by SIGALRM while the function runs, and SIGTERM and
 * SIGINT end the worker after the job at hand. Without it, touch long jobs yourself.
 */
final class Worker
{
	/** Pauses between attempts to connect again: each is twice as long as the one before. */
	private const FIRST_PAUSE = 0.1, LONGEST_PAUSE = 10;
	/** In seconds. Most jobs end before the first touch, and nothing is asked for them. */
	private const FIRST_TOUCH = 1, TOUCH_MOST = 86400;

	private readonly array $tubes;
	private bool $isStopping = false;

	/**
	 * `poll` is how long a reserve waits, in seconds, and so how late an idle worker ends. It ends by itself after `most` jobs, if
	 * that is not 0. `onError(Throwable, ?Lease)` gets what goes wrong; by default that is logged.
	 */
	public function __construct(private readonly Jobs $jobs, string|array $tubes, private readonly \Closure $act, private readonly int $attempts = 10,
		private readonly bool $touch = true, private readonly int $poll = 1, private readonly int $most = 0, private readonly ?\Closure $onError = null)
	{
		$this->tubes = array_map(Words::tube(...), (array)$tubes);
		array_map(Words::whole(...), [$attempts, $poll, $most], ['attempts', 'poll', 'most']);
	}

	/** Take no more jobs. */
	public function stop(): void
	{
		$this->isStopping = true;
	}

	/**
	 * Work until stop or a signal, or `most` jobs. Returns how many jobs ran. It connects again when a connection is lost, and throws
	 * if the server refuses it.
	 */
	public function run(): int
	{
		$this->isStopping = false;
		$restore = $this->listen();
		try {
			return $this->serve();
		} finally {
			$restore();
		}
	}

	/** Let signals stop it. Returns what undoes that. */
	private function listen(): \Closure
	{
		if (!function_exists('pcntl_async_signals'))
			return static fn() => null;
		$former = array_map(pcntl_signal_get_handler(...), $signals = [SIGTERM, SIGINT, SIGALRM]);
		$wasAsync = pcntl_async_signals(true);
		pcntl_signal(SIGTERM, $this->stop(...));
		pcntl_signal(SIGINT, $this->stop(...));
		return static function () use ($former, $signals, $wasAsync): void {
			array_map(pcntl_signal(...), $signals, $former);
			pcntl_async_signals($wasAsync);
		};
	}

	private function serve(): int
	{
		$pause = self::FIRST_PAUSE;
		for ($count = 0; !$this->isStopping && ($this->most === 0 || $count < $this->most);) {
			try {
				$job = $this->jobs->reserve($this->tubes, $this->poll);
				$pause = self::FIRST_PAUSE;
				if ($job === null)
					continue;
				$count++;
				$this->work($job);
			} catch (ConnectionException | BusyException $error) {
				// The server, its disk or its Redis may be back by and by. A signal ends the pause.
				$this->tell($error, null);
				if (!$this->isStopping)
					usleep((int)($pause * 1e6));
				$pause = min(2 * $pause, self::LONGEST_PAUSE);
			}
		}
		return $count;
	}

	private function work(Lease $job): void
	{
		$this->beginTouching($job);
		try {
			($this->act)($job);
			$failure = null;
		} catch (\Throwable $failure) {
			$this->tell($failure, $job);
		} finally {
			$this->endTouching();
		}
		if ($job->isDone())
			return;
		try {
			$failure === null ? $job->delete() : $this->fail($job, $failure);
		} catch (NotFoundException $late) {
			$this->tell($late, $job);
		}
	}

	/** A job without a backoff or a limit of its own has those of "weekwheel work", and does not come at once for ever. */
	private function fail(Lease $job, \Throwable $failure): void
	{
		['reserves' => $reserves, 'attempts' => $own, 'backoff' => $backoff, 'priority' => $priority] = $job->info();
		$reason = $failure->getMessage() ?: $failure::class;
		if ($this->attempts && !$own && $reserves >= $this->attempts)
			$job->bury($reason, $priority);
		else
			$job->release($backoff ? null : self::pauseAfter($reserves), $reason, $priority);
	}

	/** A second, doubled with each delivery up to an hour. A longer pause is shortened at random by up to a quarter. */
	private static function pauseAfter(int $deliveries): float
	{
		$pause = min(2 ** min(max($deliveries, 1) - 1, 12), 3600);
		return $pause < 4 ? $pause : $pause * (1 - mt_rand() / mt_getrandmax() / 4);
	}

	private function beginTouching(Lease $job): void
	{
		if (!$this->touch || !function_exists('pcntl_alarm'))
			return;
		$every = 0;
		pcntl_signal(SIGALRM, function () use ($job, &$every): void {
			try {
				// The signal may have come in the middle of a command.
				if (!$job->isBusy()) {
					$job->touch();
					$every = $every ?: (int)min(max($job->stat()['ttr'] * 0.4, 1), self::TOUCH_MOST);
				}
				pcntl_alarm($every ?: self::FIRST_TOUCH);
			} catch (WeekwheelException) {
				// The end of the job tells of it.
			}
		});
		pcntl_alarm(self::FIRST_TOUCH);
	}

	private function endTouching(): void
	{
		if ($this->touch && function_exists('pcntl_alarm'))
			pcntl_alarm(0);
	}

	private function tell(\Throwable $error, ?Lease $job): void
	{
		if ($this->onError)
			($this->onError)($error, $job);
		else
			error_log('weekwheel: ' . ($job ? "job $job->id" : 'a worker') . ": {$error->getMessage()}");
	}
}
