// The example of the documentation.

package weekwheel_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"weekwheel.example/weekwheel"
)

// A service puts a job that is due later, and works it. WEEKWHEEL_SERVER names the server.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client, err := weekwheel.Dial(ctx, "", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	_, err = client.Put(ctx, weekwheel.Job{
		Tube: "mail", Body: []byte("remind ada"), Delay: 200 * time.Millisecond, Key: "ada", Attempts: 5, Backoff: time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}

	worker := weekwheel.Worker{
		Client: client, Tubes: []string{"mail"}, Concurrency: 4,
		Handle: func(ctx context.Context, job *weekwheel.Lease) error {
			fmt.Printf("%s\n", job.Body)
			stop() // a service goes on until a signal: see signal.NotifyContext
			return nil
		},
	}
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: remind ada
}
