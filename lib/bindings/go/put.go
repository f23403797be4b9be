// Putting, moving, cancelling and peeking at jobs.

package weekwheel

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// A Priority orders the jobs that are ready: the smaller, the earlier. The zero value stands for DefaultPriority.
type Priority int64

const (
	// MostUrgent is the priority 0 of the protocol.
	MostUrgent Priority = -1
	// DefaultPriority is that of a job that names none.
	DefaultPriority Priority = 1024
)

// Modes of a put with a key that a job has already. Without one, that job is replaced.
const (
	IfAbsent    = "if-absent"    // it stays, whatever its state
	KeepEarlier = "keep-earlier" // it stays if it waits and is due earlier or at the same time
	KeepLater   = "keep-later"   // it stays if it waits and is due later or at the same time
)

// What becomes of due times that passed undelivered.
const (
	MissedOnce = "once" // one delivery for all of them, the default
	MissedAll  = "all"  // one for each
	MissedSkip = "skip" // none for those older than Skip
)

// What becomes of a job that has expired.
const (
	ExpiredDrop = "drop" // the default
	ExpiredBury = "bury"
)

// DefaultTimeToRun is that of a job that names none.
const DefaultTimeToRun = 60 * time.Second

// A Job is what Put puts. A field that has its zero value is not sent.
type Job struct {
	Tube  string // "default" if empty
	Body  []byte
	Delay time.Duration // from now until it is due
	At    time.Time     // or due at a time of the wall clock
	// TimeToRun is how long a worker may take before another one gets the job. A worker touches what takes longer.
	TimeToRun time.Duration
	Priority  Priority

	Key      string        // a name within the tube, up to 200 bytes: what has it is replaced
	Mode     string        // of a job with a key: IfAbsent and others
	Version  uint64        // replace only the job of this version
	Debounce time.Duration // each put moves the job, at most so long after the first one
	Unique   time.Duration // when the job is done, its key stays taken for so long

	Spread time.Duration // due a part of this later, which the key fixes
	Every  time.Duration // again so long after each due time
	Missed string        // MissedOnce and others
	Skip   time.Duration // the age for MissedSkip

	Attempts   uint32        // bury it after so many failures; 0: a worker decides
	Backoff    time.Duration // the delay after the first failure; it doubles
	BackoffMax time.Duration // up to this
	Group      string        // groups of a tube take turns, and may have limits
	Keep       time.Duration // keep for so long how its runs ended
	Expire     time.Duration // it expires so long after it is due, unless a worker has it
	Expired    string        // what becomes of it then: ExpiredDrop or ExpiredBury
	Code       uint32        // the version of the code that can do it: clients of a lower code do not get it; 0: any may
	// Headers are names and values beside the body, such as a tenant or a trace: 16 of visible ASCII, 4096 bytes in all.
	Headers map[string]string
	// Then is the job to put when this one is finished, in one write with its end. Its JSON has the members of POST /v1/jobs.
	Then any
}

// An Outcome says what became of a put.
type Outcome string

// Outcomes.
const (
	Inserted Outcome = "INSERTED"
	Replaced Outcome = "REPLACED" // the job that had the key
	Kept     Outcome = "KEPT"     // the job that has the key stays, and nothing was put
	Ended    Outcome = "ENDED"    // that job has ended, its key is not free yet, and nothing was put
	Buried   Outcome = "BURIED"   // the server had no memory for its queue
)

// A Receipt is the answer to a put.
type Receipt struct {
	ID      uint64
	Outcome Outcome
	Version uint64 // of a put with Mode, Debounce or Unique; otherwise 0
}

// Put stores a job. Without anything that beanstalkd has not, and in whole seconds, the command is beanstalkd's.
func (c *Client) Put(ctx context.Context, job Job) (Receipt, error) {
	a, err := c.ask(ctx, job.request())
	if err != nil {
		return Receipt{}, err
	}
	return readReceipt(a)
}

func readReceipt(a answer) (r Receipt, err error) {
	if r.ID, err = a.number(1); err != nil {
		return r, err
	}
	if r.Outcome = Outcome(a.words[0]); len(a.words) > 2 {
		r.Version, err = a.number(2)
	}
	return r, err
}

// number reads a number of an answer.
func (a answer) number(at int) (uint64, error) {
	if at < len(a.words) {
		if number, err := strconv.ParseUint(a.words[at], 10, 64); err == nil {
			return number, nil
		}
	}
	return 0, refusal("answer", a.line)
}

func (j *Job) request() *request {
	run := j.TimeToRun
	if run == 0 {
		run = DefaultTimeToRun
	}
	options := j.options()
	before := append(options.headers(j.Headers), options.then(j.Then)...)
	isOwn := j.Key != "" || !j.At.IsZero() || options.line.Len() > 0 || j.Delay%time.Second != 0 || run%time.Second != 0
	w := command(map[bool]string{false: "put", true: "put-key"}[isOwn])
	if !j.At.IsZero() {
		w = command("put-at").priority(j.Priority).moment(j.At)
	} else {
		w.priority(j.Priority).span(j.Delay)
	}
	w.span(run).number(uint64(len(before) + len(j.Body)))
	if isOwn && j.Key == "" {
		w.text("-")
	} else if isOwn {
		w.key(j.Key)
	}
	w.line.WriteString(options.line.String())
	w.check(j, options.err)
	return w.in(j.Tube, "INSERTED", "REPLACED", "KEPT", "ENDED", "BURIED").with(append(before, j.Body...))
}

func (j *Job) options() *words {
	return command("").optionalSpan("spread", j.Spread).optionalSpan("every", j.Every).optionalWord("missed", j.Missed).optionalSpan("skip", j.Skip).
		optionalNumber("attempts", uint64(j.Attempts)).optionalSpan("backoff", j.Backoff).
		optionalSpan("backoff-max", j.BackoffMax).optionalNumber("version", j.Version).optionalText("group", j.Group).
		optionalWord("mode", j.Mode).optionalSpan("debounce", j.Debounce).optionalSpan("unique", j.Unique).
		optionalSpan("keep", j.Keep).optionalSpan("expire", j.Expire).optionalWord("expired", j.Expired).
		optionalNumber("code", uint64(j.Code))
}

func (w *words) check(j *Job, err error) {
	if err != nil && w.err == nil {
		w.err = err
	}
	if j.Key == "" && (j.Mode != "" || j.Debounce != 0 || j.Unique != 0) {
		w.refuse("Mode, Debounce and Unique are for a job with a key: set Key")
	}
	if !j.At.IsZero() && j.Delay != 0 {
		w.refuse("a job has a Delay or a time, At, not both")
	}
	if len(j.Group) > 200 {
		w.refuse("a group has at most 200 bytes")
	}
}

// ---- Jobs by name

// A Ref names a job: by its id or, in a tube, by its key.
type Ref struct {
	ID      uint64
	Tube    string // of the key; "default" if empty
	Key     string
	Version uint64 // only if it has this version; 0: any
}

// ID names a job by its id.
func ID(id uint64) Ref { return Ref{ID: id} }

// Key names a job by its key.
func Key(tube, key string) Ref { return Ref{Tube: tube, Key: key} }

// request begins a command that is verb for an id and verb-key for a key.
func (ref Ref) command(byID, byKey string) *words {
	if ref.Key != "" {
		return command(byKey).key(ref.Key)
	}
	w := command(byID).number(ref.ID)
	if ref.ID == 0 {
		w.refuse("a job is named by its id or its key")
	}
	return w
}

// about is the tube of a key, or any.
func (ref Ref) about(w *words, expected ...string) *request {
	if ref.Key == "" {
		return w.expect(expected...)
	}
	return w.in(ref.Tube, expected...)
}

// Cancel deletes a job. By its id that is one that nobody has reserved. By its key it may have any state: isRunning says that a
// worker has it, for which this delivery is the last. It returns ErrNotFound if there is none.
func (c *Client) Cancel(ctx context.Context, job Ref) (isRunning bool, err error) {
	w := job.command("delete", "delete-key").optionalNumber("version", job.Version)
	if job.Key == "" && job.Version != 0 {
		w.refuse("Cancel takes a version only with a key")
	}
	a, err := c.ask(ctx, job.about(w, "DELETED", "RUNNING"))
	return err == nil && a.words[0] == "RUNNING", err
}

// Move gives a delayed or ready job another delay. It returns the job's new version.
func (c *Client) Move(ctx context.Context, job Ref, delay time.Duration) (uint64, error) {
	w := job.command("move", "move-key").span(delay).optionalNumber("version", job.Version)
	return c.number(ctx, job.about(w, "MOVED"))
}

// MoveTo gives a delayed or ready job another due time, on the job's own clock. It returns the job's new version.
func (c *Client) MoveTo(ctx context.Context, job Ref, at time.Time) (uint64, error) {
	w := job.command("move", "move-key").text("-").optionalNumber("version", job.Version)
	w.optional("at", w.since(at))
	return c.number(ctx, job.about(w, "MOVED"))
}

// number asks for an answer with a number behind its word.
func (c *Client) number(ctx context.Context, r *request) (uint64, error) {
	a, err := c.ask(ctx, r)
	if err != nil {
		return 0, err
	}
	return a.number(1)
}

// KickJob makes a buried or delayed job ready.
func (c *Client) KickJob(ctx context.Context, id uint64) error {
	_, err := c.ask(ctx, command("kick-job").number(id).expect("KICKED"))
	return err
}

// Kick makes up to bound buried jobs of the tube ready or, where there are none, delayed ones. It returns how many.
func (c *Client) Kick(ctx context.Context, tube string, bound uint64) (uint64, error) {
	return c.number(ctx, command("kick").number(bound).in(tube, "KICKED"))
}

// A Peeked job is not reserved.
type Peeked struct {
	ID   uint64
	Body []byte
}

// Peek returns a job's id and body, or ErrNotFound.
func (c *Client) Peek(ctx context.Context, job Ref) (Peeked, error) {
	return c.peek(ctx, job.about(job.command("peek", "peek-key"), "FOUND"))
}

// PeekNext returns the next job of the tube that is "ready", "delayed" or "buried", or ErrNotFound.
func (c *Client) PeekNext(ctx context.Context, tube, state string) (Peeked, error) {
	w := command("peek-" + state)
	if !strings.Contains(" ready delayed buried ", " "+state+" ") {
		w.refuse("%q: a state is ready, delayed or buried", state)
	}
	return c.peek(ctx, w.in(tube, "FOUND"))
}

func (c *Client) peek(ctx context.Context, r *request) (p Peeked, err error) {
	a, err := c.ask(ctx, r)
	if err != nil {
		return p, err
	}
	p.Body = a.body
	p.ID, err = a.number(1)
	return p, err
}
