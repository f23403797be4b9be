<?php
// Debian's Laravel without a skeleton: its container with the lines of config/ that docs/from-laravel.md shows, and artisan with
// queue:work.

declare(strict_types=1);

namespace Weekwheel\Tests;

use Illuminate\Bus\Dispatcher as Bus;
use Illuminate\Cache\{ArrayStore, CacheManager, Repository};
use Illuminate\Container\Container;
use Illuminate\Contracts\Bus\Dispatcher as BusContract;
use Illuminate\Contracts\Container\Container as ContainerContract;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Events\Dispatcher as EventsContract;
use Illuminate\Events\Dispatcher as Events;
use Illuminate\Console\Application;
use Illuminate\Queue\Console\WorkCommand;
use Illuminate\Queue\Failed\NullFailedJobProvider;
use Illuminate\Queue\QueueManager;
use Illuminate\Queue\QueueServiceProvider;
use Illuminate\Queue\Worker;
use Illuminate\Redis\RedisManager;
use Symfony\Component\Console\Input\ArgvInput;
use Symfony\Component\Console\Output\ConsoleOutput;

foreach (['Queue', 'Bus', 'Events', 'Cache', 'Redis', 'Session', 'Container', 'Console'] as $part)
	require "Illuminate/$part/autoload.php";
require 'Pheanstalk/autoload.php';

final class Site extends Container
{
	public function isDownForMaintenance(): bool
	{
		return false;
	}

	public function runningUnitTests(): bool
	{
		return false;
	}
}

/** What the page shows of each file of config/, and what Laravel has there itself. */
function config(): array
{
	$shown = fn(string $name): array => is_file("config_$name.php") ? require "config_$name.php" : [];
	return ['queue' => ['connections' => $shown('queue')], 'database' => $shown('database'),
		'cache' => ['prefix' => 'shop_cache', 'stores' => ['redis' => ['driver' => 'redis', 'connection' => 'cache', 'lock_connection' => 'default']]]];
}

function site(): Site
{
	$site = new Site();
	Container::setInstance($site);
	$site->instance(ContainerContract::class, $site);
	$site->instance('config', new class(config()) implements \ArrayAccess {
		public function __construct(private array $all) {}
		public function get(string $name, mixed $default = null): mixed { return data_get($this->all, $name, $default); }
		public function offsetExists(mixed $name): bool { return $this->get($name) !== null; }
		public function offsetGet(mixed $name): mixed { return $this->get($name); }
		public function offsetSet(mixed $name, mixed $value): void { data_set($this->all, $name, $value); }
		public function offsetUnset(mixed $name): void {}
	});
	$site->singleton('events', fn() => new Events($site));
	$site->alias('events', EventsContract::class);
	$site->singleton('queue', function () use ($site) {
		$manager = new QueueManager($site);
		(new QueueServiceProvider($site))->registerConnectors($manager);
		return $manager;
	});
	$site->singleton(BusContract::class, fn() => new Bus($site, fn($connection = null) => $site['queue']->connection($connection)));
	$site->singleton('redis', fn() => new RedisManager($site, $site['config']['database.redis.client'], $site['config']['database.redis']));
	$site->singleton('cache', fn() => new CacheManager($site));
	$site->singleton('queue.failer', fn() => new NullFailedJobProvider());
	$site->singleton(ExceptionHandler::class, fn() => new class implements ExceptionHandler {
		public function report(\Throwable $e) { fwrite(STDERR, get_class($e) . ': ' . $e->getMessage() . "\n"); }
		public function shouldReport(\Throwable $e) { return true; }
		public function render($request, \Throwable $e) {}
		public function renderForConsole($output, \Throwable $e) {}
	});
	return $site;
}

/** As "php artisan": its words are those behind. */
function artisan(Site $site, string ...$words): int
{
	$worker = new Worker($site['queue'], $site['events'], $site[ExceptionHandler::class], fn() => false);
	$artisan = new Application($site, $site['events'], '8');
	$artisan->add(new WorkCommand($worker, new Repository(new ArrayStore())));
	return $artisan->run(new ArgvInput(['artisan', ...$words]), new ConsoleOutput());
}
