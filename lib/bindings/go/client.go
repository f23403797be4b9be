// Package weekwheel is a client of weekwheeld, the server of delayed and repeated jobs, and of beanstalkd without the verbs of
// weekwheeld's own.
//
// A Client puts jobs, moves, cancels and shows them. Reserve takes a job as a Lease, and a Worker runs a function for each job.
// Both may be used by any number of goroutines: each command, and each lease until its end, has a connection to itself, which
// the client keeps for the next.
//
// Errors are for errors.Is: ErrNotFound, ErrStale, ErrDenied and others say why the server has not carried out a command.
// ErrConnection says that there was no connection, or that it broke; if the command was sent already, the error is
// ErrUnknownOutcome as well. An argument that the server would misread is ErrInvalid, and is not sent.
//
// Lengths of time are exact to the nanosecond, where the verb is not beanstalkd's own: it counts whole seconds, which are
// rounded up.
package weekwheel

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

// DefaultAddress is where a server listens by default.
const DefaultAddress = "127.0.0.1:11300"

// Options of a connection. The zero value has the defaults.
type Options struct {
	// Token is for a server with --auth-file. The default is that of the environment variable WEEKWHEEL_TOKEN.
	Token string
	// TLS is for addresses that begin with tls:. The default has the files of WEEKWHEEL_TLS_CA, _CERT and _KEY.
	TLS *tls.Config
	// Timeout is the patience with a silent server: for a connection, and for each answer but that of a reserve.
	// The default is 10 s.
	Timeout time.Duration
	// MaxIdle is how many connections are kept without use, 16 by default.
	MaxIdle int
	// Code lets the client reserve only jobs up to this code, or without one; 0: all jobs.
	Code uint32
}

// A Client is a pool of connections to one server. It is safe for concurrent use.
type Client struct {
	address string
	network string
	host    string // or a path
	options Options

	mutex    sync.Mutex
	idle     []*link
	links    map[*link]struct{} // all of them
	isClosed bool
}

var (
	addressForm = regexp.MustCompile(`^(tls:)?(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$`)
	tokenForm   = regexp.MustCompile(`^[!-~]{16,200}$`)
)

// Dial connects to the server and says the token. The address is HOST:PORT, [IPV6]:PORT, tls: and one of these, or unix:PATH.
// If it is empty, it is that of the environment variable WEEKWHEEL_SERVER, or DefaultAddress. The context is for this
// connection only.
func Dial(ctx context.Context, address string, options *Options) (*Client, error) {
	c := &Client{address: address, links: map[*link]struct{}{}}
	if options != nil {
		c.options = *options
	}
	if err := c.configure(); err != nil {
		return nil, err
	}
	l, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.give(l)
	return c, nil
}

func (c *Client) configure() error {
	o := &c.options
	c.address = first(c.address, os.Getenv("WEEKWHEEL_SERVER"), DefaultAddress)
	if o.Token = first(o.Token, os.Getenv("WEEKWHEEL_TOKEN")); o.Token != "" && !tokenForm.MatchString(o.Token) {
		return invalid("a token is 16 to 200 printable characters without a space")
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.MaxIdle <= 0 {
		o.MaxIdle = 16
	}
	c.network, c.host = "unix", strings.TrimPrefix(c.address, "unix:")
	if c.host != c.address {
		o.TLS = nil
		return nil
	}
	parts := addressForm.FindStringSubmatch(c.address)
	if parts == nil {
		return invalid("%q is not an address: HOST:PORT, [IPV6]:PORT, tls:HOST:PORT or unix:PATH", c.address)
	}
	name := first(parts[2], parts[3])
	c.network, c.host = "tcp", net.JoinHostPort(name, parts[4])
	if parts[1] == "" {
		o.TLS = nil
		return nil
	}
	return c.configureTLS(name)
}

func (c *Client) configureTLS(name string) error {
	var err error
	if c.options.TLS == nil {
		if c.options.TLS, err = tlsOfEnvironment(); err != nil {
			return err
		}
	}
	c.options.TLS = c.options.TLS.Clone()
	if c.options.TLS.ServerName == "" {
		c.options.TLS.ServerName = name
	}
	return nil
}

func tlsOfEnvironment() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := os.Getenv("WEEKWHEEL_TLS_CA"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("weekwheel: %w: WEEKWHEEL_TLS_CA: %v", ErrInvalid, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, invalid("WEEKWHEEL_TLS_CA: %s has no certificate", file)
		}
	}
	if file := os.Getenv("WEEKWHEEL_TLS_CERT"); file != "" {
		pair, err := tls.LoadX509KeyPair(file, first(os.Getenv("WEEKWHEEL_TLS_KEY"), file))
		if err != nil {
			return nil, fmt.Errorf("weekwheel: %w: WEEKWHEEL_TLS_CERT: %v", ErrInvalid, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// connect makes a connection and says the token.
func (c *Client) connect(ctx context.Context) (*link, error) {
	// A worker waits for hours. Without this it would not notice that the machine is gone.
	dialer := net.Dialer{Timeout: c.options.Timeout, KeepAlive: 30 * time.Second}
	socket, err := dialer.DialContext(ctx, c.network, c.host)
	if err != nil {
		return nil, &ConnectionError{c.address, false, cause(ctx, err)}
	}
	conn := socket
	if c.options.TLS != nil {
		conn = tls.Client(socket, c.options.TLS)
	}
	l := newLink(c.address, socket, conn, c.options.Timeout)
	l.code = c.options.Code
	if err := c.register(l); err != nil {
		return nil, err
	}
	if err := c.introduce(ctx, l); err != nil {
		c.forget(l)
		return nil, unsent(err)
	}
	return l, nil
}

func (c *Client) introduce(ctx context.Context, l *link) error {
	if secure, is := l.conn.(*tls.Conn); is {
		limited, cancel := context.WithTimeout(ctx, c.options.Timeout)
		defer cancel()
		if err := secure.HandshakeContext(limited); err != nil {
			return &ConnectionError{c.address, false, cause(ctx, err)}
		}
	}
	if c.options.Token == "" {
		return nil
	}
	// Wrong tokens are answered late.
	l.span += 10 * time.Second
	a, err := l.exchange(ctx, []byte("auth "+c.options.Token+"\r\n"))
	l.span -= 10 * time.Second
	if err == nil && a.line != "OK" {
		err = refusal("the token", a.line)
	}
	return err
}

func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// ---- The pool

func (c *Client) register(l *link) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.isClosed {
		l.shut()
		return &ConnectionError{c.address, false, ErrClosed}
	}
	c.links[l] = struct{}{}
	return nil
}

func (c *Client) forget(l *link) {
	c.mutex.Lock()
	delete(c.links, l)
	c.mutex.Unlock()
	l.shut()
}

// take returns a connection for the caller alone.
func (c *Client) take(ctx context.Context) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		c.mutex.Lock()
		count := len(c.idle)
		if c.isClosed || count == 0 {
			c.mutex.Unlock()
			return c.connect(ctx)
		}
		l := c.idle[count-1]
		c.idle = c.idle[:count-1]
		c.mutex.Unlock()
		if isAlive(l.socket) {
			return l, nil
		}
		c.forget(l)
	}
}

// give takes a connection back, unless it is not to be used again or there are enough.
func (c *Client) give(l *link) {
	c.mutex.Lock()
	if !l.isDirty && !c.isClosed && len(c.idle) < c.options.MaxIdle {
		c.idle = append(c.idle, l)
		c.mutex.Unlock()
		return
	}
	c.mutex.Unlock()
	c.forget(l)
}

// Close closes all connections. What is under way ends with ErrClosed; jobs that were reserved are ready again. A second Close
// does nothing.
func (c *Client) Close() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.isClosed, c.idle = true, nil
	for l := range c.links {
		l.shut()
	}
	return nil
}

// ask carries out a request on a connection of its own.
func (c *Client) ask(ctx context.Context, r *request) (answer, error) {
	if r.err != nil {
		return answer{}, r.err
	}
	l, err := c.take(ctx)
	if err != nil {
		return answer{}, err
	}
	defer c.give(l)
	a, err := l.ask(ctx, r)
	return a, c.explained(err)
}

// explained says of an error that Close was the cause.
func (c *Client) explained(err error) error {
	lost, is := err.(*ConnectionError)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if is && c.isClosed {
		return &ConnectionError{lost.Address, lost.Sent, ErrClosed}
	}
	return err
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
