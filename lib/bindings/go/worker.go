// Running a function for each job.

package weekwheel

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand"
	"sync"
	"time"
)

// Pauses between attempts to connect again: each is twice as long as the one before.
const firstPause, longestPause = 100 * time.Millisecond, 10 * time.Second

// What is touched after a part of its time to run is not touched more often than this, nor less often. In between, whether its
// connection has ended is looked at so often.
const touchLeast, touchMost, lookMost = 200 * time.Millisecond, 24 * time.Hour, time.Second

// A Worker runs a function for each job of its tubes.
//
// When the function returns nil, the job is deleted. When it returns an error of Bury, the job is buried, with that as the reason.
// After another error or a panic it is released for its own backoff, or for a second that doubles with each delivery up to an
// hour; one without a limit of its own is buried after Attempts deliveries. What the function itself has deleted, released or
// buried stays so. While the function runs, the job is touched.
type Worker struct {
	Client *Client
	Tubes  []string // "default" if there is none
	// Handle runs a job. Its context ends when another worker may have the job: within a second if the connection ends, and at the next
	// touch if the lease was lost or the job put again. It does not end with that of Run, whose values it has.
	Handle func(ctx context.Context, job *Lease) error
	// Concurrency is how many jobs run at once, 1 by default.
	Concurrency int
	// Attempts is the limit of jobs that have none, 10 by default; a negative number is no limit.
	Attempts int
	// Poll is how long a reserve waits, in whole seconds, and so how late an idle worker ends: a second by default.
	Poll time.Duration
	// OnError gets the failures of jobs, and those of the server with a nil job, one at a time for all that run at once. Several
	// goroutines may call it at once. By default they are logged.
	OnError func(err error, job *Lease)
}

type buryError struct{ error }

func (e buryError) Unwrap() error { return e.error }

// Bury makes an error after which a Worker buries the job: nobody tries again before somebody kicks it.
func Bury(reason error) error { return buryError{reason} }

// Run works until the context ends, and then returns nil when the jobs at hand are done. It connects again, with growing pauses,
// when the connection is lost, and returns an error if the server refuses it, such as ErrDenied, or the client is closed.
func (w *Worker) Run(ctx context.Context) error {
	if w.Client == nil || w.Handle == nil || w.Poll < 0 || w.Concurrency < 0 {
		return invalid("a worker has a Client and a Handle, and no negative numbers")
	}
	poll := w.Poll
	if poll == 0 {
		poll = time.Second
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waiting, endWaiting := context.WithCancel(context.Background())
	defer endWaiting()
	go func() {
		// A reserve that has begun is not ended before its time: the server may be sending a job, of which that would cost an
		// attempt. Where time stands still, or the server hangs, it is ended all the same.
		<-ctx.Done()
		sleep(waiting, poll+time.Second)
		endWaiting()
	}()
	var told news
	failures := make([]error, atLeast(w.Concurrency, 1))
	var lanes sync.WaitGroup
	for i := range failures {
		lanes.Add(1)
		go func(failure *error) {
			defer lanes.Done()
			if *failure = w.lane(ctx, waiting, poll, &told); *failure != nil {
				cancel()
			}
		}(&failures[i])
	}
	lanes.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// lane runs one job after the other.
func (w *Worker) lane(ctx, waiting context.Context, poll time.Duration, told *news) error {
	pause := firstPause
	for ctx.Err() == nil {
		job, err := w.Client.reserveWithin(ctx, waiting, poll, 0, w.Tubes)
		switch {
		case err == nil:
			pause = firstPause
			w.run(ctx, job)
		case errors.Is(err, ErrNoJob):
			pause = firstPause
		case ctx.Err() != nil:
		case !passes(err):
			return err
		default:
			if told.isDue(pause) {
				w.tell(err, nil)
			}
			sleep(ctx, pause)
			if pause *= 2; pause > longestPause {
				pause = longestPause
			}
		}
	}
	return nil
}

// news lets one lane tell of a failure of the server, which all of them have.
type news struct {
	mutex sync.Mutex
	next  time.Time
}

// isDue tells whether the pause of the lane that told the last one is over, and begins this lane's.
func (n *news) isDue(pause time.Duration) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	now := time.Now()
	if now.Before(n.next) {
		return false
	}
	n.next = now.Add(pause)
	return true
}

// passes tells whether an error may be over by and by: a lost connection, a full disk, Redis that is away.
func passes(err error) bool {
	return !errors.Is(err, ErrClosed) && (errors.Is(err, ErrConnection) || errors.Is(err, ErrFull) || errors.Is(err, ErrServerFailed))
}

// run runs a job to its end.
func (w *Worker) run(ctx context.Context, job *Lease) {
	defer job.Close()
	ctx, cancel := context.WithCancel(unending{ctx})
	defer cancel()
	touched := make(chan struct{})
	go func() {
		defer close(touched)
		touch(ctx, cancel, job)
	}()
	err := w.call(ctx, job)
	cancel()
	<-touched
	if err != nil {
		w.tell(err, job)
	}
	if job.wasEnded() {
		return
	}
	if err := finish(context.Background(), job, err, w.limit()); err != nil {
		w.tell(fmt.Errorf("the server does not know how job %d ended, and delivers it again: %w", job.ID, err), job)
	}
}

func (w *Worker) call(ctx context.Context, job *Lease) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return w.Handle(ctx, job)
}

// touch begins the time to run anew until the context ends. It ends the context when the lease has ended.
func touch(ctx context.Context, cancel func(), job *Lease) {
	// Most jobs end before that, and nothing is asked for them.
	if !sleep(ctx, touchLeast) {
		return
	}
	stats, err := job.Stats(context.Background())
	if err != nil {
		cancel()
		return
	}
	every := time.Duration(stats.Int("ttr")) * time.Second * 2 / 5
	if every < touchLeast {
		every = touchLeast
	} else if every > touchMost {
		every = touchMost
	}
	look := every
	if look > lookMost {
		look = lookMost
	}
	for waited := look; sleep(ctx, look); waited += look {
		if !job.isConnected() {
			cancel()
			return
		}
		if waited < every {
			continue
		}
		waited = 0
		if err := job.Touch(context.Background()); err != nil {
			if errors.Is(err, ErrNotFound) || job.HasEnded() {
				cancel()
				return
			}
		}
	}
}

// finish tells the server how a job has ended.
func finish(ctx context.Context, job *Lease, failure error, attempts int) (err error) {
	var bury buryError
	switch {
	case failure == nil:
		return job.Delete(ctx)
	case errors.As(failure, &bury):
		return job.Bury(ctx, failure.Error())
	}
	reserves, own, backoff, err := job.retries(ctx)
	switch {
	case err != nil:
	case attempts > 0 && own == 0 && reserves >= uint64(attempts):
		err = job.Bury(ctx, failure.Error())
	case backoff == 0:
		_, err = job.ReleaseAfter(ctx, pauseAfter(reserves), failure.Error())
	default:
		_, err = job.Release(ctx, failure.Error())
	}
	return err
}

// retries asks how often the job was delivered, and for its own limit and backoff.
func (j *Lease) retries(ctx context.Context) (reserves, attempts uint64, backoff time.Duration, err error) {
	a, err := j.ask(ctx, false, command("list-delayed").optionalNumber("id", j.ID).expect("OK"))
	if errors.Is(err, ErrUnsupported) {
		stats, err := j.Stats(ctx)
		return uint64(stats.Int("reserves")), 0, 0, err
	}
	jobs, _, bad := readPage[JobInfo](nil, a.body)
	if err == nil {
		err = bad
	}
	if len(jobs) == 0 {
		return 0, 0, 0, err
	}
	return jobs[0].Reserves, jobs[0].Attempts, jobs[0].Backoff, err
}

// pauseAfter is a second, doubled with each delivery up to an hour. A longer one is shortened at random by up to a quarter.
func pauseAfter(deliveries uint64) time.Duration {
	pause := time.Hour
	if deliveries < 12 {
		pause = time.Second << (deliveries - b2u(deliveries > 0))
	}
	if pause < 4*time.Second {
		return pause
	}
	return pause - time.Duration(rand.Int63n(int64(pause/4)))
}

func (w *Worker) limit() int {
	if w.Attempts == 0 {
		return 10
	}
	return w.Attempts
}

func (w *Worker) tell(err error, job *Lease) {
	switch {
	case w.OnError != nil:
		w.OnError(err, job)
	case job != nil:
		log.Printf("weekwheel: job %d of %s: %v", job.ID, job.Tube, err)
	default:
		log.Printf("weekwheel: a worker: %v", err)
	}
}

// sleep returns false if the context ended.
func sleep(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// unending has the values of a context, and not its end.
type unending struct{ context.Context }

func (unending) Deadline() (time.Time, bool) { return time.Time{}, false }
func (unending) Done() <-chan struct{}       { return nil }
func (unending) Err() error                  { return nil }

func atLeast(number, least int) int {
	if number < least {
		return least
	}
	return number
}
