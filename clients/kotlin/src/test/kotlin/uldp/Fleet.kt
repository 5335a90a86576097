package uldp

import java.util.concurrent.Callable
import java.util.concurrent.Executors
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import java.io.File

private const val AT_ONCE = 16

/**
 * Devices that report once each: TABLE [URL], and a line of JSON for each, {"value", "hidden", "level"}. Posts the
 * reports to URL and prints how many were taken, or prints them in hexadecimal digits.
 */
internal object Fleet {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val table = DeviceTable(File(arguments[0]).readText())
        val lines = generateSequence(::readLine).map { Json.parseToJsonElement(it).jsonObject }
        val url = arguments.getOrNull(1) ?: return lines.forEach { println(hex(report(table, it))) }
        val pool = Executors.newFixedThreadPool(AT_ONCE)
        val sent = pool.invokeAll(lines.map { Callable { send(url, report(table, it)) } }.toList())
        println(sent.sumOf { it.get() })
        pool.shutdown()
    }

    /** Flushes as often as the sender asks for, and returns how many were taken. */
    private fun send(url: String, report: ByteArray): Int = Sender(url, MemoryStore()).run {
        add(report)
        generateSequence(flush()) { round ->
            round.again?.let {
                Thread.sleep(maxOf(0, it - System.currentTimeMillis()))
                flush()
            }
        }.sumOf(Flushed::taken)
    }

    private fun report(table: DeviceTable, holding: JsonObject): ByteArray {
        val hidden = (holding["hidden"] as? JsonObject).orEmpty().entries.associate { (value, tag) ->
            (value.toIntOrNull()?.let(Value::Index) ?: Value.Text(value)) to tag.jsonPrimitive.content
        }
        val ledger = if (table.content.kept || table.content.budget != null) Ledger(MemoryStore()) else null
        val device = Device(table, if (hidden.isEmpty()) emptyMap() else mapOf("" to hidden), ledger, textOf(holding["level"]))
        return device.report(recordOf(table, holding.getValue("value")))
    }
}
