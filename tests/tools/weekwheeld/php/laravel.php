<?php
// A site of Laravel whose queue is weekwheeld, by its driver for beanstalkd: "push" puts jobs as a page does, and "work" is
// "php artisan". A job says in the file "ran" what it does.

declare(strict_types=1);

require getenv('SUPPORT') . '/laravel.php';

use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Bus\Dispatcher;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Queue\InteractsWithQueue;
use function Weekwheel\Tests\{artisan, site};

function say(string $what): void
{
	file_put_contents('ran', "$what\n", FILE_APPEND);
}

final class Remind implements ShouldQueue
{
	use InteractsWithQueue, Queueable;

	public int $backoff = 1;

	public function __construct(private readonly string $whom, private readonly string $how = 'well')
	{
	}

	public function handle(): void
	{
		say("$this->whom {$this->attempts()}");
		if ($this->how === 'fail' || ($this->how === 'fail once' && $this->attempts() === 1))
			throw new RuntimeException('no way');
		if ($this->how === 'release' && $this->attempts() === 1)
			$this->release(1);
		if ($this->how === 'bury' && $this->attempts() === 1)
			$this->job->bury();
		if ($this->how === 'hang' && $this->attempts() === 1)
			sleep(1000);
		if ($this->how === 'wait')
			for ($i = 0; $i < 12000 && !file_exists('go on'); $i++)
				usleep(10000);
	}

	public function failed(Throwable $error): void
	{
		say("$this->whom failed: {$error->getMessage()}");
	}
}

$site = site();
[, $what, $whom] = [...$argv, null, null];
$queue = $site['queue']->connection('beanstalkd');
match ($what) {
	'push' => $site[Dispatcher::class]->dispatch((new Remind($whom, $argv[3] ?? 'well'))->onConnection('beanstalkd')->delay((int)($argv[4] ?? 0) ?: null)),
	'size' => print($queue->size() . "\n"),
	'work' => exit(artisan($site, 'queue:work', 'beanstalkd', ...array_slice($argv, 2))),
};
