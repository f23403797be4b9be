<?php
// A site of Laravel whose cache, locks, throttles and sessions weekwheel-sessiond keeps.

declare(strict_types=1);

require getenv('SUPPORT') . '/laravel.php';

use Illuminate\Cache\RateLimiter;
use Illuminate\Session\{CacheBasedSessionHandler, Store};
use function Weekwheel\Tests\site;

/* The test does what a line asks for, and answers with a line. */
function ask(string $line): void
{
	fwrite(STDOUT, "$line\n");
	same(fgets(STDIN), "done\n");
}

function same(mixed $got, mixed $expected): void
{
	if ($got !== $expected)
		throw new LogicException(var_export($got, true) . ', not ' . var_export($expected, true));
}

/** A page of a visitor. */
function page(Closure $act, string $id): mixed
{
	$cache = clone site()['cache']->store('redis');
	$cache->getStore()->setConnection('default');
	$session = new Store('shop', new CacheBasedSessionHandler($cache, 30), $id);
	$session->start();
	$value = $act($session);
	$session->save();
	return $value;
}

// As Laravel does.
set_error_handler(fn(int $level, string $message) => error_reporting() & $level ? throw new ErrorException($message, 0, $level) : false);
$site = site();
$cache = $site['cache']->store('redis');

// The cache.
same($cache->get('a'), null);
same($cache->put('a', ['b' => 1.5], 60), true);
same($cache->get('a'), ['b' => 1.5]);
same([$cache->add('once', 1, 60), $cache->add('once', 2, 60), $cache->get('once')], [true, false, '1']);
same([$cache->increment('n'), $cache->increment('n', 5), $cache->decrement('n')], [1, 6, 5]);
same($cache->putMany(['x' => 'y', 'z' => 'w'], 60), true);
same($cache->many(['x', 'z', 'none']), ['x' => 'y', 'z' => 'w', 'none' => null]);
same($cache->remember('r', 60, fn() => 'made'), 'made');
same($cache->remember('r', 60, fn() => 'again'), 'made');
same($cache->rememberForever('f', fn() => 'kept'), 'kept');
same([$cache->pull('x'), $cache->get('x'), $cache->forget('z'), $cache->has('z')], ['y', null, true, false]);
ask('advance 60');
same([$cache->get('a'), $cache->get('once'), $cache->get('f'), $cache->add('once', 3, 60)], [null, null, 'kept', true]);

// Locks.
$lock = $cache->lock('report', 10);
same([$lock->get(), $cache->lock('report', 10)->get(), $lock->release(), $cache->lock('report', 10)->get()], [true, false, true, true]);
same($lock->release(), false);
ask('advance 10');
$lock = $cache->lock('report', 10);
same([$lock->get(), $cache->restoreLock('report', $lock->owner())->release()], [true, true]);
same($cache->lock('report', 10)->block(5, fn() => 'alone'), 'alone');
same($cache->lock('report', 10)->get(fn() => 'at once'), 'at once');

// The throttle of a login, which is that of a route, too.
$limiter = new RateLimiter($cache);
for ($i = 1; $i <= 3; $i++) {
	same([$limiter->tooManyAttempts('login:ada', 3), $limiter->hit('login:ada', 60)], [false, $i]);
}
same([$limiter->tooManyAttempts('login:ada', 3), $limiter->remaining('login:ada', 3), $limiter->attempt('login:ada', 3, fn() => true)], [true, 0, false]);
same($limiter->availableIn('login:ada') > 0, true);
ask('advance 60');
same([$limiter->attempts('login:ada'), $limiter->attempt('login:ada', 3, fn() => 'in')], [0, 'in']);

// Sessions: 30 minutes without use.
[$id, $other] = [str_repeat('a', 40), str_repeat('b', 40)];
page(fn(Store $session) => $session->put('cart', ['book']), $id);
page(fn(Store $session) => $session->put('cart', ['pen']), $other);
ask('advance 1799');
same(page(fn(Store $session) => $session->get('cart'), $id), ['book']);
ask('restart');
ask('advance 1799');
same(page(fn(Store $session) => $session->get('cart'), $id), ['book']);
same(page(fn(Store $session) => $session->get('cart'), $other), null);
page(fn(Store $session) => $session->invalidate(), $id);
same(page(fn(Store $session) => $session->get('cart'), $id), null);

same([$cache->flush(), $cache->get('f')], [true, null]);

// Jobs at once, and what is refused. phpredis cannot go on behind a refused SSCAN.
$redis = $site['redis']->connection('default');
same($redis->funnel('key')->limit(1)->releaseAfter(60)->block(0)->then(function () use ($redis) {
	return $redis->funnel('key')->limit(1)->releaseAfter(60)->block(0)->then(fn() => 'two', fn() => 'one');
}), 'one');
same($redis->funnel('key')->limit(1)->block(0)->then(fn() => 'free', fn() => 'taken'), 'free');
foreach ([ErrorException::class => fn() => $redis->throttle('k')->allow(1)->every(60)->block(0)->then(fn() => 1, fn() => 0),
	RedisException::class => fn() => $cache->tags('t')->flush()] as $class => $refused)
	try {
		$refused();
		same('refused', true);
	} catch (ErrorException | RedisException $error) {
		same($error::class, $class);
	}

echo "told\n";
