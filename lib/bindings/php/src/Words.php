<?php
// The protocol's words: how they are written, what is refused before it is sent, and how answers are read.

declare(strict_types=1);

namespace Weekwheel;

/** @internal */
final class Words
{
	/** Bytes of a line without its end: of beanstalkd's put, and of weekwheeld's own verbs. */
	private const LINE_MOST = 222, OWN_LINE_MOST = 2046;
	/** The server's bounds of a length of time and of a time, in seconds, and of the reason of a failure, in bytes. */
	private const SPAN_MOST = 4294967295, MOMENT_MOST = 4611686018, REASON_MOST = 255;

	/** How each option of a command is written. */
	private const OPTIONS = [
		'at' => 'moment', 'attempts' => 'whole', 'backoff' => 'seconds', 'backoffMax' => 'seconds', 'body' => 'yes', 'burst' => 'whole',
		'code' => 'whole', 'cron' => 'text', 'debounce' => 'seconds', 'each' => 'yes', 'end' => 'moment', 'every' => 'seconds', 'expire' => 'seconds',
		'expired' => 'word', 'from' => 'moment', 'group' => 'text', 'id' => 'whole', 'keep' => 'seconds', 'missed' => 'word', 'mode' => 'word',
		'name' => 'key', 'overlap' => 'word', 'paused' => 'yes', 'per' => 'seconds', 'prefix' => 'text', 'running' => 'whole',
		'skip' => 'seconds', 'spread' => 'seconds', 'start' => 'moment', 'starts' => 'whole', 'state' => 'word', 'to' => 'moment', 'tube' => 'tube',
		'unique' => 'seconds', 'version' => 'whole', 'weight' => 'whole', 'zone' => 'text',
	];

	/** What the server lists as times, and as percent-encoded text. */
	private const TIMES = ['due', 'created', 'expires', 'ended', 'start', 'end', 'anchor', 'last', 'next'], TEXTS = ['key', 'group', 'name'];

	// ---- Writing

	/** A line as it is sent. A server would take the body behind one that is too long for it for commands. */
	public static function line(string $command): string
	{
		$most = str_starts_with($command, 'put ') ? self::LINE_MOST : self::OWN_LINE_MOST;
		if (strlen($command) > $most)
			throw new \InvalidArgumentException(sprintf('%.40s... has %d bytes, and a server reads %d: make the key, the group and the like shorter',
				$command, strlen($command), $most));
		return "$command\r\n";
	}

	/** " name=value" for each option that is neither null nor false. */
	public static function options(array $given): string
	{
		$written = '';
		foreach ($given as $name => $value)
			if ($value !== null && $value !== false)
				$written .= ' ' . strtolower(preg_replace('/[A-Z]/', '-$0', $name)) . '=' . self::{self::OPTIONS[$name]}($value, $name);
		return $written;
	}

	public static function tube(string $tube): string
	{
		if (!preg_match('~^[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]{0,199}$~D', $tube))
			throw new \InvalidArgumentException("'$tube' is not a name of a tube: 1 to 200 of A-Z a-z 0-9 + / ; . \$ _ ( ) -, without - in front");
		return $tube;
	}

	public static function whole(int $number, string $name): string
	{
		return $number >= 0 ? (string)$number : throw new \InvalidArgumentException("$name: $number: expected a number from 0 on");
	}

	/** Seconds, with up to nine digits behind the point. */
	public static function seconds(int|float $span, string $name): string
	{
		if (!($span >= 0 && $span <= self::SPAN_MOST))
			throw new \InvalidArgumentException("$name: $span: expected 0 to " . self::SPAN_MOST . ' seconds');
		return self::decimal($span);
	}

	/** Whole seconds, rounded up: beanstalkd's verbs have no others. */
	public static function ceil(int|float $span, string $name): string
	{
		self::seconds($span, $name);
		return (string)(int)ceil($span);
	}

	/** A time, or seconds since 1970. */
	public static function moment(int|float|\DateTimeInterface $at, string $name): string
	{
		$seconds = $at instanceof \DateTimeInterface ? (float)$at->format('U.u') : $at;
		if (!($seconds >= 0 && $seconds < self::MOMENT_MOST))
			throw new \InvalidArgumentException("$name: $seconds: expected a time from 1970 to " . self::MOMENT_MOST . ' seconds later');
		return $at instanceof \DateTimeInterface ? $at->format('U.u') : self::decimal($at);
	}

	private static function decimal(int|float $number): string
	{
		return is_int($number) ? (string)$number : rtrim(rtrim(sprintf('%.9F', $number), '0'), '.');
	}

	/** A key or a name. */
	public static function key(string $key): string
	{
		if ($key === '' || strlen($key) > 200)
			throw new \InvalidArgumentException("'$key': a key or a name has 1 to 200 bytes");
		return self::text($key);
	}

	/** The reason of a failure, for people. */
	public static function reason(?string $reason): string
	{
		$reason = str_replace("\0", ' ', $reason ?? '');
		if (strlen($reason) > self::REASON_MOST)
			$reason = preg_replace('/[\xC0-\xFF][\x80-\xBF]*$/D', '', substr($reason, 0, self::REASON_MOST));
		return $reason === '' || $reason === '-' ? '-' : rawurlencode($reason);
	}

	/** "-" alone would stand for none. */
	private static function text(string $text): string
	{
		return $text === '-' ? '%2D' : rawurlencode($text);
	}

	/** One of the words that an option has, or several of them. */
	private static function word(string|array $words, string $name): string
	{
		$word = implode(',', (array)$words);
		return preg_match('/^[a-z,-]+$/D', $word) ? $word : throw new \InvalidArgumentException("$name: '$word' is not a word");
	}

	private static function yes(): string
	{
		return 'yes';
	}

	// ---- Reading

	/** beanstalkd's numbers: "name: value" in each line. */
	public static function readStats(string $body): array
	{
		preg_match_all('/^([^:\n]+): (.*)$/m', $body, $lines, PREG_SET_ORDER);
		$stats = [];
		foreach ($lines as [, $name, $value])
			$stats[$name] = is_numeric($value) && $name !== 'name' && $name !== 'tube' ? $value + 0 : trim($value, '"');
		return $stats;
	}

	/** An object of JSON in each line. The last one may say where to go on. */
	public static function readPage(string $body, int|string|null &$next = null): array
	{
		$page = array_map(fn(string $line): array => json_decode($line, true, 16, JSON_BIGINT_AS_STRING | JSON_THROW_ON_ERROR),
			array_filter(explode("\n", $body)));
		$next = $page && array_keys(end($page)) === ['next'] ? array_pop($page)['next'] : null;
		return array_map(self::readMembers(...), $page);
	}

	private static function readMembers(array $members): array
	{
		foreach ($members as $name => &$value)
			if (in_array($name, self::TIMES, true))
				$value = self::readMoment($value);
			elseif (is_string($value) && in_array($name, self::TEXTS, true))
				$value = rawurldecode($value);
			elseif ($name === 'body' || $name === 'report')
				$value = base64_decode($value);
			elseif ($name === 'times')
				$value = array_map(fn(array $time): \DateTimeImmutable => self::readMoment(...$time), $value);
		return $members;
	}

	/** A time, to the microsecond, of a zone that is so far from UTC. 0 stands for none. */
	public static function readMoment(int|float|string|null $seconds, int $offset = 0): ?\DateTimeImmutable
	{
		[$whole, $fraction] = explode('.', $seconds . '.0');
		if ((int)$whole === 0 && (int)$fraction === 0)
			return null;
		$minutes = abs(intdiv($offset, 60));
		return \DateTimeImmutable::createFromFormat('U.u', $whole . '.' . substr($fraction, 0, 6))
			->setTimezone(new \DateTimeZone(sprintf('%s%02d:%02d', $offset < 0 ? '-' : '+', intdiv($minutes, 60), $minutes % 60)));
	}
}
