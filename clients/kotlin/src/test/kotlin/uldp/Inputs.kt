package uldp

import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonPrimitive

/** What a line of a test's input says that a device holds of a column. */
internal fun valueOf(column: Column, json: JsonElement): Value = when {
    json is JsonPrimitive && json.isString -> Value.Text(json.content)
    json is JsonPrimitive && column.kind == "number" -> Value.Number(json.content.toDouble())
    json is JsonPrimitive -> Value.Index(json.content.toDouble().toInt())
    column.kind == "pairs" -> Value.Pairs((json as JsonArray).associate { pair ->
        val (key, number) = pair as JsonArray
        valueOf(column, key) to number.jsonPrimitive.content.toDouble()
    })
    else -> Value.Items((json as JsonArray).map { valueOf(column, it) })
}

/** What a device holds of each column: without a record, the JSON is that of the only one. */
internal fun recordOf(table: DeviceTable, json: JsonElement): Map<String, Value> =
    table.content.columns.associate { it.name to valueOf(it, if (it.name == "") json else (json as JsonObject).getValue(it.name)) }

internal fun textOf(json: JsonElement?): String? = if (json == null || json is JsonNull) null else json.jsonPrimitive.content
