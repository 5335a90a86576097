package uldp

import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive

/** What the client says to wrong tables: a line of JSON for each, {"text"}; prints the error, or null if there was none. */
internal object Refuses {
    @JvmStatic
    fun main(arguments: Array<String>) {
        for (line in generateSequence(::readLine)) {
            val text = Json.parseToJsonElement(line).jsonObject.getValue("text").jsonPrimitive.content
            val error = runCatching { DeviceTable(text) }.exceptionOrNull()
            println(if (error == null) JsonNull else JsonPrimitive(error.message))
        }
    }
}
