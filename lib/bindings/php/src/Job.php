<?php
// What a put puts.

declare(strict_types=1);

namespace Weekwheel;

/** Lengths of time are seconds. What is null is not said, and the server's default holds. */
final class Job
{
	public function __construct(
		public readonly string $body,
		/** The smaller, the earlier. */
		public readonly int $priority = 1024,
		/** From now until it is due. */
		public readonly int|float $delay = 0,
		/** Or due at a time of the wall clock. A number is seconds since 1970. */
		public readonly int|float|\DateTimeInterface|null $at = null,
		/** How long a worker may take before another one gets the job. A worker touches what takes longer. */
		public readonly int|float $run = 60,
		/** A name within the tube, up to 200 bytes: what has it is replaced. */
		public readonly ?string $key = null,
		/** Of a job with a key: if-absent, keep-earlier or keep-later leave the job that has it. */
		public readonly ?string $mode = null,
		/** Replace only the job of this version; 0: only if there is none. */
		public readonly ?int $version = null,
		/** Each put of the key moves the job, at most so long after the first one. */
		public readonly int|float|null $debounce = null,
		/** When the job is done, its key stays taken for so long. */
		public readonly int|float|null $unique = null,
		/** Again so long after each due time. */
		public readonly int|float|null $every = null,
		/** What becomes of due times that passed undelivered: once, all, or skip. */
		public readonly ?string $missed = null,
		/** With skip: times older than this are not delivered. */
		public readonly int|float|null $skip = null,
		/** Bury it after so many failures. Without it, a worker decides. */
		public readonly ?int $attempts = null,
		/** The delay after the first failure; it doubles, */
		public readonly int|float|null $backoff = null,
		/** up to this. */
		public readonly int|float|null $backoffMax = null,
		/** Groups of a tube take turns, and may have limits. */
		public readonly ?string $group = null,
		/** Keep for so long how its runs ended. */
		public readonly int|float|null $keep = null,
		/** It expires so long after it is due, unless a worker has it. */
		public readonly int|float|null $expire = null,
		/** What becomes of it then: drop or bury. */
		public readonly ?string $expired = null,
		/** Names and values beside the body, such as a tenant: 16 of visible ASCII, 4096 bytes in all. */
		public readonly array $headers = [],
		/** Due a part of this later, which the key fixes, or the body if there is none. */
		public readonly int|float|null $spread = null,
		/** The job to put when this one is finished, in one write with its end, with the members of POST /v1/jobs. */
		public readonly ?array $then = null,
		/** The version of the code that can do it: clients of a lower code do not get it. */
		public readonly ?int $code = null,
	) {
		if ($key === null && ($mode ?? $debounce ?? $unique) !== null)
			throw new \InvalidArgumentException('mode, debounce and unique are for a job with a key: name it with "key"');
		if ($at !== null && $delay != 0)
			throw new \InvalidArgumentException('a job has a delay or a time, not both');
	}

	/**
	 * What follows the command: the headers, which are lines, the follow-up in JSON, and the body.
	 * @internal
	 */
	public function block(): string
	{
		return $this->headerLines() . $this->thenText() . $this->body;
	}

	private function thenText(): string
	{
		return $this->then === null ? '' : json_encode($this->then, JSON_THROW_ON_ERROR | JSON_FORCE_OBJECT);
	}

	private function headerLines(): string
	{
		$lines = '';
		foreach ($this->headers as $name => $value) {
			$line = strtolower((string)$name) . ": $value";
			if (!preg_match('/^[!#$%&\'*+.^_`|~0-9a-z-]+: (?:[!-~](?:[ -~]*[!-~])?)?$/D', $line))
				throw new \InvalidArgumentException("header '$name': its name is a token of HTTP, and its value visible ASCII");
			$lines .= "$line\n";
		}
		return $lines;
	}

	/**
	 * The command. Without anything that beanstalkd has not, it is said in beanstalkd's words.
	 * @internal
	 */
	public function command(): string
	{
		$options = Words::options(array_diff_key(get_object_vars($this), array_flip(['body', 'priority', 'delay', 'at', 'run', 'key', 'headers', 'then'])));
		if ($this->headers)
			$options .= ' headers=' . strlen($this->headerLines());
		if ($this->then !== null)
			$options .= ' then=' . strlen($this->thenText());
		$priority = Words::whole($this->priority, 'priority');
		$when = $this->at === null ? Words::seconds($this->delay, 'delay') : Words::moment($this->at, 'at');
		$rest = Words::seconds($this->run, 'run') . ' ' . strlen($this->block());
		if ($this->at === null && $this->key === null && $options === '' && ctype_digit($when) && is_int($this->run))
			return "put $priority $when $rest";
		$key = $this->key === null ? '-' : Words::key($this->key);
		return ($this->at === null ? 'put-key' : 'put-at') . " $priority $when $rest $key$options";
	}
}
