<?php
// A client of weekwheeld: puts, looks at, moves and reserves jobs.

declare(strict_types=1);

namespace Weekwheel;

/**
 * Lengths of time are seconds. A job is named by its id, a number, or by its key, a string.
 *
 * A WeekwheelException says why the server has not carried out a command; a ConnectionException, also whether it may have. What
 * the server would misread is an InvalidArgumentException, and is not sent.
 */
final class Jobs
{
	private const PAGE = 1000;
	/** Puts that are sent before an answer is read, and bytes. */
	private const BATCH = 100, BATCH_BYTES = 1 << 20;
	/** How long a server is asked to wait at a time. */
	private const WAIT = 60;
	/** What the server says of a put. */
	private const PUT = ['INSERTED', 'REPLACED', 'KEPT', 'ENDED', 'BURIED'];

	private readonly string $address;
	private readonly ?string $token;
	private readonly array $tls;
	/** @var list<Wire> without a command or a job */
	private array $idle = [];

	/**
	 * An address is HOST:PORT, [IPV6]:PORT, tls: and one of these, or unix:PATH. `timeout` is the patience with a silent server.
	 * `tls` has options of PHP's SSL contexts, such as cafile. The defaults are those of the program weekwheel: the environment's
	 * WEEKWHEEL_SERVER, WEEKWHEEL_TOKEN, WEEKWHEEL_TLS_CA, _CERT and _KEY. The first command connects. With a `code` it reserves only jobs up to
	 * this code, or without one.
	 */
	public function __construct(?string $address = null, ?string $token = null, private readonly float $timeout = 10, array $tls = [],
		private readonly ?int $code = null)
	{
		$this->address = $address ?? (getenv('WEEKWHEEL_SERVER') ?: '127.0.0.1:11300');
		Wire::target($this->address);
		$this->token = $token ?? (getenv('WEEKWHEEL_TOKEN') ?: null);
		if ($this->token !== null && !preg_match('/^[!-~]{16,200}$/D', $this->token))
			throw new \InvalidArgumentException('a token is 16 to 200 printable characters without a space');
		if (!($timeout > 0))
			throw new \InvalidArgumentException("timeout: $timeout: expected seconds, more than 0");
		$this->tls = $tls + array_filter(['cafile' => getenv('WEEKWHEEL_TLS_CA'), 'local_cert' => getenv('WEEKWHEEL_TLS_CERT'),
			'local_pk' => getenv('WEEKWHEEL_TLS_KEY')]);
	}

	// ---- Putting

	/** Put a job. `fields` are those of Job, by name: put('mail', 'hi', delay: 60, key: 'ada'). */
	public function put(string $tube, Job|string $job, mixed ...$fields): Put
	{
		return $this->putMany($tube, [$job instanceof Job ? $job : new Job($job, ...$fields)])[0];
	}

	/**
	 * Put jobs without waiting for each. If one is refused, the exception is about the first such, and the others may have been put:
	 * with keys you can repeat it.
	 * @param iterable<Job|string> $jobs
	 * @return list<Put>
	 */
	public function putMany(string $tube, iterable $jobs): array
	{
		Words::tube($tube);
		$puts = $batch = [];
		$bytes = 0;
		foreach ($jobs as $job) {
			$job = $job instanceof Job ? $job : new Job($job);
			$batch[] = [$job->command(), $job->block()];
			$bytes += strlen($batch[count($batch) - 1][1]);
			if (count($batch) < self::BATCH && $bytes < self::BATCH_BYTES)
				continue;
			array_push($puts, ...$this->putBatch($tube, $batch));
			[$batch, $bytes] = [[], 0];
		}
		return $batch ? [...$puts, ...$this->putBatch($tube, $batch)] : $puts;
	}

	private function putBatch(string $tube, array $batch): array
	{
		$answers = $this->with(fn(Wire $wire): array => $wire->askAll(self::PUT, $batch, $tube));
		return array_map(fn(array $answer): Put => new Put(strtolower($answer[0][0]), (int)$answer[0][1],
			isset($answer[0][2]) ? (int)$answer[0][2] : null), $answers);
	}

	/** Give a job that waits another delay or, on its own clock, another due time. Returns its new version. */
	public function move(string $tube, int|string $job, int|float|null $delay = null, int|float|\DateTimeInterface|null $at = null, ?int $version = null): int
	{
		if (($delay === null) === ($at === null))
			throw new \InvalidArgumentException('a job moves to a delay or to a time: give one of them');
		$when = $delay === null ? '-' : Words::seconds($delay, 'delay');
		return (int)$this->ask(['MOVED'], $this->named('move', 'move-key', $job) . " $when" . Words::options(compact('version', 'at')), $tube)[0][1];
	}

	/** Delete a job. By its key it may have any state: for a worker that has it, this delivery is the last. False: there is none. */
	public function cancel(string $tube, int|string $job, ?int $version = null): bool
	{
		if ($version !== null && is_int($job))
			throw new \InvalidArgumentException('a version goes with a key');
		$command = $this->named('delete', 'delete-key', $job) . Words::options(compact('version'));
		return $this->ask(['DELETED', 'RUNNING', 'NOT_FOUND'], $command, $tube)[0][0] !== 'NOT_FOUND';
	}

	/** Make up to so many buried jobs of the tube ready or, where there are none, delayed ones. Returns how many. */
	public function kick(string $tube, int $count = 1): int
	{
		return (int)$this->ask(['KICKED'], 'kick ' . Words::whole($count, 'count'), $tube)[0][1];
	}

	/** Make a buried or delayed job ready. */
	public function kickJob(int $id): void
	{
		$this->ask(['KICKED'], 'kick-job ' . Words::whole($id, 'id'));
	}

	// ---- Looking

	/** A job's id and body, or null. */
	public function peek(string $tube, int|string $job): ?array
	{
		return $this->found($this->ask(['FOUND', 'NOT_FOUND'], $this->named('peek', 'peek-key', $job), $tube));
	}

	/** The id and the body of the next job of the tube that is ready, delayed or buried, or null. */
	public function peekNext(string $tube, string $state = 'ready'): ?array
	{
		if (!in_array($state, ['ready', 'delayed', 'buried'], true))
			throw new \InvalidArgumentException("'$state': expected ready, delayed or buried");
		return $this->found($this->ask(['FOUND', 'NOT_FOUND'], "peek-$state", $tube));
	}

	private function found(array $answer): ?array
	{
		return $answer[1] === null ? null : ['id' => (int)$answer[0][1], 'body' => $answer[1]];
	}

	/** A job's numbers, or null. */
	public function stat(string $tube, int|string $job): ?array
	{
		[, $body] = $this->ask(['OK', 'NOT_FOUND'], $this->named('stats-job', 'stats-key', $job), $tube);
		return $body === null ? null : Words::readStats($body);
	}

	/** Numbers of the server, or of a tube. */
	public function stats(?string $tube = null): array
	{
		return Words::readStats($this->ask(['OK'], $tube === null ? 'stats' : 'stats-tube ' . Words::tube($tube))[1]);
	}

	/** @return list<string> */
	public function tubes(): array
	{
		preg_match_all('/^- (.*)$/m', $this->ask(['OK'], 'list-tubes')[1], $found);
		return $found[1];
	}

	/**
	 * Jobs by their ids, page by page. Each is an array with the names of the server; man weekwheeld has them. Times are
	 * DateTimeImmutable, to the microsecond.
	 * @param string|list<string>|null $state delayed, ready, reserved, buried; ended alone: keys that are not free yet
	 */
	public function list(?string $tube = null, ?string $prefix = null, string|array|null $state = null, int|float|\DateTimeInterface|null $from = null,
		int|float|\DateTimeInterface|null $to = null, bool $body = false): \Generator
	{
		return $this->pages('list-delayed' . Words::options(compact('tube', 'prefix', 'state', 'from', 'to', 'body')));
	}

	/** How the runs of jobs ended that were put with `keep`, the last one first; `body`: with their reports. */
	public function history(?string $tube = null, ?string $prefix = null, ?int $id = null, bool $body = false): \Generator
	{
		return $this->pages('history' . Words::options(compact('tube', 'prefix', 'id', 'body')));
	}

	/** How many jobs come due in each of the next `count` spans. */
	public function forecast(int|float $span, int $count, ?string $tube = null): array
	{
		$command = 'forecast ' . Words::seconds($span, 'span') . ' ' . Words::whole($count, 'count') . Words::options(compact('tube'));
		return json_decode($this->ask(['OK'], $command)[1], true, 4, JSON_THROW_ON_ERROR)['counts'];
	}

	private function pages(string $command, int $limit = self::PAGE): \Generator
	{
		$next = null;
		do {
			$after = $next === null ? '' : " after=$next";
			foreach (Words::readPage($this->ask(['OK'], "$command limit=$limit$after")[1], $next) as $one)
				yield $one;
		} while ($next !== null);
	}

	// ---- Tubes and schedules

	/** Deliver no job of the tube for so long, in whole seconds; 0 ends a pause. */
	public function pause(string $tube, int|float $span): void
	{
		$this->ask(['PAUSED'], 'pause-tube ' . Words::tube($tube) . ' ' . Words::ceil($span, 'span'));
	}

	/**
	 * Let at most so many jobs of the tube, of a group, or of each group, run at once, or start in each `per` seconds, `burst` of
	 * them at once; or give a group `weight` turns where others get one. Without a number there is no limit any more.
	 */
	public function limit(string $tube, ?int $running = null, ?int $starts = null, int|float|null $per = null, ?int $burst = null,
		?string $group = null, bool $each = false, ?int $weight = null): void
	{
		$this->ask(['LIMITED'], 'limit-tube ' . Words::tube($tube) .
			Words::options(compact('running', 'starts', 'per', 'burst', 'weight', 'group', 'each')));
	}

	/** @return list<array> */
	public function limits(?string $tube = null): array
	{
		return Words::readPage($this->ask(['OK'], 'list-limits' . Words::options(compact('tube')))[1]);
	}

	/**
	 * Put a job at each time of an expression of cron, such as "0 3 * * *" or "@every 90m". It replaces the schedule of that name,
	 * unless `mode` is if-absent. Returns the next time, if there is one.
	 */
	public function schedule(string $tube, string $name, string $body, string $cron, ?string $zone = null, int $priority = 1024,
		int|float $spread = 0, int|float $run = 60, int|float|\DateTimeInterface|null $start = null,
		int|float|\DateTimeInterface|null $end = null, bool $paused = false, ?string $mode = null, ?string $missed = null,
		int|float|null $skip = null, ?string $overlap = null, ?int $attempts = null, int|float|null $backoff = null,
		int|float|null $backoffMax = null, ?string $group = null, int|float|null $keep = null, int|float|null $expire = null,
		?string $expired = null, ?int $code = null): ?\DateTimeImmutable
	{
		$command = implode(' ', ['put-schedule', Words::whole($priority, 'priority'), Words::seconds($spread, 'spread'),
			Words::seconds($run, 'run'), strlen($body), Words::key($name)]);
		$options = Words::options(compact('cron', 'zone', 'missed', 'skip', 'overlap', 'start', 'end', 'paused', 'mode', 'attempts', 'backoff',
			'backoffMax', 'group', 'keep', 'expire', 'expired', 'code'));
		return Words::readMoment($this->ask(['SCHEDULED', 'KEPT'], $command . $options, $tube, $body)[0][1]);
	}

	/** Schedules, page by page; one of a name has its next times. */
	public function schedules(?string $tube = null, ?string $name = null, bool $body = false): \Generator
	{
		return $this->pages('list-schedules' . Words::options(compact('tube', 'name', 'body')), 100);
	}

	public function deleteSchedule(string $tube, string $name): void
	{
		$this->ask(['DELETED'], 'delete-schedule ' . Words::key($name), $tube);
	}

	public function pauseSchedule(string $tube, string $name): void
	{
		$this->ask(['PAUSED'], 'pause-schedule ' . Words::key($name), $tube);
	}

	public function resumeSchedule(string $tube, string $name): void
	{
		$this->ask(['RESUMED'], 'resume-schedule ' . Words::key($name), $tube);
	}

	/** Put a job of the schedule now. Returns its id. */
	public function runSchedule(string $tube, string $name): int
	{
		return (int)$this->ask(['INSERTED'], 'run-schedule ' . Words::key($name), $tube)[0][1];
	}

	/** Move a virtual clock (weekwheeld --clock virtual), for tests. Returns its time. */
	public function advance(int|float $span): \DateTimeImmutable
	{
		return Words::readMoment($this->ask(['ADVANCED'], 'advance ' . Words::seconds($span, 'span'))[0][1]);
	}

	// ---- Working

	/**
	 * Take the next job of the tubes. Null: none came within `timeout` seconds, rounded up; without a timeout it waits on. A job
	 * that is neither deleted, released nor buried is ready again when PHP forgets the lease.
	 */
	public function reserve(string|array $tubes = 'default', int|float|null $timeout = null): ?Lease
	{
		$tubes = array_values(array_unique(array_map(Words::tube(...), (array)$tubes)));
		if (!$tubes)
			throw new \InvalidArgumentException('a job is reserved from one tube at least');
		$wait = (int)Words::ceil($timeout ?? self::WAIT, 'timeout');
		do {
			$lease = $this->reserveOnce($tubes, $wait);
		} while ($lease === null && $timeout === null);
		return $lease;
	}

	private function reserveOnce(array $tubes, int $wait): ?Lease
	{
		$wire = $this->take();
		$wire->wantHeaders();
		$wire->watch($tubes);
		[$words, $body, $headers] = $wire->ask(['RESERVED', 'TIMED_OUT'], "reserve-with-timeout $wait", wait: $wait);
		if ($words[0] === 'TIMED_OUT') {
			$this->give($wire);
			return null;
		}
		// The answer does not name the tube.
		$lease = new Lease($this, $wire, (int)$words[1], count($tubes) === 1 ? $tubes[0] : null, $body, $headers);
		return $lease;
	}

	/** Take the job of an id, whatever its state and its limits. Null: there is none, or another connection has it. */
	public function reserveJob(int $id): ?Lease
	{
		$wire = $this->take();
		$wire->wantHeaders();
		[$words, $body, $headers] = $wire->ask(['RESERVED', 'NOT_FOUND'], 'reserve-job ' . Words::whole($id, 'id'));
		if ($words[0] === 'RESERVED')
			return new Lease($this, $wire, $id, null, $body, $headers);
		$this->give($wire);
		return null;
	}

	/** Call `act(Lease)` for each job until a signal or Worker::stop says so. `how` has the arguments of Worker, by name. */
	public function work(string|array $tubes, callable $act, mixed ...$how): int
	{
		return (new Worker($this, $tubes, $act(...), ...$how))->run();
	}

	/** Close connections that have no job. The next command connects again. */
	public function close(): void
	{
		$this->idle = [];
	}

	// ---- Connections

	/** A connection for the caller alone. */
	private function take(): Wire
	{
		while ($wire = array_pop($this->idle))
			if ($wire->isAlive())
				return $wire;
		return new Wire($this->address, $this->timeout, $this->token, $this->tls, $this->code);
	}

	/**
	 * Take a connection back.
	 * @internal
	 */
	public function give(Wire $wire): void
	{
		$this->idle[] = $wire;
	}

	private function with(callable $act): array
	{
		$wire = $this->take();
		try {
			return $act($wire);
		} finally {
			$this->give($wire);
		}
	}

	private function ask(array $expected, string $command, ?string $tube = null, ?string $body = null): array
	{
		return $this->with(fn(Wire $wire): array => $wire->ask($expected, $command, $tube, $body));
	}

	private function named(string $byId, string $byKey, int|string $job): string
	{
		return is_int($job) ? "$byId " . Words::whole($job, 'id') : "$byKey " . Words::key($job);
	}
}
