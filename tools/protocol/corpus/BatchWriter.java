// The "batch" lines of the corpus: batches of every format, compression and kind, written by Apache's MemoryRecordsBuilder and
// read back by its reader. With the arguments "read FILE" it reads batches of another writer (hex, one a line) and prints their
// records as JSON, for tests of what Groupkeeper writes.

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

public final class BatchWriter {
    static final long TIME = 1_700_000_000_000L;
    static final Header[] NO_HEADERS = {};

    public static void main(String[] args) throws Exception {
        for (String line : Files.readAllLines(Path.of(args[1]))) {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HexFormat.of().parseHex(line)));
            for (MutableRecordBatch batch : records.batches()) {
                batch.ensureValid();
            }
            System.out.println(CorpusWriter.JSON.writeValueAsString(describe(records)));
        }
    }

    static void writeAll() throws Exception {
        for (byte magic = 0; magic <= 2; magic++) {
            for (CompressionType type : CompressionType.values()) {
                if (type == CompressionType.ZSTD && magic < 2) {
                    continue;
                }
                for (TimestampType time : List.of(TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME)) {
                    if (magic == 0 && time == TimestampType.LOG_APPEND_TIME) {
                        continue;
                    }
                    for (int count : new int[] {1, 3, 40}) {
                        String name = "v" + magic + "-" + type.name + "-" + time.name + "-" + count;
                        emit(name, plain(magic, Compression.of(type).build(), time, 1000, count));
                    }
                }
            }
        }
        emit("offset-0-v1-gzip", plain((byte) 1, Compression.of(CompressionType.GZIP).build(), TimestampType.CREATE_TIME, 0, 5));
        emit("large-zstd", large(CompressionType.ZSTD));
        emit("large-lz4", large(CompressionType.LZ4));
        emit("large-snappy", large(CompressionType.SNAPPY));
        emit("producer", producer(false, false));
        emit("transactional", producer(true, false));
        for (ControlRecordType type : List.of(ControlRecordType.COMMIT, ControlRecordType.ABORT)) {
            emit("marker-" + type.name().toLowerCase(), MemoryRecords.withEndTransactionMarker(
                77, TIME, 3, 4000L, (short) 9, new EndTransactionMarker(type, 12)));
        }
        emit("gaps", gaps());
        ByteBuffer several = ByteBuffer.allocate(4096);
        several.put(plain((byte) 2, Compression.NONE, TimestampType.CREATE_TIME, 5, 2).buffer().duplicate());
        several.put(plain((byte) 1, Compression.NONE, TimestampType.CREATE_TIME, 7, 2).buffer().duplicate());
        several.put(plain((byte) 2, Compression.of(CompressionType.LZ4).build(), TimestampType.CREATE_TIME, 9, 2).buffer().duplicate());
        several.flip();
        emit("several", MemoryRecords.readableRecords(several));
        ByteBuffer empty = ByteBuffer.allocate(100);
        org.apache.kafka.common.record.internal.DefaultRecordBatch.writeEmptyHeader(
            empty, (byte) 2, 11, (short) 2, 30, 100, 110, 4, TimestampType.CREATE_TIME, TIME, false, false);
        empty.flip();
        emit("compacted-to-nothing", MemoryRecords.readableRecords(empty));
    }

    static MemoryRecords plain(byte magic, Compression compression, TimestampType time, long offset, int count) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1024), magic, compression, time, offset, TIME + 5);
        for (int i = 0; i < count; i++) {
            byte[] key = i % 4 == 3 ? null : ("key" + i).getBytes(StandardCharsets.UTF_8);
            byte[] value = i % 5 == 4 ? null : "value ".repeat(i % 30).getBytes(StandardCharsets.UTF_8);
            Header[] headers = magic < 2 || i % 3 != 2 ? NO_HEADERS : new Header[] {
                new RecordHeader("größe", new byte[] {1, 2}), new RecordHeader("null", null), new RecordHeader("", new byte[0])};
            builder.append(magic == 0 ? RecordBatch.NO_TIMESTAMP : TIME + (i * 37 % 50) - 10, key, value, headers);
        }
        return builder.build();
    }

    static MemoryRecords large(CompressionType type) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1024), (byte) 2, Compression.of(type).build(), TimestampType.CREATE_TIME, 0L, TIME);
        for (int i = 0; i < 3; i++) {
            builder.append(TIME, null, ("many blocks " + i + " ").repeat(10_000).getBytes(StandardCharsets.UTF_8));
        }
        return builder.build();
    }

    static MemoryRecords producer(boolean transactional, boolean control) {
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(ByteBuffer.allocate(1024), (byte) 2, Compression.NONE,
            TimestampType.CREATE_TIME, 500L, RecordBatch.NO_TIMESTAMP, 123456789012L, (short) 7, 42, transactional, control, 3, 1024);
        for (int i = 0; i < 70; i++) {
            builder.append(TIME + i * 1000, ("k" + i).getBytes(StandardCharsets.UTF_8), new byte[i * 2]);
        }
        return builder.build();
    }

    static MemoryRecords gaps() {
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1024), (byte) 2, Compression.NONE, TimestampType.CREATE_TIME, 100L);
        for (long offset : new long[] {100, 103, 170, 9000}) {
            builder.appendWithOffset(offset, TIME - offset, new byte[] {1}, new byte[] {2});
        }
        builder.overrideLastOffset(10_000);
        return builder.build();
    }

    static void emit(String name, MemoryRecords records) throws Exception {
        CorpusWriter.emit("batch", name, CorpusWriter.hex(records.buffer()), CorpusWriter.JSON.writeValueAsString(describe(records)));
    }

    static ArrayNode describe(MemoryRecords records) {
        ArrayNode batches = CorpusWriter.JSON.createArrayNode();
        for (MutableRecordBatch batch : records.batches()) {
            ObjectNode node = batches.addObject();
            node.put("base_offset", batch.baseOffset());
            node.put("last_offset", batch.lastOffset());
            node.put("magic", batch.magic());
            node.put("compression", batch.compressionType().name);
            node.put("log_append_time", batch.timestampType() == TimestampType.LOG_APPEND_TIME);
            node.put("max_timestamp", batch.maxTimestamp());
            node.put("size", batch.sizeInBytes());
            node.put("producer_id", batch.producerId());
            node.put("producer_epoch", batch.producerEpoch());
            node.put("base_sequence", batch.baseSequence());
            node.put("leader_epoch", batch.partitionLeaderEpoch());
            node.put("transactional", batch.isTransactional());
            node.put("control", batch.isControlBatch());
            ArrayNode list = node.putArray("records");
            for (Record record : batch) {
                describe(list.addArray(), record, batch.isControlBatch());
            }
        }
        return batches;
    }

    static void describe(ArrayNode fields, Record record, boolean control) {
        fields.add(record.offset());
        fields.add(record.timestamp());
        fields.add(record.hasKey() ? CorpusWriter.hex(record.key()) : null);
        fields.add(record.hasValue() ? CorpusWriter.hex(record.value()) : null);
        ArrayNode headers = fields.addArray();
        for (Header header : record.headers()) {
            ArrayNode pair = headers.addArray();
            pair.add(header.key());
            pair.add(header.value() == null ? null : HexFormat.of().formatHex(header.value()));
        }
        if (control && ControlRecordType.parse(record.key()) != ControlRecordType.UNKNOWN) {
            EndTransactionMarker marker = EndTransactionMarker.deserialize(record);
            fields.add(marker.controlType().name());
            fields.add(marker.coordinatorEpoch());
        }
    }
}
