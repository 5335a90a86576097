import java.io.File
import uldp.*

// The program of README.md, which a test runs.
public fun main(arguments: Array<String>) {
    val table = DeviceTable(File("places.json").readText())
    val hidden: Map<Value, String> = mapOf(Value.Text("flat") to "home")
    // "" is the name of the only variable; of a record, give what each attribute hides by its name
    val device = Device(table, mapOf("" to hidden), StoredLedger(FileStorage(File("jvm-ledger.json"))))
    val sender = Sender(arguments[0], FileStorage(File("jvm-queue.json")))
    sender.flush() // what an earlier run left; not on the main thread
    sender.add(device.report(Value.Text("flat"))) // once the budget is spent, it throws BudgetExceededException
    sender.flush() // sends the same bytes until the server has them
}
