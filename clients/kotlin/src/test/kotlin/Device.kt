import java.io.File
import uldp.*

fun main(arguments: Array<String>) {
    val table = DeviceTable(File("places.json").readText())
    val hidden = mapOf("" to mapOf(Value.Text("flat") to "home")) // "" is the only variable; name the attributes of a record
    val store = FileStore(File("jvm-device")) // a folder for the ledger and the queue
    val device = Device(table, hidden, Ledger(store))
    val sender = Sender(arguments[0], store, onOutcome = { id, outcome -> println("$id: $outcome") })
    sender.add(device.report(Value.Text("flat"))) // once the budget is spent, it throws BudgetExceededException
    println(sender.flush()) // sends what is due, also of earlier runs; not on the main thread
}
