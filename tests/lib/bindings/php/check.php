<?php
// What the tests of the package for PHP share: comparisons, and the words that they change with the test that started them.

declare(strict_types=1);

require getenv('PACKAGE') . '/autoload.php';

set_error_handler(function (int $level, string $message, string $file, int $line): bool {
	return (error_reporting() & $level) === 0 ? false : throw new ErrorException($message, 0, $level, $file, $line);
});

function same(mixed $got, mixed $expected): void
{
	if ($got !== $expected)
		throw new LogicException(var_export($got, true) . ', not ' . var_export($expected, true));
}

/** The exception of this class that a call throws, and what it says. */
function thrown(string $class, callable $act, string $says = ''): Throwable
{
	try {
		$act();
	} catch (Throwable $error) {
		if (!$error instanceof $class || !str_contains($error->getMessage(), $says))
			throw $error;
		return $error;
	}
	throw new LogicException("nothing was thrown: expected $class");
}

/** The test does what a line asks for, and answers with a line. */
function ask(string $line): void
{
	fwrite(STDOUT, "$line\n");
	same(fgets(STDIN), "done\n");
}

/** Wait for what no message announces. */
function until(callable $is): void
{
	for ($left = 24000; !$is(); $left--) {
		if ($left === 0)
			throw new LogicException('this never came');
		usleep(5000);
	}
}
