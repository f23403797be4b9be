// Looking: numbers, and lists of jobs and runs, whose lines of JSON are read by the tags of structs.

package weekwheel

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Stats are numbers by their names, as beanstalkd's protocol has them.
type Stats map[string]string

// Int returns a whole number, or 0 if there is none of that name.
func (s Stats) Int(name string) int64 {
	number, _ := strconv.ParseInt(s[name], 10, 64)
	return number
}

func readStats(body []byte) Stats {
	stats := Stats{}
	for _, line := range strings.Split(string(body), "\n") {
		if name, value, found := strings.Cut(line, ": "); found {
			stats[name] = strings.Trim(value, `"`)
		}
	}
	return stats
}

// Stats returns the numbers of the server.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	a, err := c.ask(ctx, command("stats").expect("OK"))
	return readStats(a.body), err
}

// StatsTube returns the numbers of a tube.
func (c *Client) StatsTube(ctx context.Context, tube string) (Stats, error) {
	a, err := c.ask(ctx, command("stats-tube").tube(tube).expect("OK"))
	return readStats(a.body), err
}

// StatsJob returns the numbers of a job.
func (c *Client) StatsJob(ctx context.Context, job Ref) (Stats, error) {
	a, err := c.ask(ctx, job.about(job.command("stats-job", "stats-key"), "OK"))
	return readStats(a.body), err
}

// Tubes returns the names of all tubes.
func (c *Client) Tubes(ctx context.Context) ([]string, error) {
	a, err := c.ask(ctx, command("list-tubes").expect("OK"))
	var tubes []string
	for _, line := range strings.Split(string(a.body), "\n") {
		if strings.HasPrefix(line, "- ") {
			tubes = append(tubes, line[2:])
		}
	}
	return tubes, err
}

// ---- Lists

// A Query selects jobs. The zero value selects all of them.
type Query struct {
	ID     uint64    // only this job
	Tube   string    // only of this tube
	Prefix string    // only keys that begin so
	States []string  // delayed, ready, reserved, buried; ended alone: keys that are not free yet
	From   time.Time // due from then on, on the job's clock
	To     time.Time // and before
	Bodies bool      // with their bodies
	Limit  int       // at most so many; 0: all
}

// JobInfo is what a list shows of a job; man weekwheeld says more.
type JobInfo struct {
	ID         uint64        `line:"id"`
	Version    uint64        `line:"version"`
	State      string        `line:"state"`
	Tube       string        `line:"tube"`
	Key        string        `line:"key,escaped"`
	Group      string        `line:"group,escaped"`
	Priority   uint64        `line:"priority"` // as in the protocol: 0 is MostUrgent
	Due        time.Time     `line:"due"`      // on its clock
	Clock      string        `line:"clock"`    // elapsed or wall
	Left       time.Duration `line:"left"`
	Created    time.Time     `line:"created"`
	Delay      time.Duration `line:"delay"`
	TimeToRun  time.Duration `line:"run"`
	Every      time.Duration `line:"every"`
	Missed     string        `line:"missed"`
	Skip       time.Duration `line:"skip"`
	Attempts   uint64        `line:"attempts"`
	Backoff    time.Duration `line:"backoff"`
	BackoffMax time.Duration `line:"backoff_max"`
	Keep       time.Duration `line:"keep"`
	Expire     time.Duration `line:"expire"`
	Expired    string        `line:"expired"` // bury, or empty: it is dropped
	Expires    time.Time     `line:"expires"` // on its clock
	Code       uint64        `line:"code"`
	Unique     time.Duration `line:"unique"`
	Debounced  time.Duration `line:"debounced"` // since the first put
	Reserves   uint64        `line:"reserves"`
	Timeouts   uint64        `line:"timeouts"`
	Releases   uint64        `line:"releases"`
	Buries     uint64        `line:"buries"`
	Kicks      uint64        `line:"kicks"`
	Tries      uint64        `line:"tries"` // the failures that count for Attempts
	Error      string        `line:"error"`
	Token      uint64        `line:"token"` // of its delivery
	Length     uint64        `line:"length"`
	Body       []byte        `line:"body"`
}

// Jobs lists the jobs that match, in order of their ids.
func (c *Client) Jobs(ctx context.Context, q Query) ([]JobInfo, error) {
	w := command("list-delayed")
	if q.ID != 0 {
		return list[JobInfo](ctx, c, w.optionalNumber("id", q.ID).yes("body", q.Bodies), onePage)
	}
	w.optionalTube(q.Tube).optionalText("prefix", q.Prefix).optionalWord("state", strings.Join(q.States, ",")).
		optionalTime("from", q.From).optionalTime("to", q.To).yes("body", q.Bodies)
	return list[JobInfo](ctx, c, w, q.Limit)
}

// A RunQuery selects runs. The zero value selects all of them.
type RunQuery struct {
	ID      uint64 // only of this job
	Tube    string
	Prefix  string
	Reports bool // with their reports
	Limit   int  // at most so many; 0: all
}

// A Run is an attempt of a job that was put with Keep.
type Run struct {
	Run     uint64    `line:"run"`
	ID      uint64    `line:"id"` // of the job
	Tube    string    `line:"tube"`
	Key     string    `line:"key,escaped"`
	Outcome string    `line:"outcome"` // finished, released, timed-out, buried or expired
	Attempt uint64    `line:"attempt"`
	Ended   time.Time `line:"ended"`
	Error   string    `line:"error"`
	Length  uint64    `line:"length"` // of the report
	Report  []byte    `line:"report"`
}

// History lists the runs that match, the last one first.
func (c *Client) History(ctx context.Context, q RunQuery) ([]Run, error) {
	w := command("history").optionalTube(q.Tube).optionalText("prefix", q.Prefix).optionalNumber("id", q.ID).yes("body", q.Reports)
	return list[Run](ctx, c, w, q.Limit)
}

// Forecast returns how many jobs come due in each of count spans from now on; an empty tube stands for all tubes.
func (c *Client) Forecast(ctx context.Context, tube string, span time.Duration, count int) ([]uint64, error) {
	w := command("forecast").span(span)
	if count < 0 {
		w.refuse("the count %d is negative", count)
	}
	a, err := c.ask(ctx, w.text(strconv.Itoa(count)).optionalTube(tube).expect("OK"))
	if err != nil {
		return nil, err
	}
	var found struct{ Counts []uint64 }
	if json.Unmarshal(a.body, &found) != nil {
		err = refusal("forecast", string(a.body))
	}
	return found.Counts, err
}

// ---- Pages of JSON

const pageMost = 1000

// onePage is the limit of a command that has no pages.
const onePage = -1

// list asks for all pages, or for at most limit objects.
func list[T any](ctx context.Context, c *Client, w *words, limit int) ([]T, error) {
	var found []T
	if w.err == nil && limit < onePage {
		w.refuse("the limit %d is negative", limit)
	}
	start := w.line.String()
	for after := ""; ; {
		page := &words{err: w.err}
		page.line.WriteString(start)
		if limit != onePage {
			page.optionalNumber("limit", uint64(pageOf(limit, len(found)))).optional("after", after)
		}
		a, err := c.ask(ctx, page.expect("OK"))
		if err != nil {
			return found, err
		}
		if found, after, err = readPage(found, a.body); err != nil || after == "" || (limit > 0 && len(found) >= limit) {
			return found, err
		}
	}
}

func pageOf(limit, found int) int {
	if limit == 0 || limit-found > pageMost {
		return pageMost
	}
	return limit - found
}

// readPage adds the objects of a page. after says where to go on.
func readPage[T any](found []T, page []byte) (_ []T, after string, err error) {
	for _, line := range bytes.Split(page, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(line, &members); err != nil {
			return found, "", refusal("a list", string(line))
		}
		if next, is := members["next"]; is && len(members) == 1 {
			return found, string(next), nil
		}
		var one T
		if name := readMembers(members, &one); name != "" {
			return found, "", refusal("a list: "+name, string(line))
		}
		found = append(found, one)
	}
	return found, "", nil
}

// readMembers fills a struct whose tags name the members. Those that it does not know are of a newer server. It returns the
// name of one that is wrong.
func readMembers(members map[string]json.RawMessage, into any) (wrong string) {
	value := reflect.ValueOf(into).Elem()
	for i := 0; i < value.NumField(); i++ {
		if value.Type().Field(i).Anonymous {
			wrong = first(wrong, readMembers(members, value.Field(i).Addr().Interface()))
			continue
		}
		name, how, _ := strings.Cut(value.Type().Field(i).Tag.Get("line"), ",")
		member, found := members[name]
		if !found || string(member) == "null" {
			continue
		}
		if err := readMember(member, value.Field(i).Addr().Interface(), how == "escaped"); err != nil {
			return name
		}
	}
	return wrong
}

func readMember(member json.RawMessage, into any, isEscaped bool) (err error) {
	switch into := into.(type) {
	case *time.Duration:
		*into, err = readSpan(string(member))
	case *time.Time:
		*into, err = readMoment(strings.Trim(string(member), `"`))
	case *string:
		if err = json.Unmarshal(member, into); err == nil && isEscaped {
			*into, err = url.PathUnescape(*into)
		}
	default:
		err = json.Unmarshal(member, into)
	}
	return err
}

// readDecimal reads seconds exactly.
func readDecimal(text string) (seconds, nanoseconds int64, err error) {
	whole, fraction, _ := strings.Cut(text, ".")
	isNegative := strings.HasPrefix(whole, "-")
	if seconds, err = strconv.ParseInt(whole, 10, 64); err == nil && fraction != "" {
		nanoseconds, err = strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	}
	if isNegative {
		nanoseconds = -nanoseconds
	}
	return seconds, nanoseconds, err
}

// readSpan reads a length of time. One that is too long for a Duration becomes the longest.
func readSpan(text string) (time.Duration, error) {
	seconds, nanoseconds, err := readDecimal(text)
	if seconds >= math.MaxInt64/int64(time.Second) {
		return math.MaxInt64, err
	}
	return time.Duration(seconds)*time.Second + time.Duration(nanoseconds), err
}

// readMoment reads a time. 0 stands for none.
func readMoment(text string) (time.Time, error) {
	seconds, nanoseconds, err := readDecimal(text)
	if err != nil || (seconds == 0 && nanoseconds == 0) {
		return time.Time{}, err
	}
	return time.Unix(seconds, nanoseconds), nil
}
