import java.io.File
import uldp.Device
import uldp.DeviceTable
import uldp.FileStorage
import uldp.Sender
import uldp.StoredLedger
import uldp.Value

// The program of README.md, which a test runs.
public fun main(arguments: Array<String>) {
    val table = DeviceTable(File("places.json").readText())
    val hidden: Map<Value, String> = mapOf(Value.Text("flat") to "home")
    val device = Device(table, mapOf("" to hidden), StoredLedger(FileStorage(File("ledger.json"))))
    val sender = Sender(arguments[0], FileStorage(File("reports.json")))
    sender.add(device.report(Value.Text("flat"))) // spends the budget of the user once
    sender.flush() // sends the same bytes until the server has them, now or after a restart; not on the main thread
}
