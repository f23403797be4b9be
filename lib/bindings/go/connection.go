// A connection: bytes with patience, commands with their answers, and the end of a context in the middle of one.

package weekwheel

import (
	"bufio"
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	chunk     = 64 << 10 // what is written at a time: each has the patience for itself
	blockMost = 1 << 30  // the longest body that a server takes
)

// A link is one connection. One goroutine at a time uses it; shut may come from any.
type link struct {
	address  string
	conn     net.Conn // with TLS, if there is any
	socket   net.Conn // below TLS
	reader   *bufio.Reader
	span     time.Duration // the patience with a silent server
	patience time.Duration // that with this command; 0: for ever
	used     string
	watched  []string
	hasOwn   *bool // verbs of weekwheeld's own
	isDirty  bool  // it is not to be used again
	// Answers about jobs have their headers.
	takesHeaders bool
	code         uint32 // 0: it takes all jobs

	mutex   sync.Mutex
	isEnded bool // what is under way
}

type answer struct {
	line  string
	words []string
	body  []byte
	// Of a job, before its body.
	headers map[string]string
}

func newLink(address string, socket, conn net.Conn, span time.Duration) *link {
	l := &link{address: address, conn: conn, socket: socket, span: span, used: "default", watched: []string{"default"}}
	l.reader = bufio.NewReader(l)
	return l
}

// ---- Bytes, for which a server may take its time

// extend begins the patience anew, unless the context has ended.
func (l *link) extend() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch {
	case l.isEnded:
	case l.patience == 0:
		l.conn.SetDeadline(time.Time{})
	default:
		l.conn.SetDeadline(time.Now().Add(l.patience))
	}
}

// end lets what is under way fail at once.
func (l *link) end() {
	l.mutex.Lock()
	l.isEnded = true
	l.conn.SetDeadline(time.Unix(1, 0))
	l.mutex.Unlock()
}

// Read is for the reader.
func (l *link) Read(b []byte) (int, error) {
	l.extend()
	return l.conn.Read(b)
}

func (l *link) write(b []byte) error {
	for len(b) > 0 {
		n := len(b)
		if n > chunk {
			n = chunk
		}
		l.extend()
		n, err := l.conn.Write(b[:n])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// watch ends what is under way when the context ends, until the function that it returns is called.
func (l *link) watch(ctx context.Context) (unwatch func()) {
	l.mutex.Lock()
	l.isEnded = false
	l.mutex.Unlock()
	if ctx.Done() == nil {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
			l.end()
		case <-stop:
		}
	}()
	return func() {
		close(stop)
		<-stopped
		l.mutex.Lock()
		l.isEnded = false
		l.mutex.Unlock()
	}
}

func (l *link) shut() {
	// A goodbye of TLS could wait.
	l.socket.Close()
}

// ---- Commands and answers

// blocks has how many words stand before the length of the block behind an answer.
var blocks = map[string]int{"OK": 1, "FOUND": 2, "RESERVED": 2}

func (l *link) answer() (a answer, err error) {
	line, err := l.reader.ReadSlice('\n')
	if err != nil {
		return a, err
	}
	a.line = strings.TrimRight(string(line), "\r\n")
	a.words = strings.Split(a.line, " ")
	if at, found := blocks[a.words[0]]; found && len(a.words) > at {
		size, err := strconv.ParseUint(a.words[at], 10, 32)
		if err != nil || size > blockMost {
			return a, errUnexpected
		}
		a.body = make([]byte, size+2)
		if _, err = io.ReadFull(l.reader, a.body); err != nil {
			return a, err
		}
		return a.split(at, size)
	}
	return a, nil
}

// split takes the headers of a job, which are the first bytes of its block.
func (a answer) split(at int, size uint64) (answer, error) {
	var headers uint64
	if at == 2 && len(a.words) > 3 {
		var err error
		if headers, err = strconv.ParseUint(a.words[3], 10, 32); err != nil || headers > size {
			return a, errUnexpected
		}
	}
	for _, line := range strings.Split(string(a.body[:headers]), "\n") {
		if name, value, found := strings.Cut(line, ": "); found {
			if a.headers == nil {
				a.headers = map[string]string{}
			}
			a.headers[name] = value
		}
	}
	a.body = a.body[headers:size:size]
	return a, nil
}

// wantHeaders lets jobs come with their headers. beanstalkd and older servers do not know that, and have none.
func (l *link) wantHeaders(ctx context.Context) error {
	if l.takesHeaders {
		return nil
	}
	_, err := l.exchange(ctx, []byte("headers\r\n"))
	if err == nil && l.code > 0 {
		_, err = l.ask(ctx, command("code").number(uint64(l.code)).expect("CODE"))
	}
	l.takesHeaders = err == nil
	return unsent(err)
}

// broken makes the error of a connection that cannot be used any more.
func (l *link) broken(ctx context.Context, isSent bool, err error) error {
	l.isDirty = true
	l.shut()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return &ConnectionError{l.address, isSent, err}
}

// exchange sends bytes and returns the answer to them.
func (l *link) exchange(ctx context.Context, parts ...[]byte) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	l.patience = l.span
	defer l.watch(ctx)()
	for _, part := range parts {
		if err := l.write(part); err != nil {
			return answer{}, l.broken(ctx, true, err)
		}
	}
	a, err := l.answer()
	if err != nil {
		return a, l.broken(ctx, true, err)
	}
	return a, nil
}

// A request is a command and what it is about.
type request struct {
	*words
	tube     string // the tube that has to be in use; empty: it does not matter
	body     []byte
	hasBody  bool
	expected []string
}

func (w *words) in(tube string, expected ...string) *request {
	if tube == "" {
		tube = "default"
	}
	if err := checkTube(tube); err != nil && w.err == nil {
		w.err = err
	}
	return &request{words: w, tube: tube, expected: expected}
}

func (w *words) expect(expected ...string) *request { return &request{words: w, expected: expected} }

func (r *request) with(body []byte) *request {
	if uint64(len(body)) > spanMost {
		r.refuse("a body has at most %d bytes", uint32(spanMost))
	}
	r.body, r.hasBody = body, true
	return r
}

// ask carries out a request. Its errors are refusals, or leave the connection dirty.
func (l *link) ask(ctx context.Context, r *request) (answer, error) {
	line, err := r.sent()
	if err != nil {
		return answer{}, err
	}
	name, _, _ := strings.Cut(r.line.String(), " ")
	if err := l.prepare(ctx, r, name); err != nil {
		return answer{}, unsent(err)
	}
	parts := [][]byte{line}
	if r.hasBody && len(r.body) < chunk {
		parts[0] = append(append(line, r.body...), "\r\n"...)
	} else if r.hasBody {
		parts = append(parts, r.body, []byte("\r\n"))
	}
	a, err := l.exchange(ctx, parts...)
	if err != nil {
		return a, err
	}
	for _, word := range r.expected {
		if a.words[0] == word {
			return a, nil
		}
	}
	return a, refusal(name, a.line)
}

// prepare asks whether the server knows the verb, and uses its tube.
func (l *link) prepare(ctx context.Context, r *request, name string) error {
	if r.hasBody && name != "put" {
		if err := l.needOwn(ctx, name); err != nil {
			return err
		}
	}
	if r.tube == "" || r.tube == l.used {
		return nil
	}
	// If the server refuses that, the command must not be carried out in another tube.
	a, err := l.exchange(ctx, []byte("use "+r.tube+"\r\n"))
	if err != nil {
		return err
	}
	if a.words[0] != "USING" {
		return refusal("use "+r.tube, a.line)
	}
	l.used = r.tube
	return nil
}

// needOwn refuses a body for a server that does not know the verb: it would take the body for commands.
func (l *link) needOwn(ctx context.Context, name string) error {
	if l.hasOwn == nil {
		a, err := l.exchange(ctx, []byte("stats-key weekwheel\r\n"))
		if err != nil {
			return err
		}
		has := a.words[0] != "UNKNOWN_COMMAND" && a.words[0] != "BAD_FORMAT"
		l.hasOwn = &has
	}
	if !*l.hasOwn {
		return refusal(name, "UNKNOWN_COMMAND")
	}
	return nil
}

// unsent says of an error that the command itself has not been sent.
func unsent(err error) error {
	if lost, is := err.(*ConnectionError); is {
		lost.Sent = false
	}
	return err
}

// attend watches these tubes and no others. A refusal leaves the connection dirty: it watches others then.
func (l *link) attend(ctx context.Context, tubes []string) error {
	var lines []string
	for _, tube := range tubes {
		if !contains(l.watched, tube) {
			lines = append(lines, "watch "+tube)
		}
	}
	for _, tube := range l.watched {
		if !contains(tubes, tube) {
			lines = append(lines, "ignore "+tube)
		}
	}
	for _, line := range lines {
		a, err := l.exchange(ctx, []byte(line+"\r\n"))
		if err == nil && a.words[0] != "WATCHING" {
			err = refusal(line, a.line)
		}
		if err != nil {
			l.isDirty = true
			return unsent(err)
		}
	}
	l.watched = tubes
	return nil
}

// await sends a reserve and has this patience with the answer, or any if that is 0. If the context ends before the answer begins,
// the connection is closed, and the server gives the job back, if it sends one at this moment. Once the answer has begun, it is
// read to its end.
func (l *link) await(ctx context.Context, line string, patience time.Duration) (a answer, err error) {
	l.patience = patience
	if err = l.begin(ctx, line); err == nil {
		l.patience = l.span
		a, err = l.answer()
		ctx = context.Background()
	}
	if err == nil {
		return a, nil
	}
	err = l.broken(ctx, true, err)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return a, err
}

func (l *link) begin(ctx context.Context, line string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer l.watch(ctx)()
	if err := l.write([]byte(line + "\r\n")); err != nil {
		return err
	}
	_, err := l.reader.Peek(1)
	return err
}

func unique(list []string) (found []string) {
	for _, one := range list {
		if !contains(found, one) {
			found = append(found, one)
		}
	}
	return found
}

func contains(list []string, wanted string) bool {
	for _, one := range list {
		if one == wanted {
			return true
		}
	}
	return false
}
