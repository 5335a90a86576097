package uldp

import java.io.File
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.jsonObject

/**
 * Times reports of two devices in turn: TABLE CALLS, and a line of JSON for each device. Prints nanoseconds and the
 * number of draws of each report, a line each; those of the first device are in lines 1, 3, 5 and so on.
 */
internal object Times {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val table = DeviceTable(File(arguments[0]).readText())
        val held = List(2) { recordOf(table, Json.parseToJsonElement(readln()).jsonObject.getValue("value")) }
        val draws = Counted(SystemDraws())
        val device = Device(table, draws = draws)
        val calls = arguments[1].toInt()
        // Those below 0 are not counted: the compiler and caches get warm.
        val lines = (-calls..calls).map { call ->
            val record = held[call and 1]
            val before = draws.taken
            val began = System.nanoTime()
            device.payload(record, NOW, null)
            "${System.nanoTime() - began} ${draws.taken - before}"
        }
        lines.takeLast(calls).forEach(::println)
    }
}

private class Counted(private val draws: Draws) : Draws {
    var taken = 0

    override fun below(limit: Long): Long = draws.below(limit).also { taken++ }

    override fun wide(): Long = draws.wide().also { taken++ }
}
