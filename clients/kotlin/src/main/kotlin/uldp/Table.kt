package uldp

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.builtins.ListSerializer
import kotlinx.serialization.builtins.serializer
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonTransformingSerializer
import kotlinx.serialization.json.jsonPrimitive

private val FORMS = Json {
    classDiscriminator = "form"
    ignoreUnknownKeys = true
}

/** The table of a spec, as `uldp device-table SPEC --json` writes it. Its rules are in docs/device-table.md. */
public class DeviceTable(json: String) {
    internal val content: Table = FORMS.decodeFromString(Table.serializer(), json)

    init {
        require(content.format == 1) { "this client reads tables of format 1, not ${content.format}; update it" }
    }
}

@Serializable
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
)

/** What one report of a value spends, and all of them together; null without privacy, or without such a bound. */
@Serializable
internal class Spends(val epsilon: Double?, val lasting: Double?)

@Serializable
internal class Budget(val epsilon: Double, @SerialName("every_ms") val everyMs: Long)

/** A variable: the only one has no name. */
@Serializable
internal class Column(val name: String, val kind: String, private val domain: Map<String, JsonElement>, val tags: List<String>) {
    val labels: List<String>? by lazy { texts("labels") ?: texts("set.of.labels") ?: texts("pairs.of.labels") ?: texts("ranking.of") }

    /** The public vocabulary that spells strings, if there is one. */
    val pieces: Set<String> by lazy { texts("strings.pieces").orEmpty().toSet() }

    private fun texts(key: String): List<String>? = (domain[key] as? JsonArray)?.map { it.jsonPrimitive.content }
}

/** Thresholds of each bit, or one for all of them: the table then has a number in place of the list. */
internal object ThresholdsSerializer : JsonTransformingSerializer<List<Long>>(ListSerializer(Long.serializer())) {
    override fun transformDeserialize(element: JsonElement): JsonElement = element as? JsonArray ?: JsonArray(listOf(element))
}

internal fun at(thresholds: List<Long>, place: Int): Long = thresholds[if (thresholds.size == 1) 0 else place]

@Serializable
internal sealed interface EncodingForm {
    @Serializable @SerialName("value")
    class Plain(val size: Int, val tags: Int) : EncodingForm

    @Serializable @SerialName("zones")
    class Zones(val size: Int, val places: List<List<Long>>) : EncodingForm

    @Serializable @SerialName("grid")
    class Grid(val low: Double, val high: Double, val grid: Long, val bits: Int) : EncodingForm

    @Serializable @SerialName("bins")
    class Bins(val low: Double, val high: Double, val bins: Int) : EncodingForm

    @Serializable @SerialName("string")
    class Text(val longest: Int) : EncodingForm

    @Serializable @SerialName("prefix")
    class Prefix(val number: Int, val pieces: Int, val longest: Int) : EncodingForm

    @Serializable @SerialName("set")
    class Items(val size: Int, val held: Int) : EncodingForm

    @Serializable @SerialName("signed")
    class Signed(val size: Int, val held: Int, val low: Double, val high: Double) : EncodingForm

    /** The range of the number of items of a set, or of keys. */
    @Serializable @SerialName("size")
    class Size(val most: Int, val shift: Long, val width: Long) : EncodingForm

    @Serializable @SerialName("pair")
    class Compared(val first: Int, val second: Int) : EncodingForm

    @Serializable @SerialName("view")
    class View(val encodings: List<EncodingForm>, val sizes: List<Long>) : EncodingForm

    @Serializable @SerialName("strata")
    class Strata(val bases: List<Base>, val base: List<Int>, val maps: List<MapForm?>, val choice: Choice) : EncodingForm
}

@Serializable
internal class Base(val encoding: EncodingForm, val columns: List<Int>)

/** How a device comes to its part of strata. */
@Serializable
internal sealed interface Choice {
    @Serializable @SerialName("drawn")
    object Drawn : Choice

    @Serializable @SerialName("level")
    class Level(val levels: List<String>) : Choice

    /** The values of the public attributes of a report number its part, the last one as the fastest. */
    @Serializable @SerialName("named")
    class Named(val by: Map<String, List<String>>) : Choice
}

/** What a part of strata makes of the symbol of its base. */
@Serializable
internal sealed interface MapForm {
    @Serializable @SerialName("design")
    class Design(val first: Long, val width: Long) : MapForm

    @Serializable @SerialName("blocks")
    class Blocks(val width: Long) : MapForm
}

@Serializable
internal sealed interface Form {
    @Serializable @SerialName("identity")
    object Identity : Form

    @Serializable @SerialName("response")
    class Response(val size: Int, val sensitive: List<Int>?, val noise: Long) : Form

    @Serializable @SerialName("bits")
    class Bits(
        val size: Int,
        val sensitive: List<Int>?,
        @Serializable(ThresholdsSerializer::class) val set: List<Long>,
        @Serializable(ThresholdsSerializer::class) val clear: List<Long>,
    ) : Form

    @Serializable @SerialName("flips")
    class Flips(val size: Int, val flip: Long) : Form

    @Serializable @SerialName("integers")
    class Integers(val size: Int, val flip: Long, val magnitudes: List<Long>) : Form

    @Serializable @SerialName("subset")
    class Subset(val size: Int, val sensitive: List<Int>?, val chosen: Int, val noise: Long) : Form

    @Serializable @SerialName("set")
    class Items(val size: Int, val held: Int, val chosen: Int, val noise: Long, val hits: List<Long>) : Form

    @Serializable @SerialName("design")
    class Design(val size: Int, val sensitive: List<Int>?, val noise: Long, val blocks: Int, val set: List<Int>?) : Form

    @Serializable @SerialName("hash")
    class Hash(val buckets: Long, val noise: Long) : Form

    @Serializable @SerialName("hits")
    class Hits(val buckets: Int, val held: Int, val hit: Long) : Form

    @Serializable @SerialName("row")
    class Row(val rows: Long, val noise: Long) : Form

    @Serializable @SerialName("linear")
    class Linear(val g: Int, val m: Int, val noise: Long) : Form

    @Serializable @SerialName("point")
    class Point(val g: Int, val m: Int, val noise: Long) : Form

    @Serializable @SerialName("bit")
    class Bit(val grid: Long, val flip: Long) : Form

    @Serializable @SerialName("interval")
    class Interval(val grid: Long, val width: Long, val noise: Long) : Form

    @Serializable @SerialName("steps")
    class Steps(val grid: Long, val margin: Long, val ends: List<Long>) : Form

    @Serializable @SerialName("cohort")
    class Cohort(val cohorts: Long, val buckets: Long, val noise: Long) : Form

    @Serializable @SerialName("bloom")
    class Bloom(val cohorts: Long, val hashes: Int, val size: Int, val set: Long, val clear: Long) : Form

    @Serializable @SerialName("near")
    class Near(val ends: List<List<String>>) : Form

    @Serializable @SerialName("nested")
    class Nested(
        val noise: Long,
        val kinds: List<Long>,
        val others: List<Int>,
        val outer: List<Int>,
        val zone: List<Int>,
        val first: List<Long>,
        val nests: List<Nest>,
    ) : Form

    @Serializable @SerialName("strata")
    class Strata(val draw: List<Long>, val mechanisms: List<Form>, val which: List<Int>, val first: List<Long>?, val width: Int?) : Form

    @Serializable @SerialName("kept")
    class Kept(
        val permanent: Form,
        val once: Form,
        val replace: Long? = null,
        @Serializable(ThresholdsSerializer::class) val set: List<Long> = emptyList(),
        @Serializable(ThresholdsSerializer::class) val clear: List<Long> = emptyList(),
    ) : Form
}

@Serializable
internal class Nest(val symbol: Int, val uniform: Long, val points: Long, val planes: List<List<Long>>)
