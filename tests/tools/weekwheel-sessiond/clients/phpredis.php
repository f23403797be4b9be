<?php
// A site of PHP whose sessions phpredis keeps, and what it has besides.

$port = (int)$argv[1];

/* The test does what a line asks for, and answers with a line. */
function ask(string $line): void
{
	fwrite(STDOUT, "$line\n");
	same(fgets(STDIN), "done\n");
}

function same(mixed $got, mixed $expected): void
{
	if ($got === $expected)
		return;
	fwrite(STDOUT, var_export($got, true) . ", not " . var_export($expected, true) . "\n");
	debug_print_backtrace();
	exit(1);
}

/* What a page does with the session of a user: each begins and ends it. */
function page(string $id, ?callable $change = null): array
{
	session_id($id);
	session_start();
	if ($change)
		$change();
	$has = $_SESSION;
	session_write_close();
	return $has;
}

set_error_handler(function (int $number, string $message, string $file, int $line): bool {
	fwrite(STDOUT, "line $line: $message\n");
	exit(1);
});
ini_set('session.save_handler', 'redis');
ini_set('session.save_path', "tcp://127.0.0.1:$port?database=1&prefix=sess:");
ini_set('session.gc_maxlifetime', '1800');
ini_set('session.use_cookies', '0');
ini_set('session.use_strict_mode', '0');
ini_set('session.cache_limiter', '');

$client = new Redis();
same($client->connect('127.0.0.1', $port), true);
same($client->select(1), true);
same(page('one'), []);
same(page('one', function () { $_SESSION['cart'] = ['book']; }), ['cart' => ['book']]);
same($client->ttl('sess:one'), 1800);
ask('advance 1000');
same($client->ttl('sess:one'), 800);
same(page('one'), ['cart' => ['book']]);
same($client->ttl('sess:one'), 1800);
ini_set('session.lazy_write', '0');
same(page('one', function () { $_SESSION['cart'][] = 'pen'; }), ['cart' => ['book', 'pen']]);
ask('restart');
same(page('one'), ['cart' => ['book', 'pen']]);
ask('advance 1799');
same($client->exists('sess:one'), 1);
ask('advance 1');
same(page('one'), []);

// A login gets a new name, and a logout ends it.
page('two', function () { $_SESSION['user'] = 7; session_regenerate_id(true); });
$name = session_id();
same($client->keys('sess:*') === ["sess:$name"] || $client->exists('sess:two'), false);
same(page($name), ['user' => 7]);
page($name, function () { session_destroy(); });
same($client->exists("sess:$name"), 0);

// What a cache does.
same($client->set('a', 'b', ['nx', 'ex' => 100]), true);
same($client->set('a', 'c', ['nx', 'ex' => 100]), false);
same($client->setex('n', 100, '5'), true);
same($client->multi()->incr('n')->ttl('n')->get('a')->exec(), [6, 100, 'b']);
same($client->pipeline()->expire('n', 50)->ttl('n')->exec(), [true, 50]);
same($client->mget(['a', 'n', 'x']), ['b', '6', false]);
$client->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
$at = null;
$found = [];
while ($keys = $client->scan($at, '[an]', 1))
	array_push($found, ...$keys);
sort($found);
same($found, ['a', 'n']);
same($client->hGet('a', 'b'), false);
same(str_contains($client->getLastError(), 'HGET'), true);
same($client->flushDB(), true);
same($client->dbSize(), 0);
echo "told\n";
