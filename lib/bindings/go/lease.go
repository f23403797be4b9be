// Reserving jobs, and ending leases.

package weekwheel

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"
)

const reportMost = 4096

// A Lease is a reserved job. Nobody else gets the job before its time to run is up; Touch begins that anew. End the lease by
// Delete, Release or Bury, or else by Close. ErrNotFound says that it was too late. Its methods may be called by several
// goroutines. It has a connection to itself; when that breaks, the lease ends with it.
type Lease struct {
	ID   uint64
	Tube string // empty if the job was reserved by its id
	Body []byte
	// Headers are what the job has beside its body, the names in lower case.
	Headers map[string]string

	client *Client
	mutex  sync.Mutex
	link   *link // nil: it has ended
	isDone bool  // by its methods, not by its connection
	// The server refused something: it may remember the delivery with this connection, which gets no other job then.
	isDoubtful bool
}

// Reserve takes the next job of the tubes, "default" if none is named, and waits for one until the context ends.
//
// It then returns the error of the context, at once, unless a job has come: it returns that. In either case nothing is lost. If
// the server sends a job in this very moment, it gets it back with the connection, as after a worker that died: the job is ready
// again after its backoff, and the delivery counts as an attempt. Where that matters, wait by ReserveWithin.
func (c *Client) Reserve(ctx context.Context, tubes ...string) (*Lease, error) {
	return c.reserve(ctx, ctx, "reserve", 0, tubes)
}

// ReserveWithin waits only so long, rounded up to a second, and returns ErrNoJob if no job came. The connection stays then, and
// no job is in doubt unless the context ends before. 0 does not wait.
func (c *Client) ReserveWithin(ctx context.Context, wait time.Duration, tubes ...string) (*Lease, error) {
	return c.reserveWithin(ctx, ctx, wait, wait+time.Second+c.options.Timeout, tubes)
}

// reserveWithin begins until the first context ends, and waits until the second one does.
func (c *Client) reserveWithin(ctx, waiting context.Context, wait, patience time.Duration, tubes []string) (*Lease, error) {
	w := command("reserve-with-timeout").whole(wait)
	if w.err == nil && wait > (1<<31-1)*time.Second {
		w.refuse("%v is longer than a server waits: use Reserve", wait)
	}
	if w.err != nil {
		return nil, w.err
	}
	return c.reserve(ctx, waiting, w.line.String(), patience, tubes)
}

func (c *Client) reserve(ctx, waiting context.Context, line string, patience time.Duration, tubes []string) (*Lease, error) {
	if len(tubes) == 0 {
		tubes = []string{"default"}
	}
	tubes = unique(tubes)
	for _, tube := range tubes {
		if err := checkTube(tube); err != nil {
			return nil, err
		}
	}
	l, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	var a answer
	if err = l.wantHeaders(ctx); err == nil {
		err = l.attend(ctx, tubes)
	}
	if err == nil {
		a, err = l.await(waiting, line, patience)
	}
	if err == nil && a.words[0] == "TIMED_OUT" {
		err = ErrNoJob
	}
	lease, err := c.lease(l, a, err)
	if err == nil {
		err = lease.name(tubes)
	}
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// name finds the tube of the job, which the answer does not name. The context may have ended: the job is here all the same.
func (j *Lease) name(tubes []string) error {
	if j.Tube = tubes[0]; len(tubes) == 1 {
		return nil
	}
	stats, err := j.Stats(context.Background())
	if err != nil {
		j.Close()
	}
	j.Tube = stats["tube"]
	return err
}

// lease makes one of the answer to a reserve, or gives the connection back.
func (c *Client) lease(l *link, a answer, err error) (*Lease, error) {
	if err == nil && (a.words[0] != "RESERVED" || a.body == nil) {
		err = refusal("reserve", a.line)
	}
	var id uint64
	if err == nil {
		id, err = a.number(1)
		l.isDirty = err != nil
	}
	if err != nil {
		c.give(l)
		return nil, c.explained(err)
	}
	return &Lease{ID: id, Body: a.body, Headers: a.headers, client: c, link: l}, nil
}

// ReserveJob takes the job of an id, whatever its state and its limits. It returns ErrNotFound if there is none, or if it is
// reserved.
func (c *Client) ReserveJob(ctx context.Context, id uint64) (*Lease, error) {
	l, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	var a answer
	if err = l.wantHeaders(ctx); err == nil {
		a, err = l.ask(ctx, command("reserve-job").number(id).expect("RESERVED"))
	}
	return c.lease(l, a, err)
}

// ask carries out a command about the job, and ends the lease if it is one that does.
func (j *Lease) ask(ctx context.Context, ends bool, r *request) (answer, error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.askLocked(ctx, ends, r)
}

func (j *Lease) askLocked(ctx context.Context, ends bool, r *request) (answer, error) {
	if j.link == nil {
		return answer{}, ErrLeaseEnded
	}
	a, err := j.link.ask(ctx, r)
	if _, isRefused := err.(*ServerError); isRefused {
		j.isDoubtful = true
	}
	j.isDone = j.isDone || (ends && (err == nil || errors.Is(err, ErrNotFound)))
	if j.isDone || j.link.isDirty {
		j.give()
	}
	return a, j.client.explained(err)
}

// give ends the lease.
func (j *Lease) give() {
	j.link.isDirty = j.link.isDirty || j.isDoubtful
	j.client.give(j.link)
	j.link = nil
}

// HasEnded tells whether the lease was ended, or its connection broke.
func (j *Lease) HasEnded() bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.link == nil
}

// isConnected looks whether the server has closed the connection, as it does when it ends: the job is another worker's then.
func (j *Lease) isConnected() bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.link != nil && isAlive(j.link.socket)
}

func (j *Lease) wasEnded() bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.isDone
}

// Close ends the lease with its connection unless it has ended: the server gives the job to another worker, and the delivery
// counts as an attempt. It may be deferred.
func (j *Lease) Close() error {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.link != nil {
		j.isDone, j.link.isDirty = true, true
		j.give()
	}
	return nil
}

// Delete says that the job is done.
func (j *Lease) Delete(ctx context.Context) error {
	_, err := j.ask(ctx, true, command("delete").number(j.ID).expect("DELETED"))
	return err
}

// Touch begins the time to run anew. ErrNotFound: it was up, or the job was put again, and the work is out of date.
func (j *Lease) Touch(ctx context.Context) error {
	_, err := j.ask(ctx, false, command("touch").number(j.ID).expect("TOUCHED"))
	return err
}

// Release gives the job back after a failure, with a reason for people. It comes again after its own backoff. isBuried says that
// this was its last attempt.
func (j *Lease) Release(ctx context.Context, reason string) (isBuried bool, err error) {
	return j.release(ctx, "-", command("").reason(reason), 0)
}

// ReleaseAfter is Release with a delay in place of the backoff.
func (j *Lease) ReleaseAfter(ctx context.Context, delay time.Duration, reason string) (isBuried bool, err error) {
	w := command("")
	span := w.seconds(delay)
	return j.release(ctx, span, w.reason(reason), delay)
}

// release says it in beanstalkd's words to a server that knows no others.
func (j *Lease) release(ctx context.Context, span string, reason *words, delay time.Duration) (bool, error) {
	if reason.err != nil {
		return false, reason.err
	}
	return j.back(ctx, func(priority uint64) (*request, *request) {
		own := command("release-job").number(j.ID).number(priority).text(span).text(strings.TrimSpace(reason.line.String()))
		old := command("release").number(j.ID).number(priority).whole(delay)
		return own.expect("RELEASED", "BURIED"), old.expect("RELEASED", "BURIED")
	})
}

// Bury puts the job aside, with a reason for people, until somebody kicks it.
func (j *Lease) Bury(ctx context.Context, reason string) error {
	_, err := j.back(ctx, func(priority uint64) (*request, *request) {
		return command("bury-job").number(j.ID).number(priority).reason(reason).expect("BURIED"),
			command("bury").number(j.ID).number(priority).expect("BURIED")
	})
	return err
}

// back ends the lease by a command that has the job's priority in it.
func (j *Lease) back(ctx context.Context, commands func(uint64) (own, old *request)) (isBuried bool, err error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	a, err := j.askLocked(ctx, false, command("stats-job").number(j.ID).expect("OK"))
	if err != nil {
		return false, unsent(err)
	}
	priority, _ := strconv.ParseUint(readStats(a.body)["pri"], 10, 32)
	own, old := commands(priority)
	a, err = j.askLocked(ctx, true, own)
	if refused, is := err.(*ServerError); is && refused.kind == ErrUnsupported {
		j.isDoubtful = false
		a, err = j.askLocked(ctx, true, old)
	}
	return err == nil && a.words[0] == "BURIED", err
}

// Report says something of this run, for the history of a job that was put with Keep. The last 4096 bytes count.
func (j *Lease) Report(ctx context.Context, report []byte) error {
	if len(report) > reportMost {
		report = report[len(report)-reportMost:]
	}
	_, err := j.ask(ctx, false, command("report").number(j.ID).number(uint64(len(report))).expect("REPORTED").with(report))
	return err
}

// Stats returns the job's numbers.
func (j *Lease) Stats(ctx context.Context) (Stats, error) {
	a, err := j.ask(ctx, false, command("stats-job").number(j.ID).expect("OK"))
	return readStats(a.body), err
}
