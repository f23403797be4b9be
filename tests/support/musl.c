/*
 * What Debian's Check was compiled to call in glibc, for programs of musl: tests/install/test_musl.sh links it. Nothing here
 * is checked or cancelled, and no test needs it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

int __vfprintf_chk(FILE *file, int flag, const char *format, va_list arguments);
int __fprintf_chk(FILE *file, int flag, const char *format, ...);
int __printf_chk(int flag, const char *format, ...);
int __vsnprintf_chk(char *text, size_t size, int flag, size_t room, const char *format, va_list arguments);
int __snprintf_chk(char *text, size_t size, int flag, size_t room, const char *format, ...);
void __longjmp_chk(jmp_buf place, int value);
void __pthread_register_cancel(void *buffer);
void __pthread_unregister_cancel(void *buffer);

int __vfprintf_chk(FILE *file, int flag, const char *format, va_list arguments)
{
	(void)flag;
	return vfprintf(file, format, arguments);
}

int __fprintf_chk(FILE *file, int flag, const char *format, ...)
{
	va_list arguments;
	int result;

	va_start(arguments, format);
	result = __vfprintf_chk(file, flag, format, arguments);
	va_end(arguments);
	return result;
}

int __printf_chk(int flag, const char *format, ...)
{
	va_list arguments;
	int result;

	va_start(arguments, format);
	result = __vfprintf_chk(stdout, flag, format, arguments);
	va_end(arguments);
	return result;
}

int __vsnprintf_chk(char *text, size_t size, int flag, size_t room, const char *format, va_list arguments)
{
	(void)flag;
	(void)room;
	return vsnprintf(text, size, format, arguments);
}

int __snprintf_chk(char *text, size_t size, int flag, size_t room, const char *format, ...)
{
	va_list arguments;
	int result;

	va_start(arguments, format);
	result = __vsnprintf_chk(text, size, flag, room, format, arguments);
	va_end(arguments);
	return result;
}

void __longjmp_chk(jmp_buf place, int value)
{
	longjmp(place, value);
}

void __pthread_register_cancel(void *buffer)
{
	(void)buffer;
}

void __pthread_unregister_cancel(void *buffer)
{
	(void)buffer;
}
