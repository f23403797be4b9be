<?php
// A job that this process has reserved.

declare(strict_types=1);

namespace Weekwheel;

/**
 * Nobody else gets the job before its time to run is up; touch begins that anew. End it by delete, release or bury: a
 * NotFoundException says that it was too late. It has a connection to itself; when that breaks, the lease ends with it.
 */
final class Lease
{
	private const REPORT_MOST = 4096;

	private ?Wire $wire;
	/** The server refused something: it may remember the delivery with this connection, which gets no other job then. */
	private bool $isDoubtful = false;
	private bool $isDone = false;

	/** @internal */
	public function __construct(private readonly Jobs $jobs, Wire $wire, public readonly int $id, private ?string $tube, public readonly string $body,
		/** What the job has beside its body, the names in lower case. */
		public readonly array $headers)
	{
		$this->wire = $wire;
	}

	/** The tube that it is from. */
	public function tube(): string
	{
		return $this->tube ??= $this->stat()['tube'];
	}

	/** The body as JSON: arrays and scalars. */
	public function json(): mixed
	{
		return json_decode($this->body, true, 512, JSON_THROW_ON_ERROR);
	}

	/** It is done. */
	public function delete(): void
	{
		$this->end(['DELETED'], "delete $this->id");
	}

	/** It failed, and comes again after its own backoff, or after `delay`. Returns true if that was its last attempt: it is buried. */
	public function release(int|float|null $delay = null, ?string $reason = null, ?int $priority = null): bool
	{
		$when = $delay === null ? '-' : Words::seconds($delay, 'delay');
		$command = "release-job $this->id {$this->priority($priority)} $when " . Words::reason($reason);
		return $this->end(['RELEASED', 'BURIED'], $command) === 'BURIED';
	}

	/** Put it aside until somebody kicks it. */
	public function bury(?string $reason = null, ?int $priority = null): void
	{
		$this->end(['BURIED'], "bury-job $this->id {$this->priority($priority)} " . Words::reason($reason));
	}

	/** Its time to run begins anew. */
	public function touch(): void
	{
		try {
			$this->ask(['TOUCHED'], "touch $this->id");
		} catch (NotFoundException $late) {
			$this->wire = null;
			throw $late;
		}
	}

	/** Say something of this run, for the history of a job that was put with `keep`. The last 4096 bytes count. */
	public function report(string $said): void
	{
		$said = substr($said, -self::REPORT_MOST);
		$this->ask(['REPORTED'], "report $this->id " . strlen($said), $said);
	}

	/** The job's numbers. */
	public function stat(): array
	{
		return Words::readStats($this->ask(['OK'], "stats-job $this->id")[1]);
	}

	/** What the server lists of the job. */
	public function info(): array
	{
		return Words::readPage($this->ask(['OK'], "list-delayed id=$this->id")[1])[0] ?? throw new NotFoundException("there is no job $this->id any more");
	}

	/** Whether it was deleted, released or buried here, or is known to be somebody else's by now. */
	public function hasEnded(): bool
	{
		return $this->wire === null;
	}

	/** Whether it was deleted, released or buried here. */
	public function isDone(): bool
	{
		return $this->isDone;
	}

	/**
	 * Whether a command about it is under way.
	 * @internal
	 */
	public function isBusy(): bool
	{
		return $this->wire !== null && $this->wire->isBusy;
	}

	private function priority(?int $given): string
	{
		return Words::whole($given ?? $this->stat()['pri'], 'priority');
	}

	private function end(array $expected, string $command): string
	{
		[[$word]] = $this->ask($expected, $command);
		$this->isDone = true;
		$wire = $this->wire;
		$this->wire = null;
		if (!$this->isDoubtful)
			$this->jobs->give($wire);
		return $word;
	}

	private function ask(array $expected, string $command, ?string $body = null): array
	{
		if ($this->wire === null)
			throw new NotFoundException("job $this->id has ended: it was deleted, released or buried before, or its time to run had passed");
		try {
			return $this->wire->ask($expected, $command, null, $body);
		} catch (ConnectionException $lost) {
			$this->wire = null;
			throw $lost;
		} catch (WeekwheelException $refused) {
			$this->isDoubtful = true;
			throw $refused;
		}
	}
}
