// Whether a connection on which no answer is awaited is still one.

//go:build unix

package weekwheel

import (
	"net"
	"syscall"
)

// isAlive looks whether the server has closed an idle connection, as it does when it ends: a command would be sent in vain, and
// nobody would know its outcome.
func isAlive(socket net.Conn) bool {
	raw, is := socket.(syscall.Conn)
	if !is {
		return true
	}
	access, err := raw.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = access.Control(func(descriptor uintptr) {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(descriptor), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		// TLS may have sent what no command asked for.
		alive = n > 0 || err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR
	})
	return err == nil && alive
}
