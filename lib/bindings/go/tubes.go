// Pauses and limits of tubes, and schedules.

package weekwheel

import (
	"context"
	"encoding/json"
	"time"
)

// Pause delivers no job of the tube for this long, rounded up to a second; 0 ends a pause.
func (c *Client) Pause(ctx context.Context, tube string, span time.Duration) error {
	_, err := c.ask(ctx, command("pause-tube").tube(tube).whole(span).expect("PAUSED"))
	return err
}

// A Limit bounds the jobs of a tube, of a group, or of each group.
type Limit struct {
	Group   string        `line:"group,escaped"` // of this group alone
	Each    bool          `line:"each"`          // of each group that has no limit of its own
	Running uint64        `line:"running"`       // so many at once
	Starts  uint64        `line:"starts"`        // so many in each Per
	Per     time.Duration `line:"per"`           // a second by default
	Burst   uint64        `line:"burst"`         // so many at once after a rest, 1 by default
	Weight  uint64        `line:"weight"`        // turns of the group where others get one, 1 by default
}

// LimitInfo is a limit and what it does.
type LimitInfo struct {
	Tube string `line:"tube"`
	Limit
	Leases uint64        `line:"leases"` // jobs that run
	Held   uint64        `line:"held"`   // ready jobs that it holds back
	Left   time.Duration `line:"left"`   // until the next one may start
}

// SetLimit replaces a limit. Without Running, Starts and Weight there is none any more.
func (c *Client) SetLimit(ctx context.Context, tube string, l Limit) error {
	w := command("limit-tube").tube(tube).optionalNumber("running", l.Running).optionalNumber("starts", l.Starts).
		optionalSpan("per", l.Per).optionalNumber("burst", l.Burst).
		optionalNumber("weight", l.Weight).optionalText("group", l.Group).yes("each", l.Each)
	_, err := c.ask(ctx, w.expect("LIMITED"))
	return err
}

// Limits lists the limits of a tube; an empty one stands for all tubes.
func (c *Client) Limits(ctx context.Context, tube string) ([]LimitInfo, error) {
	return list[LimitInfo](ctx, c, command("list-limits").optionalTube(tube), onePage)
}

// What a schedule does when a job of it has not ended.
const (
	OverlapAllow = "allow" // the next one comes all the same
	OverlapSkip  = "skip"  // that time is left out
	OverlapWait  = "wait"  // the next one comes when it has ended
)

// A Schedule puts a job at each time of an expression.
type Schedule struct {
	Tube string // "default" if empty
	Name string
	Cron string // such as "0 3 * * *" or "@every 90m"
	Zone string // such as "Europe/Berlin"; UTC if empty
	Body []byte // of the jobs

	Spread    time.Duration // the jobs come later by a part of it, which the name fixes
	Start     time.Time     // no time before
	End       time.Time     // no time after
	Paused    bool
	IfAbsent  bool // a schedule of that name stays
	Missed    string
	Skip      time.Duration
	Overlap   string // OverlapAllow and others
	TimeToRun time.Duration
	Priority  Priority

	Attempts   uint32
	Backoff    time.Duration
	BackoffMax time.Duration
	Group      string
	Keep       time.Duration
	Expire     time.Duration
	Expired    string
	Code       uint32
}

// PutSchedule puts a schedule in place of the one of that name. It returns the next time, which is zero if there is none. An
// expression that is wrong is a *ScheduleError.
func (c *Client) PutSchedule(ctx context.Context, s Schedule) (next time.Time, err error) {
	run := s.TimeToRun
	if run == 0 {
		run = DefaultTimeToRun
	}
	w := command("put-schedule").priority(s.Priority).span(s.Spread).span(run).number(uint64(len(s.Body))).key(s.Name).
		optionalText("cron", s.Cron).optionalText("zone", s.Zone).optionalWord("missed", s.Missed).optionalSpan("skip", s.Skip).
		optionalWord("overlap", s.Overlap).optionalTime("start", s.Start).optionalTime("end", s.End).
		optionalNumber("attempts", uint64(s.Attempts)).optionalSpan("backoff", s.Backoff).optionalSpan("backoff-max", s.BackoffMax).
		yes("paused", s.Paused).optionalSpan("keep", s.Keep).optionalText("group", s.Group).
		optionalSpan("expire", s.Expire).optionalWord("expired", s.Expired).optionalNumber("code", uint64(s.Code))
	if s.IfAbsent {
		w.optional("mode", IfAbsent)
	}
	a, err := c.ask(ctx, w.in(s.Tube, "SCHEDULED", "KEPT").with(s.Body))
	if err != nil {
		return next, err
	}
	return a.moment()
}

// moment reads the time behind the word of an answer.
func (a answer) moment() (time.Time, error) {
	if len(a.words) > 1 {
		if at, err := readMoment(a.words[1]); err == nil {
			return at, nil
		}
	}
	return time.Time{}, refusal("answer", a.line)
}

// DeleteSchedule deletes a schedule of the tube.
func (c *Client) DeleteSchedule(ctx context.Context, tube, name string) error {
	_, err := c.ask(ctx, command("delete-schedule").key(name).in(tube, "DELETED"))
	return err
}

// PauseSchedule lets a schedule put nothing until it is resumed.
func (c *Client) PauseSchedule(ctx context.Context, tube, name string) error {
	_, err := c.ask(ctx, command("pause-schedule").key(name).in(tube, "PAUSED"))
	return err
}

// ResumeSchedule lets a schedule go on.
func (c *Client) ResumeSchedule(ctx context.Context, tube, name string) error {
	_, err := c.ask(ctx, command("resume-schedule").key(name).in(tube, "RESUMED"))
	return err
}

// RunSchedule puts a job of a schedule now. It returns the job's id.
func (c *Client) RunSchedule(ctx context.Context, tube, name string) (uint64, error) {
	return c.number(ctx, command("run-schedule").key(name).in(tube, "INSERTED"))
}

// A ScheduleQuery selects schedules. The zero value selects all of them.
type ScheduleQuery struct {
	Tube   string
	Name   string // only this one, with its next ten times
	Bodies bool
	Limit  int // at most so many; 0: all
}

// ScheduleInfo is what a list shows of a schedule.
type ScheduleInfo struct {
	Tube       string        `line:"tube"`
	Name       string        `line:"name,escaped"`
	Cron       string        `line:"cron"`
	Zone       string        `line:"zone"`
	Paused     bool          `line:"paused"`
	Missed     string        `line:"missed"`
	Overlap    string        `line:"overlap"`
	Skip       time.Duration `line:"skip"`
	Spread     time.Duration `line:"spread"`
	Start      time.Time     `line:"start"`
	End        time.Time     `line:"end"`
	Anchor     time.Time     `line:"anchor"` // from which @every counts
	Priority   uint64        `line:"priority"`
	Attempts   uint64        `line:"attempts"`
	TimeToRun  time.Duration `line:"run"`
	Backoff    time.Duration `line:"backoff"`
	BackoffMax time.Duration `line:"backoff_max"`
	Keep       time.Duration `line:"keep"`
	Expire     time.Duration `line:"expire"`
	Expired    string        `line:"expired"`
	Code       uint64        `line:"code"`
	Group      string        `line:"group,escaped"`
	Last       time.Time     `line:"last"`
	Next       time.Time     `line:"next"`
	Made       uint64        `line:"made"`    // jobs
	Skipped    uint64        `line:"skipped"` // times
	Length     uint64        `line:"length"`
	Body       []byte        `line:"body"`
	Version    uint64        `line:"version"`
	Times      []ZonedTime   `line:"times"` // the next ones, if the query has a name
}

// A ZonedTime is a time with its zone's offset from UTC.
type ZonedTime struct{ time.Time }

// UnmarshalJSON reads a pair of a time and an offset.
func (z *ZonedTime) UnmarshalJSON(text []byte) error {
	var pair [2]json.RawMessage
	var offset int
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	if err := json.Unmarshal(pair[1], &offset); err != nil {
		return err
	}
	err := readMember(pair[0], &z.Time, false)
	z.Time = z.Time.In(time.FixedZone("", offset))
	return err
}

// Schedules lists the schedules that match.
func (c *Client) Schedules(ctx context.Context, q ScheduleQuery) ([]ScheduleInfo, error) {
	w := command("list-schedules").optionalTube(q.Tube).optionalText("name", q.Name).yes("body", q.Bodies)
	return list[ScheduleInfo](ctx, c, w, q.Limit)
}

// Advance moves the clock of a server with --clock virtual, for tests. It returns the server's time.
func (c *Client) Advance(ctx context.Context, by time.Duration) (time.Time, error) {
	a, err := c.ask(ctx, command("advance").span(by).expect("ADVANCED"))
	if err != nil {
		return time.Time{}, err
	}
	return a.moment()
}
