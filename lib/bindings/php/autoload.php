<?php
// Finds the classes where there is no Composer.

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
	$file = __DIR__ . '/src/' . substr($class, strlen('Weekwheel\\')) . '.php';
	if (str_starts_with($class, 'Weekwheel\\') && is_file($file))
		require $file;
});
