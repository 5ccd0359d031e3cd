// Writes what Apache Kafka's own Java serialisers make of every message, version by version, as lines of text on standard
// output (one entry a line, fields separated by tabs):
//
//   message NAME VERSION INSTANCE HEX [JSON]     a message; JSON by Apache's JsonConverter
//   blob NAME VERSION HEX HEX                    a struct, and the same behind its type or version, as records hold it
//   api KEY NAME FIRST REQUEST-HEADERS RESPONSE-HEADERS   header versions from version FIRST on
//   error CODE NAME RETRIABLE CLASS TEXT         an error code (TEXT may be empty)
//   batch NAME HEX JSON                          record batches and the records that Apache's reader finds in them
//
// Run by tools/protocol/corpus/pack.py. The schemas that are inside the jars are followed, so that fields get values in the
// versions that have them. Values depend on the field and the instance, not on the version: the packed corpus stays small.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.core.JsonParser;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.record.internal.MemoryRecords;

public final class CorpusWriter {
    static final ObjectMapper JSON = new ObjectMapper().configure(JsonParser.Feature.ALLOW_COMMENTS, true);
    static final int INSTANCES = 5;
    static final String[] WORDS = {
        "", "a", "group-1", "orders", "größe", "漢字とかな", "🙂 smile", "__consumer_offsets", "x".repeat(126), "y".repeat(127),
        "z".repeat(128), "long é ".repeat(40), "/127.0.0.1", "range"
    };
    static final long[] NUMBERS = {0, 1, -1, 2, 7, 63, 64, 127, -128, 300, 9092, 32767, -32768, 65536, 2147483647L, -2147483648L,
        1700000000000L, Long.MAX_VALUE, Long.MIN_VALUE};

    public static void main(String[] args) throws Exception {
        System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8));
        Path folder = Path.of(args[0]);
        String version = args[1];
        Map<String, String> packages = Map.of(
            "kafka-clients", "org.apache.kafka.common.message.",
            "kafka-group-coordinator", "org.apache.kafka.coordinator.group.generated.",
            "kafka-share-coordinator", "org.apache.kafka.coordinator.share.generated.",
            "kafka-transaction-coordinator", "org.apache.kafka.coordinator.transaction.generated.");
        for (String jar : new TreeMap<>(packages).keySet()) {
            try (ZipFile zip = new ZipFile(folder.resolve(jar + "-" + version + ".jar").toFile())) {
                List<ZipEntry> entries = new ArrayList<>();
                zip.stream().filter(e -> e.getName().startsWith("common/message/") && e.getName().endsWith(".json"))
                    .sorted((a, b) -> a.getName().compareTo(b.getName())).forEach(entries::add);
                for (ZipEntry entry : entries) {
                    JsonNode schema = JSON.readTree(zip.getInputStream(entry));
                    if (!schema.get("validVersions").asText().equals("none")) {
                        new CorpusWriter(packages.get(jar), schema).writeAll();
                    }
                }
            }
        }
        writeApis();
        writeErrors();
        BatchWriter.writeAll();
        System.out.flush();
    }

    static void emit(Object... fields) {
        StringBuilder line = new StringBuilder();
        for (Object field : fields) {
            line.append(line.length() == 0 ? "" : "\t").append(field);
        }
        System.out.println(line);
    }

    static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    static void writeApis() {
        for (ApiMessageType api : ApiMessageType.values()) {
            StringBuilder requests = new StringBuilder();
            StringBuilder responses = new StringBuilder();
            for (short v = api.lowestSupportedVersion(); v <= api.highestSupportedVersion(true); v++) {
                requests.append(api.requestHeaderVersion(v));
                responses.append(api.responseHeaderVersion(v));
            }
            emit("api", api.apiKey(), api.name, api.lowestSupportedVersion(), requests, responses);
        }
    }

    static void writeErrors() {
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof org.apache.kafka.common.errors.RetriableException;
            String name = error.exception() == null ? "" : error.exception().getClass().getSimpleName();
            emit("error", error.code(), error.name(), retriable, name, error.exception() == null ? "" : error.message());
        }
    }

    final String prefix;
    final JsonNode schema;
    final String name;
    final String type;
    final Map<String, JsonNode> commonStructs = new TreeMap<>();

    CorpusWriter(String prefix, JsonNode schema) {
        this.prefix = prefix;
        this.schema = schema;
        this.name = schema.get("name").asText();
        this.type = schema.get("type").asText();
        if (schema.has("commonStructs")) {
            schema.get("commonStructs").forEach(struct -> commonStructs.put(struct.get("name").asText(), struct.get("fields")));
        }
    }

    void writeAll() throws Exception {
        boolean suffixed = List.of("request", "response", "header").contains(type);
        Class<?> messageClass = Class.forName(prefix + name + (suffixed ? "Data" : ""));
        Method toJson = Class.forName(messageClass.getName() + "JsonConverter").getMethod("write", messageClass, short.class, boolean.class);
        Range valid = Range.of(schema.get("validVersions"));
        for (short version = (short) valid.low; version <= valid.high; version++) {
            for (int instance = 0; instance < INSTANCES; instance++) {
                Message message = (Message) messageClass.getConstructor().newInstance();
                if (instance > 0) {
                    fill(message, schema.get("fields"), version, instance, name);
                }
                writeOne(message, toJson, version, instance);
            }
        }
    }

    void writeOne(Message message, Method toJson, short version, int instance) throws Exception {
        ByteBuffer bytes;
        try {
            bytes = MessageUtil.toByteBufferAccessor(message, version).buffer();
        } catch (NullPointerException | org.apache.kafka.common.errors.UnsupportedVersionException e) {
            if (instance > 0) {
                throw e;
            }
            return; // a default that this version cannot carry
        }
        String json = instance == 1 || instance == 3 ? JSON.writeValueAsString(toJson.invoke(null, message, version, false)) : "";
        emit("message", name, version, instance, hex(bytes), json);
        if (type.equals("coordinator-key")) {
            byte[] blob = MessageUtil.toCoordinatorTypePrefixedBytes((ApiMessage) message);
            emit("blob", name, version, hex(bytes), HexFormat.of().formatHex(blob));
        } else if (type.equals("coordinator-value") || name.startsWith("ConsumerProtocol")) {
            byte[] blob = MessageUtil.toVersionPrefixedBytes(version, message);
            emit("blob", name, version, hex(bytes), HexFormat.of().formatHex(blob));
        }
    }

    void fill(Object target, JsonNode fields, short version, int instance, String path) throws Exception {
        for (JsonNode field : fields) {
            String fieldName = field.get("name").asText();
            JsonNode versions = field.has("versions") ? field.get("versions") : field.get("taggedVersions");
            if (!Range.of(versions).contains(version)) {
                continue;
            }
            Random random = new Random((path + "." + fieldName + "#" + instance).hashCode() * 2654435761L);
            if (field.has("tag") && instance > 1 && random.nextInt(3) == 0) {
                continue; // an unset tagged field
            }
            Method setter = setter(target.getClass(), fieldName);
            boolean nullable = field.has("nullableVersions") && Range.of(field.get("nullableVersions")).contains(version);
            if (nullable && (instance == 2 || instance > 2 && random.nextInt(3) == 0)) {
                setter.invoke(target, (Object) null);
                continue;
            }
            String fieldType = field.get("type").asText();
            setter.invoke(target, value(target, setter, field, fieldType, version, instance, path + "." + fieldName, random));
        }
    }

    static Method setter(Class<?> owner, String fieldName) {
        String wanted = "set" + Character.toUpperCase(fieldName.charAt(0)) + fieldName.substring(1);
        for (Method method : owner.getMethods()) {
            if (method.getName().equals(wanted)) {
                return method;
            }
        }
        throw new IllegalStateException(owner + " has no " + wanted);
    }

    @SuppressWarnings("unchecked")
    Object value(Object owner, Method setter, JsonNode field, String fieldType, short version, int instance, String path,
                 Random random) throws Exception {
        if (!fieldType.startsWith("[]")) {
            return single(field, fieldType, version, instance, path, random, setter.getParameterTypes()[0]);
        }
        Class<?> collectionClass = setter.getParameterTypes()[0];
        Collection<Object> elements = collectionClass.isAssignableFrom(ArrayList.class)
            ? new ArrayList<>() : (Collection<Object>) collectionClass.getConstructor().newInstance();
        int size = instance == 1 ? 2 : instance == 2 ? 0 : random.nextInt(4);
        if (instance == 3 && fieldType.equals("[]int32")) {
            size = 150; // a count of two varint bytes
        }
        for (int i = 0; i < size; i++) {
            elements.add(single(field, fieldType.substring(2), version, instance, path + "[" + i + "]", random, null));
        }
        return elements;
    }

    Object single(JsonNode field, String fieldType, short version, int instance, String path, Random random, Class<?> parameter)
        throws Exception {
        long number = instance == 3 ? random.nextInt(2000) - 1000 : NUMBERS[random.nextInt(NUMBERS.length)];
        switch (fieldType) {
            case "bool": return instance == 1 || random.nextBoolean();
            case "int8": return (byte) number;
            case "int16": return (short) number;
            case "uint16": return (int) number & 0xFFFF;
            case "int32": return (int) number;
            case "uint32": return number & 0xFFFFFFFFL;
            case "int64": return number;
            case "float64": return number / 8.0;
            case "string": return WORDS[random.nextInt(WORDS.length)];
            case "uuid": return random.nextInt(4) == 0 ? Uuid.ZERO_UUID : new Uuid(NUMBERS[random.nextInt(19)], number);
            case "records": return MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(random)));
            case "bytes":
                byte[] bytes = bytes(random);
                return parameter == ByteBuffer.class ? ByteBuffer.wrap(bytes) : bytes;
            default:
                JsonNode fields = field.has("fields") ? field.get("fields") : commonStructs.get(fieldType);
                Class<?> owner = Class.forName(prefix + name + (List.of("request", "response", "header").contains(type) ? "Data" : "")
                    + "$" + fieldType);
                Constructor<?> constructor = owner.getConstructor();
                Object struct = constructor.newInstance();
                fill(struct, fields, version, instance, path);
                return struct;
        }
    }

    static byte[] bytes(Random random) {
        return WORDS[random.nextInt(WORDS.length)].getBytes(StandardCharsets.UTF_16BE);
    }

    /** A closed range of versions as schemas write it: "3", "1-4", "2+", "none". */
    record Range(int low, int high) {
        static Range of(JsonNode text) {
            String versions = text.asText();
            if (versions.equals("none")) {
                return new Range(1, 0);
            }
            if (versions.endsWith("+")) {
                return new Range(Integer.parseInt(versions.substring(0, versions.length() - 1)), Short.MAX_VALUE);
            }
            String[] ends = versions.split("-");
            return new Range(Integer.parseInt(ends[0]), Integer.parseInt(ends[ends.length - 1]));
        }

        boolean contains(int version) {
            return low <= version && version <= high;
        }
    }
}
