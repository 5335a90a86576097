import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.beam.sdk.Pipeline;
import org.apache.beam.sdk.extensions.python.PythonExternalTransform;
import org.apache.beam.sdk.io.TextIO;
import org.apache.beam.sdk.options.PipelineOptions;
import org.apache.beam.sdk.options.PipelineOptionsFactory;
import org.apache.beam.sdk.options.Validation.Required;
import org.apache.beam.sdk.schemas.Schema;
import org.apache.beam.sdk.transforms.Create;
import org.apache.beam.sdk.transforms.MapElements;
import org.apache.beam.sdk.values.PCollection;
import org.apache.beam.sdk.values.Row;
import org.apache.beam.sdk.values.TypeDescriptors;

/** Counts the messages of a file, one a line in base64, and writes a line for each row of the estimates. */
public final class Estimates {
  private static final Schema MESSAGE = Schema.builder().addByteArrayField("data").addInt64Field("publish_time").build();
  private static final Schema ARGUMENTS = Schema.builder().addArrayField("specs", Schema.FieldType.STRING).build();
  private static final String TRANSFORM = "uldp.transforms.estimate_rows.EstimateReports";

  private Estimates() {}

  /** The options of the pipeline. */
  public interface Options extends PipelineOptions {
    @Required
    String getExpansionService();

    void setExpansionService(String hostAndPort);

    @Required
    String getSpec();

    void setSpec(String path);

    @Required
    String getMessages();

    void setMessages(String path);

    @Required
    Long getPublishTime();

    void setPublishTime(Long milliseconds);

    @Required
    String getRows();

    void setRows(String path);
  }

  /** Runs the pipeline. */
  public static void main(String[] args) throws Exception {
    Options options = PipelineOptionsFactory.fromArgs(args).withValidation().as(Options.class);
    List<Row> messages = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of(options.getMessages()))) {
      byte[] data = Base64.getDecoder().decode(line);
      messages.add(Row.withSchema(MESSAGE).addValues(data, options.getPublishTime()).build());
    }
    Pipeline pipeline = Pipeline.create(options);
    pipeline
        .apply("Messages", Create.of(messages).withRowSchema(MESSAGE))
        .apply(
            "Estimate",
            PythonExternalTransform.<PCollection<Row>, PCollection<Row>>from(TRANSFORM, options.getExpansionService())
                .withKwargs(Row.withSchema(ARGUMENTS).addArray(options.getSpec()).build()))
        .apply("Text", MapElements.into(TypeDescriptors.strings()).via(Estimates::text))
        .apply("Write", TextIO.write().to(options.getRows()).withoutSharding());
    pipeline.run().waitUntilFinish();
  }

  private static String text(Row row) {
    return String.join(
        ",", row.getString("quantity"), row.getString("label"), "" + row.getInt64("n"), "" + row.getDouble("estimate"));
  }
}
