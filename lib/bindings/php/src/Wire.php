<?php
// A connection: commands out, and answers in, with patience.

declare(strict_types=1);

namespace Weekwheel;

/** @internal */
final class Wire
{
	/** What is written at a time: each piece has the patience for itself. */
	private const CHUNK = 65536;
	/** How many words stand before the length of the block behind an answer. */
	private const BLOCKS = ['OK' => 1, 'FOUND' => 2, 'RESERVED' => 2];
	/** Wrong tokens are answered late, after so many seconds. */
	private const PENALTY = 10;

	/** @var resource */
	private $stream;
	private string $used = 'default';
	private array $watched = ['default'];
	/** Whether the server knows verbs of weekwheeld's own. */
	private ?bool $hasOwn = null;
	private bool $takesHeaders = false;
	private readonly int $process;
	private bool $isLost = false;
	/** A command is under way: a signal may come in the middle of it. */
	public bool $isBusy = false;

	/** `tls` has the options of PHP's SSL contexts. */
	public function __construct(private readonly string $address, private readonly float $patience, ?string $token, array $tls,
		private readonly ?int $code = null)
	{
		$this->process = getmypid();
		$this->stream = $this->connect($tls);
		$answer = $token === null ? 'OK' : implode(' ', $this->exchange("auth $token\r\n", 1, false, self::PENALTY)[0][0]);
		if ($answer !== 'OK')
			throw WeekwheelException::ofAnswer('auth', $answer);
	}

	/** The address as PHP's streams want it. */
	public static function target(string $address): string
	{
		if (str_starts_with($address, 'unix:'))
			return 'unix://' . substr($address, 5);
		if (!preg_match('/^(tls:)?(\[[^\]\s]+\]|[^:\[\]\s]+):\d{1,5}$/D', $address, $parts))
			throw new \InvalidArgumentException("'$address' is not an address: HOST:PORT, [IPV6]:PORT, tls:HOST:PORT or unix:PATH");
		return $parts[1] === '' ? "tcp://$address" : 'tls://' . substr($address, 4);
	}

	/** @return resource */
	private function connect(array $tls)
	{
		// The first warning has the cause; the last one says that it did not work.
		$said = null;
		set_error_handler(function (int $level, string $text) use (&$said): bool {
			$said ??= preg_replace('/^\w+\(\): /', '', $text);
			return true;
		});
		try {
			$stream = stream_socket_client(self::target($this->address), $number, $why, $this->patience, STREAM_CLIENT_CONNECT,
				stream_context_create(['socket' => ['tcp_nodelay' => true], 'ssl' => $tls]));
		} finally {
			restore_error_handler();
		}
		return $stream ?: throw ConnectionException::of($this->address, false, $why ?: $said ?: 'no answer came in time');
	}

	/** Whether it can still be used: no server has closed it, and no other process made it, from which this one was forked. */
	public function isAlive(): bool
	{
		if ($this->isLost || $this->isBusy || $this->process !== getmypid())
			return false;
		stream_set_blocking($this->stream, false);
		$isSilent = @fread($this->stream, 1) === '' && !feof($this->stream);
		stream_set_blocking($this->stream, true);
		return $isSilent;
	}

	/** Carry out a command in a tube, if that matters, and expect one of these words. Returns the answer's words, its block and a job's headers. */
	public function ask(array $expected, string $command, ?string $tube = null, ?string $body = null, float $wait = 0): array
	{
		return $this->askAll($expected, [[$command, $body]], $tube, $wait)[0];
	}

	/** Carry out several commands, and say of the first that was refused why. */
	public function askAll(array $expected, array $commands, ?string $tube = null, float $wait = 0): array
	{
		$bytes = '';
		foreach ($commands as [$command, $body])
			$bytes .= Words::line($command) . ($body === null ? '' : "$body\r\n");
		foreach ($commands as [$command, $body])
			if ($body !== null && !str_starts_with($command, 'put '))
				$this->needOwn($command);
		$this->use($tube);
		$answers = $this->exchange($bytes, count($commands), true, $wait);
		foreach ($answers as $at => [$words])
			if (!in_array($words[0], $expected, true))
				throw WeekwheelException::ofAnswer($commands[$at][0], implode(' ', $words));
		return $answers;
	}

	/** Let jobs come with their headers. beanstalkd and older servers do not know that, and have none. */
	public function wantHeaders(): void
	{
		if (!$this->takesHeaders)
			$this->exchange("headers\r\n", 1, false);
		// A server that does not know this gets no reserve.
		if (!$this->takesHeaders && $this->code !== null)
			$this->ask(['CODE'], 'code ' . Words::whole($this->code, 'code'));
		$this->takesHeaders = true;
	}

	/** Watch these tubes and no others. A refusal leaves the connection with others, so it is not to be used again. */
	public function watch(array $tubes): void
	{
		$lines = [...array_map(fn($tube) => "watch $tube", array_diff($tubes, $this->watched)),
			...array_map(fn($tube) => "ignore $tube", array_diff($this->watched, $tubes))];
		foreach ($lines as $line) {
			[$words] = $this->exchange("$line\r\n", 1, false)[0];
			if ($words[0] !== 'WATCHING') {
				$this->isLost = true;
				throw WeekwheelException::ofAnswer($line, implode(' ', $words));
			}
		}
		$this->watched = $tubes;
	}

	/** If the server refuses the tube, the command must not be carried out in another one. */
	private function use(?string $tube): void
	{
		if ($tube === null || $tube === $this->used)
			return;
		[$words] = $this->exchange('use ' . Words::tube($tube) . "\r\n", 1, false)[0];
		if ($words[0] !== 'USING')
			throw WeekwheelException::ofAnswer("use $tube", implode(' ', $words));
		$this->used = $tube;
	}

	/** A server that does not know the verb would take the body behind it for commands. */
	private function needOwn(string $command): void
	{
		$this->hasOwn ??= !in_array($this->exchange("stats-key weekwheel\r\n", 1, false)[0][0][0], ['UNKNOWN_COMMAND', 'BAD_FORMAT'], true);
		if (!$this->hasOwn)
			throw WeekwheelException::ofAnswer($command, 'UNKNOWN_COMMAND');
	}

	/** Send bytes, and read so many answers, for which the server may take `wait` seconds more. */
	private function exchange(string $bytes, int $count, bool $counts, float $wait = 0): array
	{
		if ($this->isLost)
			throw ConnectionException::of($this->address, false, 'it broke before');
		$this->isBusy = true;
		try {
			stream_set_timeout($this->stream, (int)($this->patience + $wait), (int)(fmod($this->patience + $wait, 1) * 1e6));
			$this->write($bytes, $counts);
			$answers = [];
			while (count($answers) < $count)
				$answers[] = $this->answer($counts);
			return $answers;
		} finally {
			$this->isBusy = false;
		}
	}

	private function write(string $bytes, bool $counts): void
	{
		for ($at = 0; $at < strlen($bytes); $at += $written) {
			error_clear_last();
			if (!($written = @fwrite($this->stream, substr($bytes, $at, self::CHUNK))))
				throw $this->lost($counts);
		}
	}

	private function answer(bool $counts): array
	{
		error_clear_last();
		$line = @fgets($this->stream, self::CHUNK);
		if ($line === false || !str_ends_with($line, "\r\n"))
			throw $this->lost($counts);
		$words = explode(' ', rtrim($line, "\r\n"));
		$length = $words[self::BLOCKS[$words[0]] ?? 99] ?? null;
		if ($length === null)
			return [$words, null, []];
		if (!ctype_digit($length))
			throw $this->lost($counts, 'this is not a server of jobs');
		$block = substr($this->block((int)$length + 2, $counts), 0, -2);
		// The first bytes are the headers of a job that has some.
		$more = (int)($words[self::BLOCKS[$words[0]] + 1] ?? 0);
		preg_match_all('/^([^:]+): (.*)$/m', substr($block, 0, $more), $found);
		return [$words, substr($block, $more), array_combine($found[1], $found[2])];
	}

	private function block(int $length, bool $counts): string
	{
		for ($block = ''; ($left = $length - strlen($block)) > 0; $block .= $piece)
			if (($piece = @fread($this->stream, min($left, self::CHUNK))) === false || $piece === '')
				throw $this->lost($counts);
		return $block;
	}

	private function lost(bool $counts, ?string $why = null): ConnectionException
	{
		$this->isLost = true;
		$said = error_get_last()['message'] ?? null;
		$why ??= stream_get_meta_data($this->stream)['timed_out'] ? "the server was silent for $this->patience s" : $said;
		return ConnectionException::of($this->address, $counts, $why ?? 'the server closed it');
	}
}
