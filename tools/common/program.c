/* How a program begins: see program.h. */
#include "tools/common/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/common/message.h"

/* Opened the usual way round, they would hide that nothing can be read or written there. */
static void open_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		while (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			/* The lowest free number is this one. Without /dev, a folder cannot be written either. */
			if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0 && open("/", O_RDONLY) < 0)
				_exit(1);
}

static void end(int number)
{
	_exit(128 + number);
}

void program_begin(const char *name, enum program_children children)
{
	sigset_t none;

	message_program = name;
	open_standard();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/* While it is ignored, as a parent may leave it, ended children vanish: good for those that are not its own. */
	signal(SIGCHLD, children == PROGRAM_CHILDLESS ? SIG_IGN : SIG_DFL);
	if (getpid() != 1)
		return;
	signal(SIGINT, end);
	signal(SIGTERM, end);
}

void program_give_back(void)
{
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
}
