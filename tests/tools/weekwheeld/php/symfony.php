<?php
// A site of Symfony whose messages weekwheeld keeps, by Messenger's transport for beanstalkd at DSN: "push" sends a message as a
// page does, and "work" is "php bin/console messenger:consume async". A message says in the file "ran" what becomes of it.

declare(strict_types=1);

foreach (['Messenger', 'Messenger/Bridge/Beanstalkd', 'EventDispatcher', 'Console'] as $part)
	require "Symfony/Component/$part/autoload.php";

use Psr\Container\ContainerInterface;
use Symfony\Component\Console\{Application, Input\ArgvInput};
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\Messenger\{Envelope, MessageBus, RoutableMessageBus};
use Symfony\Component\Messenger\Bridge\Beanstalkd\Transport\BeanstalkdTransportFactory;
use Symfony\Component\Messenger\Command\ConsumeMessagesCommand;
use Symfony\Component\Messenger\EventListener\{DispatchPcntlSignalListener, SendFailedMessageForRetryListener, SendFailedMessageToFailureTransportListener,
	StopWorkerOnSigtermSignalListener};
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\Middleware\{HandleMessageMiddleware, SendMessageMiddleware};
use Symfony\Component\Messenger\Retry\MultiplierRetryStrategy;
use Symfony\Component\Messenger\Stamp\{DelayStamp, RedeliveryStamp};
use Symfony\Component\Messenger\Transport\Sender\SendersLocator;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

final class Remind
{
	public function __construct(public readonly string $whom, public readonly string $how)
	{
	}
}

function say(string $what): void
{
	file_put_contents('ran', "$what\n", FILE_APPEND);
}

function services(array $all): ContainerInterface
{
	return new class($all) implements ContainerInterface {
		public function __construct(private readonly array $all) {}
		public function get(string $id) { return $this->all[$id]; }
		public function has(string $id): bool { return isset($this->all[$id]); }
	};
}

function handle(Remind $message): void
{
	say($message->whom);
	if ($message->how === 'fail' || ($message->how === 'fail once' && !file_exists('failed once') && touch('failed once')))
		throw new RuntimeException('no way');
	if ($message->how === 'hang' && !file_exists('hung') && touch('hung'))
		sleep(1000);
	if ($message->how === 'wait')
		for ($i = 0; $i < 12000 && !file_exists('go on'); $i++)
			usleep(10000);
}

$factory = new BeanstalkdTransportFactory();
$transport = fn(string $tube) => $factory->createTransport(str_replace('messages', $tube, getenv('DSN')), [], new PhpSerializer());
$transports = services(['async' => $transport('messages'), 'failed' => $transport('failed')]);
$bus = new MessageBus([new SendMessageMiddleware(new SendersLocator([Remind::class => ['async']], $transports)),
	new HandleMessageMiddleware(new HandlersLocator([Remind::class => [handle(...)]]))]);
$events = new EventDispatcher();
$events->addSubscriber(new SendFailedMessageForRetryListener($transports, services(['async' => new MultiplierRetryStrategy(1, 1000)])));
$events->addSubscriber(new SendFailedMessageToFailureTransportListener(services(['async' => $transports->get('failed')])));
$events->addSubscriber(new StopWorkerOnSigtermSignalListener());
$events->addSubscriber(new DispatchPcntlSignalListener());
if ($argv[1] === 'push')
	$bus->dispatch(new Envelope(new Remind($argv[2], $argv[3] ?? 'well')), isset($argv[4]) ? [new DelayStamp((int)$argv[4] * 1000)] : []);
else {
	$console = new Application();
	$console->add(new ConsumeMessagesCommand(new RoutableMessageBus(services([]), $bus), $transports, $events));
	$console->run(new ArgvInput(['console', 'messenger:consume', 'async', '--sleep=0.05', ...array_slice($argv, 2)]));
}
