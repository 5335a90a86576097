package uldp

import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonIgnoreUnknownKeys
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.jsonPrimitive

/**
 * The table of a spec, as `uldp device-table SPEC --json` writes it. Its rules are in docs/device-table.md.
 *
 * @throws IllegalArgumentException if this client cannot follow it exactly, or its [digest] is that of another table.
 */
public class DeviceTable(json: String) {
    internal val content: Table = tableOf(json)

    /** The name of all that the table says. */
    public val digest: String get() = content.digest
}

@Serializable
@JsonIgnoreUnknownKeys
@OptIn(ExperimentalSerializationApi::class)
internal class Table(
    val format: Int,
    val collection: String,
    val version: Int,
    @SerialName("device_digest") val deviceDigest: String,
    @SerialName("slice_ms") val sliceMs: Long,
    @SerialName("offset_ms") val offsetMs: Long,
    @SerialName("window_ms") val windowMs: Long,
    @SerialName("exact_time") val exactTime: Boolean,
    val kept: Boolean,
    val spends: Spends,
    @SerialName("spends_at_level") val spendsAtLevel: Map<String, Spends> = emptyMap(),
    val budget: Budget?,
    val columns: List<Column>,
    val encoding: EncodingForm,
    val mechanism: Form,
    val digest: String,
) {
    init {
        within(version, 1, Int.MAX_VALUE.toLong(), "version")
        within(sliceMs, 1, SAFE, "slice_ms")
        within(offsetMs, 0, sliceMs, "offset_ms")
        within(windowMs, 1, SAFE, "window_ms")
        require(columns.isNotEmpty()) { "columns is empty" }
        columns(encoding, columns.size)
    }
}

/** Refuses an encoding of more columns than there are. */
private fun columns(encoding: EncodingForm, size: Int) {
    if (encoding is EncodingForm.View) length(encoding.encodings, size, "view.encodings")
    if (encoding !is EncodingForm.Strata) return
    for (base in encoding.bases) {
        indices(base.columns, size - 1L, "bases.columns")
        columns(base.encoding, base.columns.size)
    }
}

/** What one report of a value spends, and all of them together; null without privacy, or without such a bound. */
@Serializable
internal class Spends(val epsilon: Double?, val lasting: Double?) {
    init {
        require((epsilon ?: 0.0) >= 0 && (lasting ?: 0.0) >= 0) { "spends is below 0" }
    }
}

@Serializable
internal class Budget(val epsilon: Double, @SerialName("every_ms") val everyMs: Long) {
    init {
        require(epsilon >= 0) { "budget.epsilon is below 0" }
        within(everyMs, 1, SAFE, "budget.every_ms")
    }
}

/** A variable: the only one has no name. */
@Serializable
internal class Column(val name: String, val kind: String, private val domain: Map<String, JsonElement>, val tags: List<String>) {
    val labels: List<String>? by lazy { texts("labels") ?: texts("set.of.labels") ?: texts("pairs.of.labels") ?: texts("ranking.of") }

    /** The public vocabulary that spells strings, if there is one. */
    val pieces: Set<String> by lazy { (texts("strings.pieces") ?: texts("set.of.strings.pieces")).orEmpty().toSet() }

    init {
        for ((key, value) in domain) {
            if (key in LABELS) require(value is JsonArray && value.all { it is JsonPrimitive && it.isString }) { "$key is no list of texts" }
        }
    }

    private fun texts(key: String): List<String>? = (domain[key] as? JsonArray)?.map { it.jsonPrimitive.content }

    private companion object {
        val LABELS = setOf("labels", "set.of.labels", "pairs.of.labels", "ranking.of", "strings.pieces", "set.of.strings.pieces")
    }
}
