<?php
// Tests each verb of the package for PHP beside a server with a virtual clock, SERVER. Each function whose name begins with
// test_ is a test, and gets a tube of its own.

declare(strict_types=1);

require __DIR__ . '/check.php';

use Weekwheel\{ConnectionException, DeniedException, Job, Jobs, Lease, NotFoundException, ScheduleException, StaleException};

function server(): Jobs
{
	return new Jobs(getenv('SERVER'));
}

/** The members of the objects that /v1 describes. */
function described(string $schema): array
{
	return json_decode(file_get_contents(getenv('OPENAPI')), true)['components']['schemas'][$schema]['properties'];
}

function camel(string $name): string
{
	return lcfirst(str_replace('_', '', ucwords($name, '_')));
}

function test_a_job_is_put_reserved_when_it_is_due_and_deleted(string $tube): void
{
	$jobs = server();
	$put = $jobs->put($tube, "a\0b\r\n", delay: 3);
	same([$put->result, $put->version], ['inserted', null]);
	same($jobs->reserve($tube, 0), null);
	$jobs->advance(3);
	$job = $jobs->reserve([$tube, 'another'], 0);
	same([$job->id, $job->body, $job->tube(), $job->hasEnded()], [$put->id, "a\0b\r\n", $tube, false]);
	$job->delete();
	same([$job->hasEnded(), $job->isDone()], [true, true]);
	thrown(NotFoundException::class, $job->delete(...), 'has ended');
	same($jobs->stats()['total-connections'], $jobs->stats()['total-connections']); // one is kept for the next command
	same($jobs->stat($tube, $put->id), null);
	same($jobs->reserve($tube, 0), null);
}

function test_every_field_is_stored(string $tube): void
{
	$jobs = server();
	$at = new DateTimeImmutable('2100-01-02T03:04:05.678901Z');
	$jobs->put($tube, 'x', priority: 7, at: $at, run: 1.5, key: "a/b ü\n", every: 3600, missed: 'skip', skip: 0.25,
		attempts: 3, backoff: 10, backoffMax: 100, group: 'g 1', keep: 5, expire: 9, expired: 'bury', headers: ['Tenant' => 'a b', 'empty' => '']);
	[$info] = iterator_to_array($jobs->list($tube, body: true), false);
	same($info['due']->format('U.u'), $at->format('U.u'));
	foreach (['priority' => 7, 'run' => 1.5, 'key' => "a/b ü\n", 'every' => 3600, 'missed' => 'skip', 'skip' => 0.25, 'attempts' => 3, 'backoff' => 10,
		'backoff_max' => 100, 'group' => 'g 1', 'keep' => 5, 'expire' => 9, 'expired' => 'bury', 'body' => 'x', 'clock' => 'wall', 'headers' => ['tenant' => 'a b', 'empty' => '']] as $name => $value)
		same([$name, $info[$name]], [$name, $value]);
	$jobs->put($tube, new Job('y', key: '-', delay: 0.5, unique: 60));
	same($jobs->list($tube, '-')->current()['unique'], 60);
	same($jobs->peek($tube, '-')['body'], 'y');
	$jobs->put($tube, 's', key: 's', delay: 5, spread: 60);
	$left = $jobs->peek($tube, 's') ? $jobs->list($tube, 's')->current()['left'] : 0;
	same($left > 5 && $left < 65, true);
	$jobs->put($tube, 'z', key: 'd', delay: 5, debounce: 60);
	$jobs->advance(3);
	$jobs->put($tube, 'z', key: 'd', delay: 5, debounce: 60);
	same($jobs->stat($tube, 'd')['time-left'] >= 4, true);
	foreach (['a b' => 'x', 'n' => "a\r\nb", 'm' => ' x', '' => 'x'] as $name => $value)
		thrown(InvalidArgumentException::class, fn() => $jobs->put($tube, 'z', headers: [$name => $value]));
}

function test_headers_travel_with_a_job(string $tube): void
{
	$jobs = server();
	$id = $jobs->put($tube, 'body', headers: ['Tenant' => 'a b', 'empty' => ''])->id;
	$job = $jobs->reserve($tube, 0);
	same([$job->body, $job->headers], ['body', ['tenant' => 'a b', 'empty' => '']]);
	$job->release(0);
	$job = $jobs->reserveJob($id);
	same([$job->body, $job->headers], ['body', ['tenant' => 'a b', 'empty' => '']]);
	$job->delete();
	$jobs->put($tube, 'none');
	same($jobs->reserve($tube, 0)->headers, []);
	same($jobs->peek($tube, $jobs->put($tube, 'x', headers: ['a' => 'b'])->id)['body'], 'x');
}

function test_a_client_takes_what_it_knows(string $tube): void
{
	$id = server()->put($tube, 'new', code: 12)->id;
	same((new Jobs(getenv('SERVER'), code: 11))->reserve($tube, 0), null);
	same((new Jobs(getenv('SERVER'), code: 12))->reserve($tube, 0)->id, $id);
	thrown(InvalidArgumentException::class, fn() => (new Jobs(getenv('SERVER'), code: -1))->reserve($tube, 0));
}

function test_a_job_follows_another(string $tube): void
{
	$jobs = server();
	$jobs->put($tube, 'first', headers: ['a' => 'b'], then: ['tube' => "$tube-after", 'body' => 'nächster', 'then' => []]);
	$job = $jobs->reserve($tube, 0);
	same([$job->body, $job->headers], ['first', ['a' => 'b']]);
	same($jobs->reserve("$tube-after", 0), null);
	$job->delete();
	same($jobs->reserve("$tube-after", 0)->body, 'nächster');
}

/** A field that a put, a schedule or a limit gets has to be added to the package, too. */
function test_every_field_of_the_description_is_known(string $tube): void
{
	$parameters = fn(string $class, string $method): array => array_map(fn($one) => $one->getName(), (new ReflectionMethod($class, $method))->getParameters());
	foreach ([['Put', Job::class, '__construct', ['tube']], ['Schedule', Jobs::class, 'schedule', []], ['Move', Jobs::class, 'move', []],
		['Limit', Jobs::class, 'limit', []]] as [$schema, $class, $method, $apart]) {
		$wanted = array_map(camel(...), preg_grep('/_base64$/', array_keys(described($schema)), PREG_GREP_INVERT));
		same([$schema, array_values(array_diff($wanted, $parameters($class, $method), $apart))], [$schema, []]);
	}
}

function test_times_of_the_description_are_times(string $tube): void
{
	$jobs = server();
	$jobs->put($tube, 'x', keep: 60, expire: 60);
	$jobs->schedule($tube, 's', 'y', '0 3 * * *', zone: 'Europe/Berlin', start: 1, end: 4e9);
	$job = $jobs->reserve($tube, 0);
	$job->report(str_repeat('r', 5000));
	$job->delete();
	$jobs->put($tube, 'x', expire: 60);
	foreach (['Job' => $jobs->list($tube), 'Run' => $jobs->history($tube, body: true), 'ScheduleState' => $jobs->schedules($tube, 's')] as $schema => $list) {
		$one = $list->current();
		$times = array_keys(array_filter(described($schema), fn(array $member): bool => ($member['format'] ?? '') === 'date-time'));
		foreach (array_intersect($times, array_keys($one)) as $name)
			same([$name, $one[$name] === null || $one[$name] instanceof DateTimeImmutable], [$name, true]);
		foreach ($one as $name => $value)
			same([$name, $value instanceof DateTimeImmutable && !in_array($name, $times, true)], [$name, false]);
	}
	same($jobs->history($tube, body: true)->current()['report'], str_repeat('r', 4096));
	$next = $jobs->schedules($tube, 's')->current()['times'][0];
	same($next->format('H:i'), '03:00');
	same(in_array($next->format('P'), ['+01:00', '+02:00'], true), true);
}

function test_versions_and_keys(string $tube): void
{
	$jobs = server();
	same($jobs->put($tube, 'one', key: 'k', delay: 60, version: 0)->version, 1);
	same($jobs->put($tube, 'two', key: 'k', delay: 60, version: 1)->result, 'replaced');
	same(thrown(StaleException::class, fn() => $jobs->put($tube, 'three', key: 'k', version: 1))->word, 'STALE');
	same($jobs->put($tube, 'four', key: 'k', mode: 'if-absent')->result, 'kept');
	same($jobs->move($tube, 'k', delay: 30, version: 2), 3);
	same($jobs->move($tube, 'k', at: new DateTime('+1 hour')), 4);
	thrown(StaleException::class, fn() => $jobs->cancel($tube, 'k', version: 3));
	same($jobs->cancel($tube, 'k', version: 4), true);
	same($jobs->cancel($tube, 'k'), false);
	same($jobs->peek($tube, 'k'), null);
	thrown(NotFoundException::class, fn() => $jobs->move($tube, 'k', delay: 1));
}

function test_many_are_put_at_once(string $tube): void
{
	$jobs = server();
	$puts = $jobs->putMany($tube, (function () {
		for ($i = 0; $i < 250; $i++)
			yield new Job(str_repeat("$i,", 8000), key: "k$i", delay: 60);
		yield 'plain';
	})());
	same(count($puts), 251);
	same(count(array_unique(array_column($puts, 'id'))), 251);
	same($jobs->peek($tube, 'k249'), ['id' => $puts[249]->id, 'body' => str_repeat('249,', 8000)]);
	thrown(StaleException::class, fn() => $jobs->putMany($tube, [new Job('x', key: 'k1', version: 99), new Job('y', key: 'new')]));
	same($jobs->peek($tube, 'new')['body'], 'y');
	same(count(iterator_to_array($jobs->list($tube, 'k'), false)), 250);
}

function test_lists_have_pages(string $tube): void
{
	$jobs = server();
	$jobs->putMany($tube, array_fill(0, 1003, new Job('', delay: 60)));
	same(count(array_unique(array_column(iterator_to_array($jobs->list($tube), false), 'id'))), 1003);
	same(iterator_count($jobs->list($tube, state: ['ready', 'buried'])), 0);
	same(iterator_count($jobs->list($tube, from: new DateTime('-1 day'), to: 1)), 0);
	same($jobs->forecast(3600, 2, $tube), [1003, 0]);
}

function test_nothing_is_injected(string $tube): void
{
	$jobs = server();
	foreach ([
		fn() => $jobs->put("a\r\nput 0 0 60 0", 'x'), fn() => $jobs->put("$tube\n", 'x'), fn() => $jobs->put('-a', 'x'), fn() => $jobs->put('', 'x'),
		fn() => $jobs->put($tube, 'x', mode: "a\r\nb", key: 'k'), fn() => $jobs->put($tube, 'x', key: ''), fn() => $jobs->put($tube, 'x', key: str_repeat('k', 201)),
		fn() => $jobs->put($tube, 'x', priority: -1), fn() => $jobs->put($tube, 'x', delay: -1), fn() => $jobs->put($tube, 'x', delay: NAN),
		fn() => $jobs->put($tube, 'x', delay: INF), fn() => $jobs->put($tube, 'x', every: 5e9), fn() => $jobs->put($tube, 'x', at: -5),
		fn() => $jobs->put($tube, 'x', delay: 5, at: 5), fn() => $jobs->put($tube, 'x', unique: 5), fn() => $jobs->put($tube, 'x', group: str_repeat('g', 2050)),
		fn() => $jobs->move($tube, 'k'), fn() => $jobs->cancel($tube, 5, version: 1), fn() => $jobs->peekNext($tube, 'x'), fn() => $jobs->reserve([]),
		fn() => $jobs->list(state: 'a b')->current(), fn() => new Jobs('nowhere'), fn() => new Jobs("unix\n:1"), fn() => new Jobs(null, 'short'),
		fn() => new Jobs(timeout: 0),
	] as $at => $call)
		same([$at, thrown(InvalidArgumentException::class, $call)::class], [$at, InvalidArgumentException::class]);
	thrown(Error::class, fn() => $jobs->put($tube, 'x', dely: 5), 'dely');
	same(iterator_count($jobs->list($tube)), 0);
	$odd = implode('', array_map(chr(...), range(1, 199)));
	$jobs->put($tube, 'x', key: $odd, group: $odd, delay: 5);
	same(array_intersect_key($jobs->list($tube, $odd)->current(), ['key' => 0, 'group' => 0]), ['key' => $odd, 'group' => $odd]);
	$name = ')' . str_repeat('$', 199);
	same($jobs->peek($name, $jobs->put($name, 'x')->id)['body'], 'x');
}

function test_failures_are_counted(string $tube): void
{
	$jobs = server();
	$id = $jobs->put($tube, 'x', priority: 5, attempts: 2, backoff: 10, keep: 60)->id;
	same($jobs->reserve($tube, 0)->release(reason: "no\0 way " . str_repeat('ü', 200)), false);
	[$info] = iterator_to_array($jobs->list($tube), false);
	same([$info['priority'], $info['tries'], strlen($info['error']), str_starts_with($info['error'], 'no  way ü')], [5, 1, 254, true]);
	$jobs->advance(10);
	same($jobs->reserve($tube, 0)->release(reason: 'again'), true);
	same(array_column(iterator_to_array($jobs->history($tube), false), 'outcome'), ['buried', 'released']);
	same($jobs->peekNext($tube, 'buried')['id'], $id);
	same($jobs->kick($tube), 1);
	$job = $jobs->reserve($tube, 0);
	$job->bury('aside', 9);
	same([$jobs->stat($tube, $id)['pri'], $jobs->stat($tube, $id)['state']], [9, 'buried']);
	$jobs->kickJob($id);
	same($jobs->peekNext($tube)['id'], $id);
	$jobs->reserve($tube, 0)->release(delay: 5.5);
	same($jobs->peekNext($tube), null);
	$jobs->advance(5.5);
	$jobs->reserveJob($id)->delete();
	same($jobs->reserveJob($id), null);
	thrown(NotFoundException::class, fn() => $jobs->kickJob($id));
}

function test_a_lease_may_be_too_late(string $tube): void
{
	$jobs = server();
	$jobs->put($tube, 'x', run: 5);
	$job = $jobs->reserve($tube, 0);
	$jobs->advance(4);
	$job->touch();
	$jobs->advance(4);
	$job->touch();
	$jobs->advance(6);
	$again = $jobs->reserve($tube, 0);
	same($again->body, 'x');
	thrown(NotFoundException::class, $job->touch(...));
	same([$job->hasEnded(), $job->isDone()], [true, false]);
	unset($again);
	until(fn() => ($found = $jobs->reserve($tube, 0)) !== null && $found->delete() === null);
}

function test_a_lease_that_is_forgotten_is_given_back(string $tube): void
{
	$jobs = server();
	$jobs->put($tube, 'x');
	same($jobs->reserve($tube, 0)->body, 'x');
	until(fn() => $jobs->stats($tube)['current-jobs-ready'] === 1);
	$jobs->put($tube, 'y');
	[$one, $two] = [$jobs->reserve($tube, 0), $jobs->reserve($tube, 0)];
	same([$one->body, $two->body], ['x', 'y']);
	$one->delete();
	$two->delete();
}

function test_tubes_limits_and_schedules(string $tube): void
{
	$jobs = server();
	$jobs->put($tube, '{"to":"ada"}', group: 'g');
	same(in_array($tube, $jobs->tubes(), true), true);
	$jobs->pause($tube, 0.5);
	same([$jobs->stats($tube)['pause'], $jobs->reserve($tube, 0)], [1, null]);
	$jobs->pause($tube, 0);
	$jobs->limit($tube, running: 1);
	$jobs->limit($tube, starts: 5, per: 60, burst: 2, each: true);
	$jobs->limit($tube, running: 3, group: 'g h', weight: 4);
	same(array_map(fn($one) => [$one['group'], $one['each'], $one['running'], $one['starts'], $one['weight']], $jobs->limits($tube)),
		[[null, false, 1, 0, 1], [null, true, 0, 5, 1], ['g h', false, 3, 0, 4]]);
	$job = $jobs->reserve($tube, 0);
	same($job->json(), ['to' => 'ada']);
	$jobs->put($tube, 'held');
	same($jobs->reserve($tube, 0), null);
	$jobs->limit($tube);
	$jobs->limit($tube, each: true);
	same($jobs->reserve($tube, 0)->body, 'held');
	$job->delete();

	$next = $jobs->schedule($tube, 'a b', 'all', '0 3 * * *', zone: 'Europe/Berlin', overlap: 'skip', keep: 60, end: new DateTime('2100-01-01'), attempts: 2);
	same($next instanceof DateTimeImmutable, true);
	$jobs->schedule($tube, 'a b', 'x', '@daily', mode: 'if-absent');
	[$found] = iterator_to_array($jobs->schedules($tube, body: true), false);
	same([$found['name'], $found['cron'], $found['zone'], $found['overlap'], $found['body'], $found['next']->getTimestamp()],
		['a b', '0 3 * * *', 'Europe/Berlin', 'skip', 'all', $next->getTimestamp()]);
	$jobs->pauseSchedule($tube, 'a b');
	same($jobs->schedules($tube, 'a b')->current()['paused'], true);
	$jobs->resumeSchedule($tube, 'a b');
	$id = $jobs->runSchedule($tube, 'a b');
	same($jobs->peek($tube, $id)['body'], 'all');
	$jobs->deleteSchedule($tube, 'a b');
	thrown(NotFoundException::class, fn() => $jobs->deleteSchedule($tube, 'a b'));
	$wrong = thrown(ScheduleException::class, fn() => $jobs->schedule($tube, 's', '', '99 * * * *'));
	same([$wrong->field, $wrong->byte, $wrong->word, str_contains($wrong->getMessage(), 'cron is wrong at byte')], ['cron', 0, 'BAD_SCHEDULE', true]);
}

function test_a_worker_ends_its_jobs(string $tube): void
{
	$jobs = server();
	foreach (['good', 'bad', 'mine', 'lost', 'last'] as $priority => $body)
		$jobs->put($tube, $body, priority: $priority);
	$errors = [];
	$ran = $jobs->work($tube, function (Lease $job) use ($jobs): void {
		match ($job->body) {
			'bad' => throw new RuntimeException('a reason'),
			'mine' => $job->bury('by hand'),
			'lost' => $jobs->advance(70) && $job->touch(),
			default => null,
		};
	}, most: 5, onError: function (Throwable $error, ?Lease $job) use (&$errors): void {
		$errors[] = [$job?->body, $error::class];
	});
	// The clock that one job moved made two others ready again: the one that failed, and itself.
	same([$ran, $errors], [5, [['bad', RuntimeException::class], ['lost', NotFoundException::class], ['lost', NotFoundException::class],
		['bad', RuntimeException::class]]]);
	$left = array_column(iterator_to_array($jobs->list($tube, body: true), false), null, 'body');
	same(array_keys($left), ['bad', 'mine', 'lost', 'last']);
	same([$left['bad']['state'], $left['bad']['error'], $left['bad']['left'] <= 2], ['delayed', 'a reason', true]);
	same([$left['mine']['state'], $left['mine']['error']], ['buried', 'by hand']);
	$jobs->cancel($tube, $left['last']['id']);
	$jobs->cancel($tube, $left['lost']['id']);

	// A limit of the worker's, and one of the job's.
	$jobs->advance(10);
	$jobs->work($tube, fn() => throw new DomainException(), most: 1, attempts: 3, onError: fn() => null);
	same($jobs->stat($tube, $left['bad']['id'])['state'], 'buried');
	same($jobs->list($tube, state: 'buried')->current()['error'], 'DomainException');
}

function test_tokens(string $tube): void
{
	$jobs = new Jobs(getenv('TOKENED'), getenv('TOKEN'));
	same($jobs->put('mail', 'x')->result, 'inserted');
	same(thrown(DeniedException::class, fn() => $jobs->put('other', 'x'))->word, 'DENIED');
	same($jobs->reserve('mail', 0)->delete(), null);
	thrown(DeniedException::class, fn() => $jobs->reserve('other', 0));
	same($jobs->put('mail', 'after')->result, 'inserted');
	thrown(DeniedException::class, fn() => (new Jobs(getenv('TOKENED'), 'another-token-that-is-wrong'))->put('mail', 'x'));
	$without = new Jobs(getenv('TOKENED'));
	thrown(DeniedException::class, fn() => $without->put('mail', 'x'), '--auth-file');
	thrown(DeniedException::class, fn() => $without->work('mail', fn() => null));
}

function test_tls(string $tube): void
{
	$jobs = new Jobs(getenv('TLS'), tls: ['cafile' => 'ca.pem']);
	$body = random_bytes(65535);
	$jobs->put($tube, $body);
	$job = $jobs->reserve($tube, 0);
	same($job->body === $body, true);
	$job->delete();
	same(count($jobs->putMany($tube, array_fill(0, 200, new Job($body, delay: 9)))), 200);
	same($jobs->reserve($tube, 1), null);
	same($jobs->stats()['total-connections'], $jobs->stats()['total-connections']); // one is kept for the next command
	putenv('WEEKWHEEL_TLS_CA=ca.pem');
	same((new Jobs(getenv('TLS')))->stats($tube)['current-jobs-delayed'], 200);
	putenv('WEEKWHEEL_TLS_CA');
	$lost = thrown(ConnectionException::class, fn() => (new Jobs(getenv('TLS')))->put($tube, 'x'), 'certificate verify failed');
	same($lost->isSent, false);
	thrown(ConnectionException::class, fn() => (new Jobs(str_replace('tls:', '', getenv('TLS')), timeout: 1))->put($tube, 'x'));
}

function test_unix_sockets_and_the_environment(string $tube): void
{
	same((new Jobs('unix:' . getenv('SOCKET')))->put($tube, 'x')->result, 'inserted');
	thrown(ConnectionException::class, fn() => (new Jobs('unix:nothing'))->put($tube, 'x'), 'No such file');
	putenv('WEEKWHEEL_SERVER=' . getenv('TOKENED'));
	putenv('WEEKWHEEL_TOKEN=' . getenv('TOKEN'));
	same((new Jobs())->put('mail', 'x')->result, 'inserted');
}

foreach (get_defined_functions()['user'] as $test)
	if (str_starts_with($test, 'test_') && str_contains($test, $argv[1] ?? '')) {
		try {
			$test("php-$test");
		} catch (Throwable $error) {
			fwrite(STDOUT, "$test: $error\n");
			exit(1);
		}
		fwrite(STDOUT, "passed $test\n");
	}
