<?php
// What becomes of the package for PHP when connections, servers, jobs and processes end: one case of test_php.py, argv[1], which
// does meanwhile what a line asks for. ADDRESS is the server, DIRECT the same one without what stands between.

declare(strict_types=1);

require __DIR__ . '/check.php';

use Weekwheel\{ConnectionException, Jobs, Lease, NotFoundException, WeekwheelException};

function count_of(string $tube): int
{
	return iterator_count((new Jobs(getenv('DIRECT')))->list($tube));
}

/** The connection is cut by what stands between when a command comes, or its answer. */
function cut(string $isSent, string $count): void
{
	$jobs = new Jobs(getenv('ADDRESS'));
	$lost = thrown(ConnectionException::class, fn() => $jobs->put('cut', 'x', key: 'k', delay: 60));
	same([$lost->isSent, str_contains($lost->getMessage(), 'repeat a put with a key')], [$isSent === 'sent', $isSent === 'sent']);
	same(count_of('cut'), (int)$count);
}

function cut_lease(): void
{
	$jobs = new Jobs(getenv('ADDRESS'));
	(new Jobs(getenv('DIRECT')))->put('cut', 'x');
	$job = $jobs->reserve('cut', 0);
	same(thrown(ConnectionException::class, $job->delete(...))->isSent, true);
	same([$job->hasEnded(), $job->isDone()], [true, false]);
	thrown(NotFoundException::class, $job->touch(...));
	same(count_of('cut'), 1);
}

function restart(): void
{
	$jobs = new Jobs(getenv('ADDRESS'));
	$jobs->put('t', 'before', key: 'k', delay: 3600);
	ask('kill');
	for ($i = 0; $i < 2; $i++)
		same(thrown(ConnectionException::class, fn() => $jobs->put('t', 'x'), 'Start weekwheeld there')->isSent, false);
	ask('start');
	same($jobs->peek('t', 'k')['body'], 'before');
	same($jobs->put('t', 'after', key: 'k')->result, 'replaced');
}

function worker_restart(): void
{
	$jobs = new Jobs(getenv('ADDRESS'));
	$jobs->put('t', 'x');
	$errors = [];
	$isFirst = true;
	$ran = $jobs->work('t', function (Lease $job) use (&$isFirst): void {
		if ($isFirst)
			array_map(ask(...), ['kill', 'start']);
		$isFirst = false;
	}, most: 2, onError: function (Throwable $error, ?Lease $job) use (&$errors): void {
		$errors[] = $error::class;
	});
	same([$ran, array_unique($errors)], [2, [ConnectionException::class]]);
	same($jobs->peekNext('t'), null);
}

function worker_signal(): void
{
	$jobs = new Jobs(getenv('ADDRESS'));
	$jobs->putMany('t', ['one', 'two']);
	pcntl_signal(SIGTERM, $mine = fn() => throw new LogicException('that of before'));
	$ran = $jobs->work('t', fn(Lease $job) => ask('terminate'));
	same([$ran, pcntl_signal_get_handler(SIGTERM)], [1, $mine]);
	same($jobs->reserve('t', 0)->body, 'two');
}

function worker_idle(): void
{
	same((new Jobs(getenv('ADDRESS')))->work('t', fn() => null, onError: fn() => null), 0);
}

function worker_killed(): void
{
	(new Jobs(getenv('ADDRESS')))->work('t', fn() => ask('die'));
}

function touches(): void
{
	$jobs = new Jobs(getenv('ADDRESS'));
	$jobs->put('t', 'x', run: 10);
	$jobs->work('t', function (Lease $job) use ($jobs): void {
		until(fn() => $jobs->stats()['cmd-touch'] >= 2);
	}, most: 1, onError: fn(Throwable $error) => throw $error);
	// One whose job has been cancelled is told with the first touch.
	$jobs->put('t', 'x', key: 'lost', run: 2);
	$told = null;
	$jobs->work('t', function (Lease $job) use ($jobs): void {
		$jobs->cancel('t', 'lost');
		until($job->hasEnded(...));
	}, most: 1, onError: function (Throwable $error) use (&$told): void {
		$told = $error::class;
	});
	same($told, NotFoundException::class);
}

/** The time for a touch comes before the answer to another command about the job. */
function touch_in_a_command(): void
{
	(new Jobs(getenv('DIRECT')))->put('t', 'x', run: 50);
	(new Jobs(getenv('ADDRESS')))->work('t', fn(Lease $job) => same($job->stat()['ttr'], 50), most: 1, onError: fn(Throwable $error) => throw $error);
}

function silent(): void
{
	$jobs = new Jobs(getenv('ADDRESS'), timeout: 0.3);
	same(thrown(ConnectionException::class, fn() => $jobs->put('default', 'x'), 'was silent for 0.3 s')->isSent, true);
	same(thrown(ConnectionException::class, fn() => $jobs->put('default', str_repeat('x', 1 << 26)))->isSent, true);
	same(thrown(ConnectionException::class, fn() => $jobs->reserve('default', 0))->isSent, false);
	same(thrown(ConnectionException::class, fn() => $jobs->put('t', 'x'))->isSent, false);
	thrown(ConnectionException::class, fn() => (new Jobs('tls:' . getenv('ADDRESS'), timeout: 0.3))->put('default', 'x'));
}

function slow(): void
{
	$job = (new Jobs(getenv('ADDRESS')))->reserve('default', 0);
	same([$job->id, $job->body], [7, "a\r\nb"]);
}

function another(string $says): void
{
	thrown(WeekwheelException::class, fn() => (new Jobs(getenv('ADDRESS')))->stats(), $says);
}

function beanstalkd(): void
{
	$jobs = new Jobs(getenv('ADDRESS'));
	$jobs->put('t', 'x');
	same(thrown(WeekwheelException::class, fn() => $jobs->put('t', "put 0 0 60 1\r\ny", key: 'k'))->word, 'UNKNOWN_COMMAND');
	$job = $jobs->reserve('t', 0);
	same([$job->body, $jobs->stats('t')['total-jobs']], ['x', 1]);
	$job->delete();
}

function forked(): void
{
	$jobs = new Jobs(getenv('ADDRESS'));
	same($jobs->stats()['current-connections'], 1);
	if (($child = pcntl_fork()) === 0)
		exit($jobs->stats()['current-connections'] === 2 ? 0 : 1);
	pcntl_waitpid($child, $status);
	same([$status, $jobs->put('t', 'x')->result], [0, 'inserted']);
}

$argv[1](...array_slice($argv, 2));
echo "passed\n";
