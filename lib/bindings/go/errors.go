// What can go wrong, and how errors.Is and errors.As tell.

package weekwheel

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// What errors.Is finds in the errors of this package.
var (
	// ErrConnection: there is no connection, or it broke. The next call connects again.
	ErrConnection = errors.New("no connection to the server")
	// ErrUnknownOutcome: the connection or the context ended when the command had been sent. It may have been carried
	// out. Repeat a put with a key; ask what became of anything else.
	ErrUnknownOutcome = errors.New("the command may have been carried out")
	// ErrClosed: this client was closed.
	ErrClosed = errors.New("the client is closed")
	// ErrInvalid: an argument is wrong, and nothing was sent.
	ErrInvalid = errors.New("invalid argument")
	// ErrNoJob: no job came in time.
	ErrNoJob = errors.New("no job came in time")
	// ErrLeaseEnded: the lease was ended before, or its connection broke: the server gives the job to another worker.
	ErrLeaseEnded = errors.New("the lease has ended")

	// ErrNotFound: there is no such job or schedule, or another connection has the job.
	ErrNotFound = errors.New("there is none, or another connection has it reserved")
	// ErrStale: the job has another version.
	ErrStale = errors.New("it has another version now: look at it again")
	// ErrReserved: a worker runs the job.
	ErrReserved = errors.New("a worker runs it: wait until that ends, or delete it")
	// ErrDenied: the token lacks the right, or the server wants one.
	ErrDenied = errors.New("the server wants a token with the right to do this: set Options.Token, and look at its --auth-file")
	// ErrTooBig: the body is longer than the server allows.
	ErrTooBig = errors.New("make the body shorter, or start the server with a larger --max-job-size")
	// ErrFull: the server's memory or disk, or a quota, is full.
	ErrFull = errors.New("the server or its Redis is out of memory, its disk or a quota is full: its log says which")
	// ErrDraining: the server takes no new jobs.
	ErrDraining = errors.New("the server takes no new jobs: try again after its restart")
	// ErrUnsupported: the server does not know the command.
	ErrUnsupported = errors.New("this server does not know the command: it may be beanstalkd, or older")
	// ErrBadFormat: the server refuses the form of the command.
	ErrBadFormat = errors.New("an argument is out of range, or the server is older; where it delivers over HTTP, a job has to be a request")
	// ErrServerFailed: the server could not read or write its store.
	ErrServerFailed = errors.New("the server could not read or write its store: see its log")
	// ErrBadSchedule: an expression, a zone or a name is wrong. The error is a *ScheduleError.
	ErrBadSchedule = errors.New("the schedule is wrong")

	errUnexpected = errors.New("this package does not know the answer")
)

var meanings = map[string]error{
	"NOT_FOUND":       ErrNotFound,
	"STALE":           ErrStale,
	"RESERVED":        ErrReserved,
	"DENIED":          ErrDenied,
	"JOB_TOO_BIG":     ErrTooBig,
	"OUT_OF_MEMORY":   ErrFull,
	"DRAINING":        ErrDraining,
	"UNKNOWN_COMMAND": ErrUnsupported,
	"BAD_FORMAT":      ErrBadFormat,
	"EXPECTED_CRLF":   ErrBadFormat,
	"INTERNAL_ERROR":  ErrServerFailed,
}

// A ServerError is a refusal: the server has not carried out the command. errors.Is tells which, such as ErrNotFound.
type ServerError struct {
	Command string // what was asked for
	Answer  string // the server's line
	kind    error
}

func (e *ServerError) Error() string {
	return fmt.Sprintf("weekwheel: %s: %v (%s)", e.Command, e.kind, e.Answer)
}

// Unwrap returns the error that errors.Is finds.
func (e *ServerError) Unwrap() error { return e.kind }

// A ScheduleError says where a schedule is wrong.
type ScheduleError struct {
	Field  string // cron, zone or name
	At     int    // the byte of it
	Reason string
}

func (e *ScheduleError) Error() string {
	return fmt.Sprintf("weekwheel: %s is wrong at byte %d: %s", e.Field, e.At, e.Reason)
}

// Unwrap returns ErrBadSchedule.
func (e *ScheduleError) Unwrap() error { return ErrBadSchedule }

// A ConnectionError is what becomes of a command when there is no connection, or when it or the context ends. It is
// ErrConnection and, if the command had been sent, ErrUnknownOutcome as well.
type ConnectionError struct {
	Address string
	Sent    bool // the command may have been carried out
	Err     error
}

func (e *ConnectionError) Error() string {
	if e.Sent {
		return fmt.Sprintf("weekwheel: the connection to %s ended: %v; %v", e.Address, e.Err, ErrUnknownOutcome)
	}
	return fmt.Sprintf("weekwheel: there is no connection to %s: %v", e.Address, e.Err)
}

// Unwrap returns the cause: an error of package net, io.EOF, or that of the context.
func (e *ConnectionError) Unwrap() error { return e.Err }

// Is finds ErrConnection and ErrUnknownOutcome.
func (e *ConnectionError) Is(target error) bool {
	return target == ErrConnection || (target == ErrUnknownOutcome && e.Sent)
}

func invalid(format string, values ...any) error {
	return fmt.Errorf("weekwheel: %w: %s", ErrInvalid, fmt.Sprintf(format, values...))
}

// refusal makes the error of an answer that the command does not expect.
func refusal(command, line string) error {
	word, rest, _ := strings.Cut(line, " ")
	if word == "BAD_SCHEDULE" {
		words := strings.SplitN(rest+"  ", " ", 3)
		at, _ := strconv.Atoi(words[1])
		reason, _ := url.PathUnescape(strings.TrimSpace(words[2]))
		return &ScheduleError{words[0], at, reason}
	}
	kind, found := meanings[word]
	if !found {
		kind = errUnexpected
	}
	return &ServerError{command, line, kind}
}
