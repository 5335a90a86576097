package uldp

import java.io.File
import java.math.BigInteger
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.add
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import kotlinx.serialization.json.put
import kotlinx.serialization.json.putJsonArray

/** Follows the conformance vectors by the table of each case, a case a line; prints what differs as a line of JSON. */
internal object Vectors {
    private var reports = 0
    private val differ = mutableListOf<String>()

    @JvmStatic
    fun main(arguments: Array<String>) {
        val cases = File(arguments.single()).readLines().map { Json.parseToJsonElement(it).jsonObject }
        for (case in cases) {
            val table = DeviceTable(case.getValue("table").toString())
            for ((number, device) in case.getValue("devices").jsonArray.withIndex()) {
                val where = "${textOf(case["name"])}, device $number"
                follow(table, device.jsonObject) { differ += "$where: $it" }
            }
        }
        println(buildJsonObject {
            put("cases", cases.size)
            put("reports", reports)
            putJsonArray("differ") { differ.forEach { add(it) } }
        })
    }

    private fun follow(table: DeviceTable, device: JsonObject, differs: (String) -> Unit) {
        val value = device.getValue("value")
        val record = recordOf(table, value)
        val ledger = if (table.content.kept || table.content.budget != null) Ledger(MemoryStore(), skewMs = null) else null
        val by = (device["by"] as? JsonObject)?.mapValues { it.value.jsonPrimitive.content }
        for (report in device.getValue("reports").jsonArray.map(JsonElement::jsonObject)) {
            val draws = Replay(report.getValue("draws").jsonArray)
            try {
                val own = Device(table, hiddenOf(table, record, device.getValue("tag")), ledger, textOf(device["level"]), draws)
                val time = report.getValue("event_time").jsonPrimitive.long
                val payload = own.payload(record, time, by)
                val id = bytesOf(textOf(report["report_id"])!!)
                val sent = hex(message(table.content.collection, table.content.version, Report(id, own.sentTime(time), payload)))
                reports++
                if (sent != textOf(report["message"])) differs("message $sent, not ${textOf(report["message"])}")
                if (draws.taken != draws.recorded.size) differs("${draws.taken} draws, not ${draws.recorded.size}")
            } catch (error: RuntimeException) {
                differs(error.toString())
            }
        }
    }

    private fun hiddenOf(table: DeviceTable, record: Map<String, Value>, tag: JsonElement): Map<String, Map<Value, String>> =
        table.content.columns.associate { column ->
            val own = textOf(if (column.name == "") tag else tag.jsonObject[column.name])
            column.name to (if (own == null) emptyMap() else mapOf(record.getValue(column.name) to own))
        }
}

/** Draws what is recorded, and refuses another limit. */
private class Replay(val recorded: JsonArray) : Draws {
    var taken = 0

    override fun below(limit: Long): Long = next(BigInteger.valueOf(limit))

    override fun wide(): Long = next(BigInteger.TWO.pow(62))

    private fun next(limit: BigInteger): Long {
        val (known, number) = recorded.getOrNull(taken++)?.jsonArray?.map { it.jsonPrimitive.content } ?: error("draw $taken is one too many")
        check(BigInteger(known) == limit) { "draw $taken is below $limit, but $known is recorded" }
        return number.toLong()
    }
}
