// Produces and consumes a record with each way to log in; one line for each: its name and "ok", or the error.
// Arguments: name, address, mechanism (or none), user, secret, file with the CA (or none); again for each way.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func exchange(name, address, mechanism, user, secret, ca string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	topic := fmt.Sprintf("go-%d", time.Now().UnixNano())
	opts := []kgo.Opt{kgo.SeedBrokers(address), kgo.AllowAutoTopicCreation(), kgo.ConsumeTopics(topic),
		kgo.ConsumerGroup(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	switch mechanism {
	case "PLAIN":
		opts = append(opts, kgo.SASL(plain.Auth{User: user, Pass: secret}.AsMechanism()))
	case "SCRAM-SHA-256":
		opts = append(opts, kgo.SASL(scram.Auth{User: user, Pass: secret}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		opts = append(opts, kgo.SASL(scram.Auth{User: user, Pass: secret}.AsSha512Mechanism()))
	case "token":
		opts = append(opts, kgo.SASL(scram.Auth{User: user, Pass: secret, IsToken: true}.AsSha256Mechanism()))
	case "OAUTHBEARER":
		opts = append(opts, kgo.SASL(oauth.Auth{Token: secret}.AsMechanism()))
	}
	if ca != "none" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		opts = append(opts, kgo.DialTLSConfig(&tls.Config{RootCAs: pool}))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return err
	}
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("value")}).FirstErr(); err != nil {
		return err
	}
	for {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		if fetches.NumRecords() > 0 {
			return client.CommitUncommittedOffsets(ctx)
		}
	}
}

func main() {
	for a := os.Args[1:]; len(a) >= 6; a = a[6:] {
		said := "ok"
		if err := exchange(a[0], a[1], a[2], a[3], a[4], a[5]); err != nil {
			said = err.Error()
		}
		fmt.Printf("%s\t%s\n", a[0], said)
	}
}
