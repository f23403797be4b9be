// Tests the client of jobs. SERVER is a weekwheeld with a virtual clock, TOKENED one that wants a token, TLS one with TLS.
package weekwheel

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var background = context.Background()

const patience = 120 * time.Second // nothing takes nearly as long

func must[T any](t *testing.T) func(T, error) T {
	return func(got T, err error) T {
		t.Helper()
		fine(t, err)
		return got
	}
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, got, wanted any) {
	t.Helper()
	if !reflect.DeepEqual(got, wanted) {
		t.Fatalf("got %v, wanted %v", got, wanted)
	}
}

func isError(t *testing.T, err, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Fatalf("got the error %v, wanted %v", err, wanted)
	}
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("this never came: ", what)
		}
	}
}

// open connects. At the end of the test no connection and no goroutine is left.
func open(t *testing.T, address string, options *Options) *Client {
	t.Helper()
	before := runtime.NumGoroutine()
	client, err := Dial(background, address, options)
	fine(t, err)
	t.Cleanup(func() {
		fine(t, client.Close())
		until(t, "all connections are given back", func() bool { return runtime.NumGoroutine() <= before })
	})
	return client
}

func server(t *testing.T) *Client { return open(t, os.Getenv("SERVER"), nil) }

// tube is the name of a tube of the test alone.
func tube(t *testing.T) string { return strings.NewReplacer("/", ".", "#", ".").Replace(t.Name()) }

func TestAJobIsPutReservedWhenItIsDueAndDeleted(t *testing.T) {
	client := server(t)
	put := must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Body: []byte("to: ada"), Delay: time.Minute}))
	equal(t, put.Outcome, Inserted)
	equal(t, must[Peeked](t)(client.Peek(background, ID(put.ID))), Peeked{put.ID, []byte("to: ada")})
	_, err := client.ReserveWithin(background, 0, tube(t))
	isError(t, err, ErrNoJob)
	must[time.Time](t)(client.Advance(background, time.Minute))
	job := must[*Lease](t)(client.Reserve(background, tube(t)))
	equal(t, []any{job.ID, job.Tube, string(job.Body)}, []any{put.ID, tube(t), "to: ada"})
	fine(t, job.Touch(background))
	fine(t, job.Delete(background))
	equal(t, job.HasEnded(), true)
	isError(t, job.Delete(background), ErrLeaseEnded)
	_, err = client.Peek(background, ID(put.ID))
	isError(t, err, ErrNotFound)
}

func TestBodiesAreBytesAndKeysAnyText(t *testing.T) {
	client := server(t)
	long := bytes.Repeat([]byte("\x00\r\n\xff"), 1<<14)[:65535]
	for i, body := range [][]byte{nil, {0, 13, 10, 255, 10, 13}, []byte("delete 1\r\n"), long} {
		for j, key := range []string{"ключ 50%/a b-", "-", "\r\nput 0 0 1 1\r\n", "a\x00b", strings.Repeat("k", 200)} {
			name := Key(tube(t), fmt.Sprint(i, j)+key)
			if len(name.Key) > 200 {
				name.Key = name.Key[:200]
			}
			put := must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Body: body, Delay: time.Hour, Key: name.Key}))
			peeked := must[Peeked](t)(client.Peek(background, name))
			equal(t, peeked.ID, put.ID)
			equal(t, bytes.Equal(peeked.Body, body), true)
			listed := must[[]JobInfo](t)(client.Jobs(background, Query{ID: put.ID, Bodies: true}))
			equal(t, []any{listed[0].Key, bytes.Equal(listed[0].Body, body)}, []any{name.Key, true})
		}
	}
	_, err := client.Put(background, Job{Body: append(long, 0)})
	isError(t, err, ErrTooBig)
	_, err = client.Put(background, Job{Key: "k", Mode: "nonsense", Body: []byte("quit\r\n")})
	isError(t, err, ErrBadFormat)
	equal(t, len(client.links), 1) // the connection is as it was
	must[Stats](t)(client.Stats(background))
}

func TestEveryOptionIsStored(t *testing.T) {
	client := server(t)
	job := Job{Tube: tube(t), Key: "k", Delay: time.Hour, Every: 2 * time.Hour, Missed: MissedSkip, Skip: 1, Attempts: 3, Backoff: 4, BackoffMax: 5,
		Group: "- g", Keep: 6, TimeToRun: time.Second + 7, Priority: 8}
	put := must[Receipt](t)(client.Put(background, job))
	got := must[[]JobInfo](t)(client.Jobs(background, Query{ID: put.ID}))[0]
	equal(t, Job{Tube: got.Tube, Key: got.Key, Delay: got.Delay, Every: got.Every, Missed: got.Missed, Skip: got.Skip, Attempts: uint32(got.Attempts),
		Backoff: got.Backoff, BackoffMax: got.BackoffMax, Group: got.Group, Keep: got.Keep, TimeToRun: got.TimeToRun, Priority: Priority(got.Priority)}, job)
	for _, job := range []Job{{Mode: KeepEarlier}, {Mode: KeepLater}, {Every: time.Hour, Missed: MissedAll}, {Every: time.Hour, Missed: MissedOnce}} {
		job.Tube, job.Key, job.Delay = tube(t), "m", time.Hour
		must[Receipt](t)(client.Put(background, job))
	}
	for _, overlap := range []string{OverlapAllow, OverlapSkip} {
		must[time.Time](t)(client.PutSchedule(background, Schedule{Tube: tube(t), Name: "s", Cron: "@daily", Overlap: overlap, Backoff: 1, BackoffMax: 2}))
	}
}

func TestCode(t *testing.T) {
	client := server(t)
	id := must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Code: 12})).ID
	equal(t, must[[]JobInfo](t)(client.Jobs(background, Query{ID: id}))[0].Code, uint64(12))
	_, err := open(t, os.Getenv("SERVER"), &Options{Code: 11}).ReserveWithin(background, 0, tube(t))
	isError(t, err, ErrNoJob)
	knows := open(t, os.Getenv("SERVER"), &Options{Code: 12})
	equal(t, must[*Lease](t)(knows.ReserveWithin(background, 0, tube(t))).ID, id)
}

func TestHeaders(t *testing.T) {
	client := server(t)
	job := Job{Tube: tube(t), Body: []byte("body"), Headers: map[string]string{"Tenant": "a b", "empty": ""}}
	id := must[Receipt](t)(client.Put(background, job)).ID
	for _, reserve := range []func() (*Lease, error){
		func() (*Lease, error) { return client.ReserveWithin(background, 0, tube(t)) },
		func() (*Lease, error) { return client.ReserveJob(background, id) },
	} {
		lease := must[*Lease](t)(reserve())
		equal(t, []any{string(lease.Body), lease.Headers}, []any{"body", map[string]string{"tenant": "a b", "empty": ""}})
		must[bool](t)(lease.ReleaseAfter(background, 0, ""))
	}
	equal(t, string(must[Peeked](t)(client.Peek(background, ID(id))).Body), "body")
	for _, headers := range []map[string]string{{"a b": "x"}, {"a": "x\r\ny"}, {"a": " x"}, {"": "x"}} {
		_, err := client.Put(background, Job{Tube: tube(t), Headers: headers})
		isError(t, err, ErrInvalid)
	}
}

func TestAJobFollowsAnother(t *testing.T) {
	client, after := server(t), tube(t)+"-after"
	then := map[string]any{"tube": after, "body": "nächster"}
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Body: []byte("first"), Headers: map[string]string{"a": "b"}, Then: then}))
	lease := must[*Lease](t)(client.ReserveWithin(background, 0, tube(t)))
	equal(t, []any{string(lease.Body), lease.Headers["a"]}, []any{"first", "b"})
	isError(t, lease.Delete(background), nil)
	equal(t, string(must[*Lease](t)(client.ReserveWithin(background, 0, after)).Body), "nächster")
	_, err := client.Put(background, Job{Tube: tube(t), Then: func() {}})
	isError(t, err, ErrInvalid)
}

func TestNothingIsInjected(t *testing.T) {
	client := server(t)
	bad := []string{"", "-a", "a b", "a\r\nb", "a\nb", "ä", "a\x00", strings.Repeat("t", 201), "a\r\ndelete 1"}
	for _, name := range bad {
		if name != "" { // that is the default tube
			_, err := client.Put(background, Job{Tube: name})
			isError(t, err, ErrInvalid)
			_, err = client.Kick(background, name, 1)
			isError(t, err, ErrInvalid)
			_, err = client.Jobs(background, Query{Tube: name})
			isError(t, err, ErrInvalid)
		}
		_, err := client.Reserve(background, name)
		isError(t, err, ErrInvalid)
		_, err = client.StatsTube(background, name)
		isError(t, err, ErrInvalid)
		isError(t, client.Pause(background, name, time.Second), ErrInvalid)
	}
	for _, job := range []Job{
		{Mode: "a\r\nb", Key: "k"}, {Missed: "once every=1"}, {Delay: -1}, {TimeToRun: -1}, {Priority: -2}, {Priority: 1 << 32},
		{Key: strings.Repeat("k", 201)}, {Group: strings.Repeat("g", 201)}, {Mode: IfAbsent}, {Unique: 1}, {Debounce: 1},
		{At: time.Unix(-1, 0)}, {At: time.Unix(1e11, 0)}, {At: time.Unix(9, 0), Delay: 1}, {Every: 1 << 62},
		{Key: strings.Repeat("\n", 200), Group: strings.Repeat("\n", 200), Mode: strings.Repeat("m", 900)},
	} {
		_, err := client.Put(background, job)
		isError(t, err, ErrInvalid)
	}
	_, err := client.PeekNext(background, tube(t), "ready\r\nquit")
	isError(t, err, ErrInvalid)
	_, err = client.Jobs(background, Query{States: []string{"ready body=yes"}})
	isError(t, err, ErrInvalid)
	_, err = client.PutSchedule(background, Schedule{Name: "a", Overlap: "b c"})
	isError(t, err, ErrInvalid)
	_, err = client.Cancel(background, Ref{})
	isError(t, err, ErrInvalid)
	for _, options := range []Options{{Token: "short"}, {Token: "with a blank in the middle"}, {Token: "sixteen-letters\r\nstats"}} {
		_, err = Dial(background, os.Getenv("SERVER"), &options)
		isError(t, err, ErrInvalid)
	}
	for _, address := range []string{"x", "host:", "host:1\r\n", ":1", "tls:x"} {
		_, err = Dial(background, address, nil)
		isError(t, err, ErrInvalid)
	}
}

func TestVersionsAndKeys(t *testing.T) {
	client, ref := server(t), Key(tube(t), "k")
	job := Job{Tube: tube(t), Key: "k", Delay: 10 * time.Second, Mode: IfAbsent}
	first := must[Receipt](t)(client.Put(background, job))
	equal(t, []any{first.Outcome, first.Version}, []any{Inserted, uint64(1)})
	equal(t, must[Receipt](t)(client.Put(background, job)), Receipt{first.ID, Kept, 1})
	job.Mode, job.Version = "", 1
	equal(t, must[Receipt](t)(client.Put(background, job)).Outcome, Replaced)
	_, err := client.Put(background, job)
	isError(t, err, ErrStale)
	equal(t, must[uint64](t)(client.Move(background, Ref{Tube: tube(t), Key: "k", Version: 2}, 1500*time.Millisecond)), uint64(3))
	equal(t, must[[]JobInfo](t)(client.Jobs(background, Query{ID: first.ID}))[0].Delay, 1500*time.Millisecond)
	_, err = client.Cancel(background, Ref{Tube: tube(t), Key: "k", Version: 1})
	isError(t, err, ErrStale)
	equal(t, must[bool](t)(client.Cancel(background, ref)), false)
	_, err = client.Cancel(background, ref)
	isError(t, err, ErrNotFound)

	must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Key: "k", Unique: time.Hour}))
	lease := must[*Lease](t)(client.Reserve(background, tube(t)))
	_, err = client.Move(background, ref, 0)
	isError(t, err, ErrReserved)
	fine(t, lease.Delete(background))
	equal(t, must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Key: "k", Unique: time.Hour})).Outcome, Ended)
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Key: "r"}))
	lease = must[*Lease](t)(client.Reserve(background, tube(t)))
	equal(t, must[bool](t)(client.Cancel(background, Key(tube(t), "r"))), true)
	fine(t, lease.Close())
}

func TestTimesAreExact(t *testing.T) {
	client := server(t)
	now := must[time.Time](t)(client.Advance(background, 0))
	at := now.Add(90*time.Second + 1)
	put := must[Receipt](t)(client.Put(background, Job{Tube: tube(t), At: at, Key: "k", TimeToRun: 1500 * time.Millisecond, Priority: MostUrgent}))
	listed := must[[]JobInfo](t)(client.Jobs(background, Query{ID: put.ID}))[0]
	equal(t, []any{listed.Due.Equal(at), listed.Clock, listed.TimeToRun, listed.Priority}, []any{true, "wall", 1500 * time.Millisecond, uint64(0)})
	at = now.Add(time.Hour).Add(999999999)
	must[uint64](t)(client.MoveTo(background, ID(put.ID), at))
	equal(t, must[[]JobInfo](t)(client.Jobs(background, Query{Tube: tube(t), From: at, To: at.Add(1)}))[0].Due.Equal(at), true)
}

func TestFailuresAreCounted(t *testing.T) {
	client := server(t)
	put := must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Attempts: 2, Backoff: 10 * time.Second, Priority: 7, Keep: time.Hour}))
	for i := 0; i < 2; i++ {
		job := must[*Lease](t)(client.ReserveWithin(background, 0, "default", tube(t)))
		equal(t, job.Tube, tube(t))
		fine(t, job.Report(background, []byte("half\r\ndone")))
		equal(t, must[bool](t)(job.Release(background, "it is full,\r\n100 %")), i == 1)
		must[time.Time](t)(client.Advance(background, 11*time.Second))
	}
	listed := must[[]JobInfo](t)(client.Jobs(background, Query{Tube: tube(t), States: []string{"buried"}}))[0]
	equal(t, []any{listed.ID, listed.Error, listed.Priority}, []any{put.ID, "it is full,\r\n100 %", uint64(7)})
	runs := must[[]Run](t)(client.History(background, RunQuery{Tube: tube(t), Reports: true}))
	equal(t, []any{len(runs), runs[0].Outcome, string(runs[0].Report)}, []any{2, "buried", "half\r\ndone"})
	equal(t, must[Peeked](t)(client.PeekNext(background, tube(t), "buried")).ID, put.ID)
	equal(t, must[uint64](t)(client.Kick(background, tube(t), 10)), uint64(1))
	fine(t, must[*Lease](t)(client.Reserve(background, tube(t))).Bury(background, ""))
	fine(t, client.KickJob(background, put.ID))
	job := must[*Lease](t)(client.ReserveJob(background, put.ID))
	_, err := client.ReserveJob(background, put.ID)
	isError(t, err, ErrNotFound)
	equal(t, must[bool](t)(job.ReleaseAfter(background, 1500*time.Millisecond, "")), false)
	equal(t, must[Stats](t)(client.StatsJob(background, ID(put.ID))).Int("releases"), int64(3))
}

func TestALeaseMayBeTooLate(t *testing.T) {
	client := server(t)
	put := must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Key: "k", TimeToRun: time.Second}))
	late := must[*Lease](t)(client.Reserve(background, tube(t)))
	must[time.Time](t)(client.Advance(background, 2*time.Second))
	isError(t, late.Touch(background), ErrNotFound)
	isError(t, late.Delete(background), ErrNotFound)
	isError(t, late.Delete(background), ErrLeaseEnded)
	job := must[*Lease](t)(client.Reserve(background, tube(t)))
	reason := strings.Repeat("ä", 200)
	must[bool](t)(job.Release(background, reason))
	equal(t, must[[]JobInfo](t)(client.Jobs(background, Query{ID: put.ID}))[0].Error, reason[:254])
	fine(t, must[*Lease](t)(client.Reserve(background, tube(t))).Delete(background))
	_, err := client.Peek(background, ID(put.ID))
	isError(t, err, ErrNotFound)
}

func TestListsHavePages(t *testing.T) {
	client := server(t)
	for i := 0; i < 1100; i++ {
		must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Key: fmt.Sprint("k", i), Delay: time.Minute}))
	}
	equal(t, len(must[[]JobInfo](t)(client.Jobs(background, Query{Tube: tube(t)}))), 1100)
	equal(t, len(must[[]JobInfo](t)(client.Jobs(background, Query{Tube: tube(t), Limit: 1050}))), 1050)
	equal(t, len(must[[]JobInfo](t)(client.Jobs(background, Query{Tube: tube(t), Prefix: "k109"}))), 11)
	equal(t, must[[]uint64](t)(client.Forecast(background, tube(t), time.Hour, 2)), []uint64{1100, 0})
	equal(t, contains(must[[]string](t)(client.Tubes(background)), tube(t)), true)
	equal(t, must[Stats](t)(client.StatsTube(background, tube(t))).Int("current-jobs-delayed"), int64(1100))
}

func TestTubesAndSchedules(t *testing.T) {
	client := server(t)
	limit := Limit{Running: 2, Starts: 5, Per: 2500 * time.Millisecond, Burst: 3, Weight: 7, Group: "g %"}
	fine(t, client.SetLimit(background, tube(t), limit))
	equal(t, must[[]LimitInfo](t)(client.Limits(background, tube(t))), []LimitInfo{{Tube: tube(t), Limit: limit}})
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Delay: time.Hour}))
	fine(t, client.Pause(background, tube(t), 1500*time.Millisecond))
	equal(t, must[Stats](t)(client.StatsTube(background, tube(t))).Int("pause"), int64(2))
	fine(t, client.Pause(background, tube(t), 0))

	schedule := Schedule{Tube: tube(t), Name: "at night", Cron: "0 3 * * *", Zone: "Europe/Berlin", Body: []byte("all"), Spread: time.Second / 2,
		Start: time.Unix(1900000000, 500000000), Overlap: OverlapWait, Missed: MissedSkip, Skip: 5 * time.Second, Attempts: 2, Group: "g %"}
	next := must[time.Time](t)(client.PutSchedule(background, schedule))
	found := must[[]ScheduleInfo](t)(client.Schedules(background, ScheduleQuery{Tube: tube(t), Name: "at night", Bodies: true}))[0]
	equal(t, []any{found.Name, found.Cron, found.Zone, found.Next.Equal(next), found.Start.Equal(schedule.Start), found.Spread, string(found.Body), found.Group},
		[]any{"at night", "0 3 * * *", "Europe/Berlin", true, true, time.Second / 2, "all", "g %"})
	equal(t, []any{len(found.Times), found.Times[0].Hour(), found.End.IsZero()}, []any{10, 3, true})
	fine(t, client.PauseSchedule(background, tube(t), "at night"))
	fine(t, client.ResumeSchedule(background, tube(t), "at night"))
	id := must[uint64](t)(client.RunSchedule(background, tube(t), "at night"))
	equal(t, string(must[Peeked](t)(client.Peek(background, ID(id))).Body), "all")
	fine(t, client.DeleteSchedule(background, tube(t), "at night"))
	isError(t, client.DeleteSchedule(background, tube(t), "at night"), ErrNotFound)
	_, err := client.PutSchedule(background, Schedule{Name: "x", Cron: "0 3 * *\r\n"})
	isError(t, err, ErrBadSchedule)
	var wrong *ScheduleError
	equal(t, errors.As(err, &wrong) && wrong.Field == "cron" && wrong.Reason != "", true)
}

// TestEveryMemberIsKnown compares the structs with what the server lists: a new member has to be added to them.
func TestEveryMemberIsKnown(t *testing.T) {
	client := server(t)
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Key: "e", Every: time.Hour, Group: "g", Keep: time.Hour, Delay: 1}))
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Key: "u", Unique: time.Hour}))
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Key: "d", Debounce: time.Hour, Delay: time.Hour, Expire: time.Hour, Expired: ExpiredBury, Code: 1}))
	must[time.Time](t)(client.Advance(background, time.Millisecond))
	lease := must[*Lease](t)(client.Reserve(background, tube(t)))
	defer lease.Close()
	must[time.Time](t)(client.PutSchedule(background, Schedule{Tube: tube(t), Name: "s", Cron: "@daily", Keep: time.Hour, Group: "g", End: time.Unix(4e9, 0), Expire: time.Hour, Expired: ExpiredBury, Code: 1}))
	must[uint64](t)(client.RunSchedule(background, tube(t), "s"))
	run := must[*Lease](t)(client.Reserve(background, tube(t)))
	fine(t, run.Report(background, []byte("r")))
	fine(t, run.Delete(background))
	fine(t, client.SetLimit(background, tube(t), Limit{Running: 1, Each: true}))
	for line, info := range map[string][]any{
		"list-delayed tube=" + tube(t) + " body=yes":          {JobInfo{}},
		"list-schedules tube=" + tube(t) + " name=s body=yes": {ScheduleInfo{}},
		"history tube=" + tube(t) + " body=yes":               {Run{}},
		"list-limits tube=" + tube(t):                         {LimitInfo{}, Limit{}},
	} {
		a, err := client.ask(background, command(line).expect("OK"))
		fine(t, err)
		known, seen := map[string]bool{}, map[string]bool{}
		for _, one := range info {
			for i := 0; i < reflect.TypeOf(one).NumField(); i++ {
				known[strings.TrimSuffix(reflect.TypeOf(one).Field(i).Tag.Get("line"), ",escaped")] = true
			}
		}
		for _, object := range strings.Split(strings.TrimSpace(string(a.body)), "\n") {
			var members map[string]json.RawMessage
			fine(t, json.Unmarshal([]byte(object), &members))
			for name := range members {
				if seen[name] = true; !known[name] {
					t.Errorf("%s: no struct has %s", line, name)
				}
			}
		}
		for name := range known {
			if name != "" && !seen[name] {
				t.Errorf("%s: the server has no %s", line, name)
			}
		}
	}
}

func TestTokensAndTLS(t *testing.T) {
	token := Options{Token: os.Getenv("TOKEN")}
	client := open(t, os.Getenv("TOKENED"), &token)
	must[Receipt](t)(client.Put(background, Job{Tube: "mail"}))
	_, err := client.Put(background, Job{Tube: "other"})
	isError(t, err, ErrDenied)
	_, err = Dial(background, os.Getenv("TOKENED"), &Options{Token: "another-token-that-is-wrong"})
	isError(t, err, ErrDenied)
	without := open(t, os.Getenv("TOKENED"), nil)
	_, err = without.Put(background, Job{Tube: "mail"})
	isError(t, err, ErrDenied)
	isError(t, (&Worker{Client: without, Handle: func(context.Context, *Lease) error { return nil }}).Run(background), ErrDenied)

	pool := x509.NewCertPool()
	equal(t, pool.AppendCertsFromPEM([]byte(os.Getenv("CA"))), true)
	secure := open(t, os.Getenv("TLS"), &Options{TLS: &tls.Config{RootCAs: pool}})
	body := bytes.Repeat([]byte("x"), 65535)
	must[Receipt](t)(secure.Put(background, Job{Body: body}))
	job := must[*Lease](t)(secure.Reserve(background))
	equal(t, bytes.Equal(job.Body, body), true)
	fine(t, job.Delete(background))
	ctx, cancel := context.WithCancel(background)
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = secure.Reserve(ctx, tube(t))
	isError(t, err, context.Canceled)
	_, err = Dial(background, os.Getenv("TLS"), nil)
	isError(t, err, ErrConnection)
	file := t.TempDir() + "/ca.pem"
	fine(t, os.WriteFile(file, []byte(os.Getenv("CA")), 0o600))
	t.Setenv("WEEKWHEEL_TLS_CA", file)
	t.Setenv("WEEKWHEEL_SERVER", os.Getenv("TLS"))
	must[Stats](t)(open(t, "", nil).Stats(background))
}

func TestFiftyGoroutinesShareAClient(t *testing.T) {
	client := server(t)
	var done sync.WaitGroup
	var worked atomic.Int64
	const goroutines, each = 50, 20
	for i := 0; i < goroutines; i++ {
		done.Add(2)
		mine := fmt.Sprint(tube(t), i%10)
		go func(i int) {
			defer done.Done()
			for j := 0; j < each; j++ {
				put, err := client.Put(background, Job{Tube: mine, Body: []byte(mine), Key: fmt.Sprint(i, "-", j)})
				if err != nil || put.Outcome != Inserted {
					t.Error(put, err)
				}
			}
		}(i)
		go func() {
			defer done.Done()
			for j := 0; j < each; j++ {
				job, err := client.Reserve(background, mine)
				if err != nil || string(job.Body) != mine {
					t.Error(err)
					return
				}
				if err := job.Delete(background); err != nil {
					t.Error(err)
				}
				worked.Add(1)
			}
		}()
	}
	done.Wait()
	equal(t, worked.Load(), int64(goroutines*each))
}
