// Tests what becomes of the client when connections, contexts, servers and jobs end. WEEKWHEELD is the program, PORT one that stays
// free while it is started again.
package weekwheel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A process is a server of the test's own.
type process struct {
	*exec.Cmd
	address string
}

func start(t *testing.T, arguments ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Getenv("WEEKWHEELD"), arguments...)}
	said, err := p.StderrPipe()
	fine(t, err)
	fine(t, p.Start())
	t.Cleanup(func() { p.stop(syscall.SIGKILL) })
	for lines := bufio.NewScanner(said); p.address == ""; {
		if !lines.Scan() {
			t.Fatal("the server does not listen")
		}
		_, p.address, _ = strings.Cut(lines.Text(), "listening on ")
	}
	go io.Copy(io.Discard, said)
	return p
}

func (p *process) stop(signal os.Signal) {
	if p.ProcessState == nil {
		p.Process.Signal(signal)
		p.Wait()
	}
}

// A relay is between client and server. What a line of the client begins with may cut the connection: before the server has the
// line, or when it has answered, before the client has that.
type relay struct {
	net.Listener
	server string
	before atomic.Value // strings
	after  atomic.Value
	mutex  sync.Mutex
	conns  []net.Conn
}

func between(t *testing.T, server string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fine(t, err)
	r := &relay{Listener: listener, server: server}
	r.before.Store("never")
	r.after.Store("never")
	var pairs sync.WaitGroup
	pairs.Add(1)
	go func() {
		defer pairs.Done()
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			pairs.Add(1)
			go func() {
				defer pairs.Done()
				r.carry(client)
			}()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		r.cut()
		pairs.Wait()
	})
	return r
}

func (r *relay) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.server)
	if err != nil {
		return
	}
	defer server.Close()
	r.mutex.Lock()
	r.conns = append(r.conns, client, server)
	r.mutex.Unlock()
	var isCut atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1<<16)
		for {
			n, err := server.Read(b)
			if err != nil || isCut.Load() {
				client.Close()
				return
			}
			client.Write(b[:n])
		}
	}()
	b := make([]byte, 1<<16)
	for {
		n, err := client.Read(b)
		if err != nil || strings.HasPrefix(string(b[:n]), r.before.Load().(string)) {
			break
		}
		if strings.HasPrefix(string(b[:n]), r.after.Load().(string)) {
			isCut.Store(true)
		}
		server.Write(b[:n])
	}
	if !isCut.Load() {
		server.Close()
	}
	client.Close()
	<-done
}

// cut ends all connections.
func (r *relay) cut() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, conn := range r.conns {
		conn.Close()
	}
	r.conns = nil
}

func TestABrokenConnectionSaysWhatMayHaveBeenDone(t *testing.T) {
	r := between(t, os.Getenv("SERVER"))
	client := open(t, r.Addr().String(), nil)
	direct := server(t)
	count := func() int64 { return int64(len(must[[]JobInfo](t)(direct.Jobs(background, Query{Tube: tube(t)})))) }

	// Before the put: it is certain that it was not carried out.
	r.before.Store("use ")
	_, err := client.Put(background, Job{Tube: tube(t)})
	isError(t, err, ErrConnection)
	equal(t, errors.Is(err, ErrUnknownOutcome), false)
	equal(t, count(), int64(0))
	// In the put, before and after it was carried out: nobody knows.
	r.before.Store("put ")
	_, err = client.Put(background, Job{Tube: tube(t)})
	isError(t, err, ErrUnknownOutcome)
	isError(t, err, ErrConnection)
	equal(t, count(), int64(0))
	r.before.Store("never")
	r.after.Store("put ")
	_, err = client.Put(background, Job{Tube: tube(t)})
	isError(t, err, ErrUnknownOutcome)
	until(t, "the job was put", func() bool { return count() == 1 })
	// The next command connects again.
	r.after.Store("never")
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t)}))
	equal(t, count(), int64(2))
	// Connections that were cut while nobody used them are noticed, and others are kept, however long ago their deadline was.
	fine(t, client.idle[0].conn.SetDeadline(time.Unix(1, 0)))
	equal(t, isAlive(client.idle[0].socket), true)
	r.cut()
	until(t, "it is known to be cut", func() bool { return !isAlive(client.idle[0].socket) })
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t)}))
	// With the connection a lease ends, and the job comes again.
	lease := must[*Lease](t)(client.Reserve(background, tube(t)))
	r.cut()
	isError(t, lease.Delete(background), ErrUnknownOutcome)
	isError(t, lease.Delete(background), ErrLeaseEnded)
	equal(t, lease.HasEnded(), true)
	until(t, "it is given back", func() bool {
		return must[Stats](t)(direct.StatsJob(background, ID(lease.ID)))["state"] == "ready"
	})
}

func TestAUnixSocketIsServed(t *testing.T) {
	folder, err := os.MkdirTemp("", "")
	fine(t, err)
	defer os.RemoveAll(folder)
	start(t, "--memory", "--listen", "127.0.0.1:0", "--unix", folder+"/s")
	until(t, "it listens", func() bool {
		conn, err := net.Dial("unix", folder+"/s")
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	client := open(t, "unix:"+folder+"/s", nil)
	must[Receipt](t)(client.Put(background, Job{}))
	fine(t, must[*Lease](t)(client.Reserve(background)).Delete(background))
}

func TestASilentServerIsLost(t *testing.T) {
	p := start(t, "--memory", "--listen", "127.0.0.1:0")
	client := open(t, p.address, nil)
	client.idle[0].span = 100 * time.Millisecond
	fine(t, p.Process.Signal(syscall.SIGSTOP))
	_, err := client.Put(background, Job{})
	isError(t, err, ErrUnknownOutcome)
	isError(t, err, os.ErrDeadlineExceeded)
	fine(t, p.Process.Signal(syscall.SIGCONT))
}

func TestAnotherServerIsRefused(t *testing.T) {
	for _, says := range []string{"HTTP/1.1 400 Bad Request\r\n", "OK 99999999999\r\n", "OK x\r\n", "OK 5\r\nab", strings.Repeat("x", 9000), ""} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		fine(t, err)
		served := make(chan struct{})
		go func() {
			defer close(served)
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 100))
			io.WriteString(conn, says)
			conn.Close()
		}()
		client := open(t, listener.Addr().String(), nil)
		if _, err := client.Stats(background); err == nil {
			t.Errorf("%q was taken for an answer", says)
		}
		<-served
		listener.Close()
	}
}

func TestAContextEndsACommand(t *testing.T) {
	p := start(t, "--memory", "--listen", "127.0.0.1:0")
	client := open(t, p.address, nil)
	ended, cancel := context.WithCancel(background)
	cancel()
	_, err := client.Put(ended, Job{})
	isError(t, err, context.Canceled)
	equal(t, errors.Is(err, ErrUnknownOutcome), false)
	_, err = Dial(ended, p.address, nil)
	isError(t, err, context.Canceled)

	// A server that reads and does not answer.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fine(t, err)
	defer listener.Close()
	ctx, cancel := context.WithCancel(background)
	client = open(t, listener.Addr().String(), nil)
	conn, err := listener.Accept()
	fine(t, err)
	go func() {
		conn.Read(make([]byte, 1))
		cancel()
	}()
	_, err = client.Put(ctx, Job{Body: make([]byte, 60000)})
	isError(t, err, context.Canceled)
	isError(t, err, ErrUnknownOutcome)
	conn.Close()
}

func TestAContextEndsAReserve(t *testing.T) {
	client := server(t)
	waiting := func() int64 {
		stats, err := client.StatsTube(background, tube(t))
		if !errors.Is(err, ErrNotFound) {
			fine(t, err)
		}
		return stats.Int("current-waiting")
	}
	ctx, cancel := context.WithCancel(background)
	failed := make(chan error)
	go func() {
		_, err := client.Reserve(ctx, tube(t))
		failed <- err
	}()
	until(t, "it waits", func() bool { return waiting() == 1 })
	cancel()
	equal(t, <-failed, context.Canceled)
	// The server gives no job to it any more.
	until(t, "nobody waits", func() bool { return waiting() == 0 })
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t)}))
	equal(t, must[[]JobInfo](t)(client.Jobs(background, Query{Tube: tube(t)}))[0].Reserves, uint64(0))
}

func TestNoJobIsLostWhenReservesAreCancelledUnderLoad(t *testing.T) {
	client := open(t, start(t, "--memory", "--listen", "127.0.0.1:0").address, nil)
	const jobs, goroutines = 1000, 20
	var seen sync.Map
	var left atomic.Int64
	left.Store(jobs)
	var done sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		done.Add(1)
		go func(i int) {
			defer done.Done()
			for round := i; left.Load() > 0; round++ {
				ctx, cancel := context.WithCancel(background)
				// The busier the machine, the later.
				timer := time.AfterFunc(time.Duration(round%40)*time.Duration(1+round/200)*50*time.Microsecond, cancel)
				lease, err := client.Reserve(ctx)
				timer.Stop()
				cancel()
				if errors.Is(err, context.Canceled) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				_, isTwice := seen.LoadOrStore(lease.ID, true)
				if err := lease.Delete(background); err != nil || isTwice {
					t.Error(lease.ID, err, isTwice)
				}
				left.Add(-1)
			}
		}(i)
	}
	for i := 0; i < jobs; i++ {
		must[Receipt](t)(client.Put(background, Job{Backoff: time.Millisecond}))
	}
	done.Wait()
	equal(t, must[Stats](t)(client.Stats(background)).Int("current-jobs-ready"), int64(0))
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	client := server(t)
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t)}))
	lease := must[*Lease](t)(client.Reserve(background, tube(t)))
	failed := make(chan error)
	go func() {
		_, err := client.Reserve(background, tube(t)+"2")
		failed <- err
	}()
	other := server(t)
	until(t, "it waits", func() bool {
		stats, err := other.StatsTube(background, tube(t)+"2")
		return err == nil && stats.Int("current-waiting") == 1
	})
	fine(t, client.Close())
	isError(t, <-failed, ErrClosed)
	isError(t, lease.Delete(background), ErrClosed)
	_, err := client.Put(background, Job{})
	isError(t, err, ErrClosed)
	isError(t, (&Worker{Client: client, Handle: func(context.Context, *Lease) error { return nil }}).Run(background), ErrClosed)
	fine(t, client.Close())
}

// ---- Workers

// quiet collects what a worker says.
func quiet(said chan<- error) func(error, *Lease) {
	return func(err error, _ *Lease) {
		select {
		case said <- err:
		default:
		}
	}
}

func TestAWorkerEndsItsJobs(t *testing.T) {
	client := server(t)
	for _, body := range []string{"good", "bad", "panic", "bury", "own", "tenth"} {
		must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Body: []byte(body), Key: body}))
	}
	ctx, stop := context.WithCancel(context.WithValue(background, tube(t), "a value"))
	defer stop()
	var runs atomic.Int64
	said := make(chan error, 10)
	worker := &Worker{Client: client, Tubes: []string{tube(t)}, Concurrency: 3, Attempts: 1, OnError: quiet(said)}
	worker.Handle = func(ctx context.Context, job *Lease) error {
		defer func() {
			if runs.Add(1) == 6 {
				stop()
			}
		}()
		if ctx.Value(tube(t)) != "a value" {
			t.Error("the context has other values")
		}
		switch string(job.Body) {
		case "bad", "tenth":
			return fmt.Errorf("no address in %s", job.Body)
		case "panic":
			panic("at the disco")
		case "bury":
			return fmt.Errorf("it is %w", Bury(errors.New("hopeless")))
		case "own":
			_, err := job.ReleaseAfter(ctx, time.Hour, "later")
			return err
		}
		return nil
	}
	fine(t, worker.Run(ctx))
	found := map[string]string{}
	for _, job := range must[[]JobInfo](t)(client.Jobs(background, Query{Tube: tube(t)})) {
		found[job.Key] = job.State + " " + job.Error
	}
	equal(t, found, map[string]string{"bad": "buried no address in bad", "tenth": "buried no address in tenth", "panic": "buried panic: at the disco",
		"bury": "buried it is hopeless", "own": "delayed later"})
}

func TestAFailedJobComesAgain(t *testing.T) {
	client := server(t)
	put := must[Receipt](t)(client.Put(background, Job{Tube: tube(t)}))
	for i := 0; i < 3; i++ {
		ctx, stop := context.WithCancel(background)
		worker := &Worker{Client: client, Tubes: []string{tube(t)}, OnError: func(error, *Lease) {}}
		worker.Handle = func(context.Context, *Lease) error { defer stop(); return errors.New("not now") }
		fine(t, worker.Run(ctx))
		job := must[[]JobInfo](t)(client.Jobs(background, Query{ID: put.ID}))[0]
		equal(t, []any{job.State, job.Error, job.Delay > 0 && job.Delay <= time.Second<<i}, []any{"delayed", "not now", true})
		must[time.Time](t)(client.Advance(background, 4*time.Second))
	}
}

func TestAWorkerTouchesItsJob(t *testing.T) {
	client := server(t)
	job := Job{Tube: tube(t), Key: "k", TimeToRun: time.Second}
	must[Receipt](t)(client.Put(background, job))
	ctx, stop := context.WithCancel(background)
	defer stop()
	worker := &Worker{Client: client, Tubes: []string{tube(t)}, Concurrency: 2, OnError: func(error, *Lease) {}}
	var runs atomic.Int64
	worker.Handle = func(ctx context.Context, lease *Lease) error {
		if runs.Add(1) > 1 {
			stop()
			return nil
		}
		for i := 0; i < 4; i++ {
			until(t, "it is touched", func() bool {
				return must[[]JobInfo](t)(client.Jobs(background, Query{ID: lease.ID}))[0].Left == time.Second
			})
			must[time.Time](t)(client.Advance(background, 600*time.Millisecond))
		}
		if ctx.Err() != nil || lease.HasEnded() {
			t.Error("the lease was lost")
		}
		// Put again, the work is out of date: another run begins, and the context of this one ends.
		job.TimeToRun = time.Hour
		must[Receipt](t)(client.Put(background, job))
		<-ctx.Done()
		return ctx.Err()
	}
	fine(t, worker.Run(ctx))
	equal(t, runs.Load(), int64(2))
}

func TestAWorkerGoesOnAfterARestart(t *testing.T) {
	data := t.TempDir() + "/jobs"
	p := start(t, "--data", data, "--listen", "127.0.0.1:"+os.Getenv("PORT"))
	client := open(t, p.address, nil)
	const jobs, lanes = 300, 50
	var worked sync.Map
	var count atomic.Int64
	said := make(chan error, 1)
	ctx, stop := context.WithCancel(background)
	worker := &Worker{Client: client, Concurrency: lanes, OnError: quiet(said)}
	worker.Handle = func(ctx context.Context, job *Lease) error {
		if _, again := worked.LoadOrStore(string(job.Body), true); !again && count.Add(1) == jobs {
			stop()
		}
		return nil
	}
	ended := make(chan error)
	go func() { ended <- worker.Run(ctx) }()
	for i := 0; i < jobs; i++ {
		// With a key a put may be repeated, whatever became of it.
		job := Job{Body: []byte(fmt.Sprint(i)), Key: fmt.Sprint(i), Mode: IfAbsent}
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			_, err := client.Put(background, job)
			if err == nil {
				break
			}
			if !errors.Is(err, ErrConnection) || time.Now().After(end) {
				t.Fatal(err)
			}
			if p.ProcessState != nil {
				p = start(t, "--data", data, "--listen", p.address)
			}
		}
		if i == jobs/3 {
			p.stop(syscall.SIGKILL)
		}
		if i == jobs/3*2 {
			p.stop(syscall.SIGTERM)
		}
	}
	fine(t, <-ended)
	equal(t, count.Load(), int64(jobs))
	isError(t, <-said, ErrConnection)
}

func TestALostLeaseIsTold(t *testing.T) {
	r := between(t, os.Getenv("SERVER"))
	client := open(t, r.Addr().String(), nil)
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t)}))
	ctx, stop := context.WithCancel(background)
	defer stop()
	said := make(chan error, 10)
	worker := &Worker{Client: client, Tubes: []string{tube(t)}, OnError: quiet(said)}
	worker.Handle = func(ctx context.Context, job *Lease) error {
		stop()
		r.cut()
		<-ctx.Done() // by a touch
		return nil
	}
	fine(t, worker.Run(ctx))
	isError(t, <-said, ErrLeaseEnded)
}

func TestALostConnectionIsSeenBeforeTheNextTouch(t *testing.T) {
	r := between(t, os.Getenv("SERVER"))
	client, direct := open(t, r.Addr().String(), nil), server(t)
	asked := func() int64 { return must[Stats](t)(direct.Stats(background)).Int("cmd-stats-job") }
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t), TimeToRun: 100 * time.Hour}))
	ctx, stop := context.WithCancel(background)
	defer stop()
	worker := &Worker{Client: client, Tubes: []string{tube(t)}, OnError: quiet(make(chan error, 10))}
	worker.Handle = func(ctx context.Context, job *Lease) error {
		stop()
		before := asked()
		until(t, "the worker knows the time to run", func() bool { return asked() > before })
		r.cut()
		select {
		case <-ctx.Done():
		case <-time.After(patience):
			t.Error("the context goes on without a connection")
		}
		return nil
	}
	fine(t, worker.Run(ctx))
}

func TestBeanstalkdIsServed(t *testing.T) {
	if os.Getenv("BEANSTALKD") == "" {
		return
	}
	client := open(t, os.Getenv("BEANSTALKD"), nil)
	must[Receipt](t)(client.Put(background, Job{Tube: tube(t), Priority: 3}))
	_, err := client.Put(background, Job{Tube: tube(t), Key: "k", Body: []byte("put 0 0 1 0")})
	isError(t, err, ErrUnsupported)
	job := must[*Lease](t)(client.Reserve(background, tube(t)))
	equal(t, must[bool](t)(job.ReleaseAfter(background, 0, "a reason")), false)
	ctx, stop := context.WithCancel(background)
	worker := &Worker{Client: client, Tubes: []string{tube(t)}, Attempts: 2, OnError: func(error, *Lease) { stop() }}
	worker.Handle = func(context.Context, *Lease) error { return errors.New("not now") }
	fine(t, worker.Run(ctx))
	stats := must[Stats](t)(client.StatsJob(background, ID(job.ID)))
	equal(t, []any{stats["state"], stats.Int("pri"), stats.Int("reserves")}, []any{"buried", int64(3), int64(2)})
}

func TestAWorkerStopsWithoutAServer(t *testing.T) {
	p := start(t, "--memory", "--listen", "127.0.0.1:0")
	client := open(t, p.address, nil)
	ctx, stop := context.WithCancel(background)
	worker := &Worker{Client: client, Concurrency: 5, Handle: func(context.Context, *Lease) error { return nil }}
	worker.OnError = func(error, *Lease) { stop() }
	p.stop(syscall.SIGKILL)
	fine(t, worker.Run(ctx))
}

func TestManyLanesTellOfAServerOnce(t *testing.T) {
	p := start(t, "--memory", "--listen", "127.0.0.1:0")
	client := open(t, p.address, nil)
	p.stop(syscall.SIGKILL)
	ctx, stop := context.WithCancel(background)
	began, told := time.Now(), 0
	worker := &Worker{Client: client, Concurrency: 50, Handle: func(context.Context, *Lease) error { return nil }}
	var mutex sync.Mutex
	worker.OnError = func(error, *Lease) {
		mutex.Lock()
		defer mutex.Unlock()
		if told++; told == 4 {
			stop()
		}
	}
	fine(t, worker.Run(ctx))
	// Three pauses are behind it.
	if took := time.Since(began); took < 3*firstPause {
		t.Errorf("%d failures were told in %v", told, took)
	}
}
