// Elsewhere the next command shows whether a connection is still one.

//go:build !unix

package weekwheel

import "net"

func isAlive(net.Conn) bool { return true }
