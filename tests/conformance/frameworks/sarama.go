// What a program with sarama does with a broker, whose addresses are the argument. A line for each scene: its name and
// "ok", or what was wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var (
	addresses = strings.Split(os.Args[1], ",")
	run       = time.Now().UnixNano()
)

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V4_1_0_0
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	return config
}

func check(isSo bool, text string, values ...any) {
	if !isSo {
		panic(fmt.Errorf(text, values...))
	}
}

func must[T any](value T, err error) T {
	check(err == nil, "%w", err)
	return value
}

func until(what string, isSo func() bool) {
	for end := time.Now().Add(time.Minute); !isSo(); time.Sleep(50 * time.Millisecond) {
		check(time.Now().Before(end), "not in time: %s", what)
	}
}

func made(admin sarama.ClusterAdmin, name string, partitions int32) string {
	topic := fmt.Sprintf("%s-%d", name, run)
	check(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false) == nil, "no topic")
	until("a leader", func() bool {
		client := must(sarama.NewClient(addresses, settings()))
		defer client.Close()
		found, err := client.WritablePartitions(topic)
		return err == nil && len(found) == int(partitions)
	})
	return topic
}

// Texts of a partition from its start on.
func read(config *sarama.Config, topic string, count int) []string {
	consumer := must(sarama.NewConsumer(addresses, config))
	defer consumer.Close()
	partition := must(consumer.ConsumePartition(topic, 0, sarama.OffsetOldest))
	defer partition.Close()
	var texts []string
	for len(texts) < count {
		select {
		case message := <-partition.Messages():
			texts = append(texts, string(message.Value))
		case <-time.After(time.Minute):
			panic(fmt.Errorf("%d of %d records came", len(texts), count))
		}
	}
	return texts
}

func codecs(admin sarama.ClusterAdmin) {
	topic := made(admin, "codecs", 1)
	var sent []string
	for _, codec := range []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD} {
		config := settings()
		config.Producer.Compression = codec
		producer := must(sarama.NewSyncProducer(addresses, config))
		var messages []*sarama.ProducerMessage
		for number := range 20 {
			sent = append(sent, fmt.Sprintf("%s %d", codec, number))
			messages = append(messages, &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(sent[len(sent)-1])})
		}
		check(producer.SendMessages(messages) == nil, "%s was refused", codec)
		producer.Close()
	}
	check(slices.Equal(read(settings(), topic, len(sent)), sent), "other records were read")
}

// A member of a group, which marks each message.
type member struct {
	group sarama.ConsumerGroup
	stop  context.CancelFunc
	done  chan struct{}
	lock  sync.Mutex
	has   []int32
	got   int
}

func joined(groupID, topic string, strategy sarama.BalanceStrategy) *member {
	config := settings()
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
	ctx, stop := context.WithCancel(context.Background())
	own := &member{group: must(sarama.NewConsumerGroup(addresses, groupID, config)), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(own.done)
		for ctx.Err() == nil {
			_ = own.group.Consume(ctx, []string{topic}, own)
		}
	}()
	return own
}

func (own *member) Setup(session sarama.ConsumerGroupSession) error {
	own.lock.Lock()
	defer own.lock.Unlock()
	own.has = nil
	for _, numbers := range session.Claims() {
		own.has = append(own.has, numbers...)
	}
	return nil
}

func (own *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (own *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
		own.lock.Lock()
		own.got++
		own.lock.Unlock()
	}
	return nil
}

func (own *member) count() (partitions, messages int) {
	own.lock.Lock()
	defer own.lock.Unlock()
	return len(own.has), own.got
}

func (own *member) leave() {
	own.stop()
	<-own.done
	check(own.group.Close() == nil, "the group was not closed")
}

func rebalances(admin sarama.ClusterAdmin) {
	for name, strategy := range map[string]sarama.BalanceStrategy{"range": sarama.NewBalanceStrategyRange(), "sticky": sarama.NewBalanceStrategySticky()} {
		topic := made(admin, name, 4)
		first := joined(topic, topic, strategy)
		until("all partitions", func() bool { had, _ := first.count(); return had == 4 })
		second := joined(topic, topic, strategy)
		until("half of them", func() bool {
			one, _ := first.count()
			other, _ := second.count()
			return one == 2 && other == 2
		})
		groups := must(admin.DescribeConsumerGroups([]string{topic}))
		check(len(groups[0].Members) == 2 && groups[0].Protocol == strategy.Name(), "%v", groups[0])
		first.leave()
		until("all again", func() bool { had, _ := second.count(); return had == 4 })
		producer := must(sarama.NewSyncProducer(addresses, settings()))
		_, offset, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("x")})
		check(err == nil && offset == 0, "%v", err)
		producer.Close()
		until("its record", func() bool { _, got := second.count(); return got == 1 })
		second.leave()
		found := must(admin.ListConsumerGroupOffsets(topic, nil))
		committed := int64(0)
		for _, block := range found.Blocks[topic] {
			committed += max(block.Offset, 0)
		}
		check(committed == 1, "%d is committed", committed)
	}
}

func transactions(admin sarama.ClusterAdmin) {
	topic := made(admin, "transactions", 1)
	config := settings()
	config.Producer.Transaction.ID = topic
	producer := must(sarama.NewSyncProducer(addresses, config))
	for offset, name := range []string{"committed", "aborted", "also committed"} {
		check(producer.BeginTxn() == nil, "a transaction did not begin")
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(name)})
		check(err == nil, "%v", err)
		at := []*sarama.PartitionOffsetMetadata{{Partition: 0, Offset: int64(offset)}}
		check(producer.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{topic: at}, topic) == nil, "no offsets")
		if name == "aborted" {
			err = producer.AbortTxn()
		} else {
			err = producer.CommitTxn()
		}
		check(err == nil, "%v", err)
	}
	fenced := producer
	producer = must(sarama.NewSyncProducer(addresses, config))
	defer producer.Close()
	check(fenced.BeginTxn() == nil, "a transaction did not begin")
	_, _, err := fenced.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("fenced")})
	check(err != nil, "a fenced producer may write")
	config = settings()
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	check(slices.Equal(read(config, topic, 2), []string{"committed", "also committed"}), "other records were read")
	found := must(admin.ListConsumerGroupOffsets(topic, nil)).GetBlock(topic, 0)
	check(found.Offset == 2, "%d is committed", found.Offset)
}

func times(admin sarama.ClusterAdmin) {
	topic := made(admin, "times", 1)
	producer := must(sarama.NewSyncProducer(addresses, settings()))
	defer producer.Close()
	began := time.Now()
	for _, days := range []int{30, 20, 10} {
		at := began.AddDate(0, 0, -days)
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Timestamp: at, Value: sarama.StringEncoder("x")})
		check(err == nil, "%v", err)
	}
	client := must(sarama.NewClient(addresses, settings()))
	defer client.Close()
	for days, wanted := range map[int]int64{40: 0, 25: 1, 15: 2, 5: 3} {
		offset := must(client.GetOffset(topic, 0, began.AddDate(0, 0, -days).UnixMilli()))
		check(offset == wanted || (wanted == 3 && offset == -1), "%d days ago: %d", days, offset)
	}
}

func administers(admin sarama.ClusterAdmin) {
	topic := made(admin, "admin", 2)
	producer := must(sarama.NewSyncProducer(addresses, settings()))
	defer producer.Close()
	for range 10 {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder("k"), Value: sarama.StringEncoder("x")})
		check(err == nil, "%v", err)
	}
	offsets := map[string]map[int32]sarama.OffsetAndMetadata{topic: {0: {Offset: 4, Metadata: "m"}}}
	must(admin.AlterConsumerGroupOffsets(topic, offsets, nil))
	block := must(admin.ListConsumerGroupOffsets(topic, map[string][]int32{topic: {0, 1}})).GetBlock(topic, 0)
	check(block.Offset == 4 && block.Metadata == "m", "%v", block)
	_, isListed := must(admin.ListConsumerGroups())[topic]
	check(isListed, "the group is not listed")
	check(admin.DeleteConsumerGroupOffset(topic, topic, 0) == nil, "the offset was not deleted")
	check(admin.CreatePartitions(topic, 3, nil, false) == nil, "no more partitions")
	hour := "3600000"
	entries := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &hour}}
	check(admin.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false) == nil, "the setting was not changed")
	retention := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}}
	until("its setting", func() bool { return must(admin.DescribeConfig(retention))[0].Value == hour })
	check(admin.DeleteTopic(topic) == nil, "the topic was not deleted")
	until("its end", func() bool { return errors.Is(admin.DeleteTopic(topic), sarama.ErrUnknownTopicOrPartition) })
	if err := admin.DeleteConsumerGroup(topic); err != nil { // without offsets it may be gone by then
		check(errors.Is(err, sarama.ErrGroupIDNotFound), "%v", err)
	}
}

func main() {
	admin := must(sarama.NewClusterAdmin(addresses, settings()))
	defer admin.Close()
	for _, scene := range []struct {
		name string
		play func(sarama.ClusterAdmin)
	}{{"codecs", codecs}, {"rebalances", rebalances}, {"transactions", transactions}, {"times", times}, {"admin", administers}} {
		func() {
			defer func() {
				if wrong := recover(); wrong != nil {
					fmt.Printf("%s: %v\n", scene.name, wrong)
				} else {
					fmt.Printf("%s: ok\n", scene.name)
				}
			}()
			scene.play(admin)
		}()
	}
}
