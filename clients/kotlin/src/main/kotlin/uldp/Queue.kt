package uldp

import kotlinx.serialization.Serializable
import kotlinx.serialization.builtins.ListSerializer
import kotlinx.serialization.json.Json

private val ROWS = ListSerializer(Row.serializer())

/** A message that waits. */
@Serializable
internal data class Row(
    val id: String,
    /** In hexadecimal digits. */
    val message: String,
    /** How many have begun. */
    val attempts: Int = 0,
    /** Nobody sends it before this time, in milliseconds since 1970; during an attempt, its lease. */
    val next: Long = 0,
)

/** The messages that wait, in an entry of a store. */
internal class Queue(private val store: Store, private val name: String, private val onDamage: (DamagedException) -> Unit) {
    /** Changes the rows, atomically. A damaged queue is kept under another name, and a new one begins. */
    fun <T> change(edit: (MutableList<Row>) -> T): T {
        while (true) {
            var damaged: String? = null
            val result = store.change(name) { text ->
                val before = rowsOf(text)
                if (before == null) {
                    damaged = text
                    return@change Edited(null, null)
                }
                val rows = before.toMutableList()
                val result = edit(rows)
                Edited(if (rows == before) null else textOf(rows), listOf(result))
            }
            if (result != null) return result.single()
            setAside(checkNotNull(damaged))
        }
    }

    /** Several processes may do so at once: the text decides the name. */
    private fun setAside(text: String) {
        val aside = "$name-damaged-${sha256(text).take(16)}"
        store.change(aside) { Edited(text, Unit) }
        val isMine = store.change(name) { now -> if (now == text) Edited(textOf(emptyList()), true) else Edited(null, false) }
        if (isMine) onDamage(DamagedException(name, aside, "it is kept as $aside, and a new queue has begun"))
    }

    private fun textOf(rows: List<Row>): String = sealed(name, Json.encodeToString(ROWS, rows))

    /** The rows of an entry; null if it is damaged. */
    private fun rowsOf(text: String?): List<Row>? = try {
        if (text == null) emptyList() else opened(name, text)?.let { Json.decodeFromString(ROWS, it) }
    } catch (_: IllegalArgumentException) {
        null
    }
}
