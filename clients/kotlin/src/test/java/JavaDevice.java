import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import uldp.*;

public final class JavaDevice {
    public static void main(String[] arguments) throws IOException, QueueFullException, ClockException {
        var table = new DeviceTable(Files.readString(Path.of("places.json")));
        Map<Value, String> hidden = Map.of(new Value.Text("flat"), "home");
        var store = new FileStore(new File("java-device"));
        var device = new Device(table, Map.of("", hidden), new Ledger(store));
        var sender = new Sender(arguments[0], store, null, (id, outcome) -> System.out.println(id + ": " + outcome));
        try {
            sender.add(device.report(new Value.Text("flat")));
        } catch (BudgetExceededException spent) {
            System.out.println("the device can report again at " + spent.getUntil());
        }
        System.out.println(sender.flush());
    }
}
