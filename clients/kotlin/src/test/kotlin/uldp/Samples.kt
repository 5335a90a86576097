package uldp

import java.io.File
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.put
import org.sqlite.SQLiteDataSource

internal const val NOW = 1_767_603_600_000
internal const val HOUR_MS = 3_600_000L
internal const val DAY_MS = 24 * HOUR_MS
internal const val YEAR_MS = 365 * DAY_MS
internal val ONCE = mapOf("" to Value.Text("once"))

/** A table of the resources: `survey` has a budget of 1.5 in 30 days, and its reports spend 1; `kept` keeps responses. */
internal fun table(name: String): DeviceTable = DeviceTable(textOf(name))

/** The table of the survey with another budget. */
internal fun tableWithBudget(epsilon: Double, everyMs: Long = 30 * DAY_MS): DeviceTable {
    val budget = buildJsonObject {
        put("epsilon", epsilon)
        put("every_ms", everyMs)
    }
    val tree = JsonObject(Json.parseToJsonElement(textOf("survey")).jsonObject + ("budget" to budget))
    return DeviceTable(JsonObject(tree + ("digest" to JsonPrimitive(digestOf(tree)))).toString())
}

private fun textOf(name: String): String = checkNotNull(Device::class.java.getResource("/$name.json")).readText()

/** A store of a kind in a folder: of another object and another process, too. */
internal fun opened(kind: String, folder: File): Store = when (kind) {
    "file" -> FileStore(File(folder, "store"))
    "sqlite" -> SqliteStore(SQLiteDataSource().apply { url = "jdbc:sqlite:${File(folder, "store.db")}" })
    else -> error("no store has the name $kind")
}

internal fun Store.textAt(name: String): String? = change(name) { Edited(null, it) }

internal fun Store.put(name: String, text: String): Unit = change(name) { Edited(text, Unit) }

/** Draws one number, or the largest one below a smaller limit. */
internal class Always(private val number: Long) : Draws {
    override fun below(limit: Long): Long = minOf(number, limit - 1)

    override fun wide(): Long = number
}

/** A clock that a test sets, and the time that passes in truth. */
internal class SetClock(var ahead: Long = 0, var passed: Long = 0, var boot: String? = "first", var booted: Long = 0) : Clock {
    override fun now(): Long = NOW + passed + ahead

    override fun uptime(): Uptime? = boot?.let { Uptime(it, passed - booted) }
}
