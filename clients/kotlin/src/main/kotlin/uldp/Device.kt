package uldp

import java.io.IOException
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json

/** Earlier times, before March 1973, are seconds, or those of a clock that nobody has set. */
private const val FIRST_MS = 100_000_000_000L

private const val TWICE = "the value has an item twice"

/** What a device has reported of a value: how often, up to 2, and its permanent response. */
@Serializable
private class Response(val reports: Int, val symbol: Long? = null, val bytes: String? = null)

/**
 * Perturbs one user's values. One report keeps the promise of the spec against every reader, the collector included:
 * see "Guarantee" in `uldp check`. It protects neither that a report is sent, nor when. Errors name no value.
 *
 * @param table The table of the spec.
 * @param hidden The tag behind which this user hides each value, by label or index; of a record, by attribute. The
 *   attribute of a spec without a record is the empty text. It never leaves the device.
 * @param ledger Needed if devices keep responses or a budget.
 * @param level The level of privacy that the user has chosen, if the mechanism is `levels`.
 * @param draws The source of randomness: the default is that of the system. Nothing else gives privacy.
 */
public class Device @JvmOverloads constructor(
    table: DeviceTable,
    hidden: Map<String, Map<out Value, String>> = emptyMap(),
    private val ledger: Ledger? = null,
    private val level: String? = null,
    private val draws: Draws = SystemDraws(),
) {
    private val table = table.content
    private val isNamed = (this.table.encoding as? EncodingForm.Strata)?.choice is Choice.Named
    private val tags = this.table.columns.map { tagsOf(it, hidden[it.name].orEmpty()) }

    init {
        require(ledger != null || !(this.table.kept || this.table.budget != null)) {
            "${this.table.collection} needs a ledger: its devices keep responses or a budget"
        }
        val choice = (this.table.encoding as? EncodingForm.Strata)?.choice
        require(if (choice is Choice.Level) level in choice.levels else level == null) { "level is none of those of the table" }
        checkNames(hidden.keys, this.table.columns.map(Column::name).toSet(), "hidden")
    }

    /**
     * Perturbs the value of the only variable, and returns the message to send. This spends a budget.
     *
     * @param time When it was observed, in milliseconds since 1970.
     * @param by The value of each public attribute, if the spec has `by`.
     */
    @JvmOverloads
    @Throws(BudgetExceededException::class, ClockException::class, IOException::class)
    public fun report(value: Value, time: Long = now(), by: Map<String, String>? = null): ByteArray =
        report(mapOf("" to value), time, by)

    /** Perturbs a value for each attribute of a record, and returns the message to send. This spends a budget. */
    @JvmOverloads
    @Throws(BudgetExceededException::class, ClockException::class, IOException::class)
    public fun report(record: Map<String, Value>, time: Long = now(), by: Map<String, String>? = null): ByteArray =
        message(table.collection, table.version, Report(randomBytes(16), sentTime(time), payload(record, time, by)))

    /** The time that a report of an observation has: rounded down, unless the spec says `exact`. */
    public fun sentTime(time: Long): Long = if (table.exactTime) time else sliceStart(time)

    /** Perturbs values into the payload of a report. This spends a budget. */
    @Throws(BudgetExceededException::class, ClockException::class, IOException::class)
    public fun payload(record: Map<String, Value>, time: Long, by: Map<String, String>?): Payload {
        require(time in FIRST_MS..SAFE) { "the time $time is not in milliseconds since 1970, as System.currentTimeMillis() is" }
        require(by == null || isNamed) { "by: the table has no public attributes" }
        checkNames(record.keys, table.columns.map(Column::name).toSet(), "a record")
        val columns = table.columns.mapIndexed { at, column ->
            held(column, tags[at], requireNotNull(record[column.name]) { "a record needs a value for ${column.name}" })
        }
        if (!table.kept) {
            val symbol = encoded(columns, draws, by)
            ledger?.change(time) { content ->
                spend(content, spends().by(0), time)
            }
            return perturb(table.mechanism, symbol, draws)
        }
        // The ledger is written before the report is drawn, so that no report leaves that it does not know.
        val (symbol, response) = checkNotNull(ledger).change(time) { content ->
            val symbol = encodedAsBefore(content, columns, by)
            symbol to response(content, symbol, time)
        }
        return again(table.mechanism, symbol, response, draws)
    }

    private fun now(): Long = ledger?.now() ?: System.currentTimeMillis()

    private fun sliceStart(time: Long): Long = time - (time - table.offsetMs).mod(table.sliceMs)

    private fun spends(): Spends = table.spendsAtLevel[level] ?: table.spends

    private fun encoded(columns: List<Held>, draws: Draws, by: Map<String, String>?): Sym =
        Encoder(draws, level, by).encode(table.encoding, columns, table.mechanism as? Form.Strata)

    /** Encodes always by the same draws, which the ledger keeps. */
    private fun encodedAsBefore(content: LedgerContent, columns: List<Held>, by: Map<String, String>?): Sym {
        val key = key(content, "encoding")
        val kept = KeptDraws(content.kept[key]?.let { Json.decodeFromString<List<Long>>(it) }.orEmpty(), draws)
        return encoded(columns, kept, by).also { content.kept[key] = Json.encodeToString(kept.made.toList()) }
    }

    private fun response(content: LedgerContent, symbol: Sym, time: Long): Payload {
        // All slices share a response, so that a device whose slice changes spends no more.
        val key = key(content, if (isNamed) (symbol as Sym.OfPart).own else symbol)
        val until = key(content, "reported until")
        val reported = content.kept[until]?.toLong() ?: 0
        val latest = ledger?.latest()
        // What a clock that was far ahead has reported to does not silence the device until then.
        check(time >= reported || latest != null && reported > latest + table.windowMs) {
            "this device has reported to ${table.collection} in this window, or in a later one"
        }
        // Draws in any case, so that the time does not depend on whether the device has had this value before.
        val drawn = permanent(table.mechanism, symbol, draws)
        val before = content.kept[key]?.let { Json.decodeFromString<Response>(it) } ?: Response(0)
        spend(content, spends().by(before.reports), time)
        val kept = before.symbol?.let(Payload::Symbol) ?: before.bytes?.let { Payload.Bytes(bytesOf(it)) } ?: drawn
        val reports = minOf(before.reports + 1, 2)
        content.kept[key] = Json.encodeToString(
            when (kept) {
                is Payload.Symbol -> Response(reports, symbol = kept.number)
                is Payload.Bytes -> Response(reports, bytes = hex(kept.bytes))
            },
        )
        content.kept[until] = (sliceStart(time) + table.windowMs).toString()
        return kept
    }

    private fun spend(content: LedgerContent, epsilon: Double, time: Long) {
        val until = table.budget?.let { admittedAt(content.spent, epsilon, time, it) } ?: time
        if (until > time) throw BudgetExceededException(table.collection, until)
        content.spent = record(content.spent, epsilon, time)
    }

    /** Versions with one device half share entries, and so the budget. */
    private fun key(content: LedgerContent, entry: Any): String = content.key(table.collection, table.deviceDigest, entry)
}

/** Refuses what would else be passed over, such as values to hide under a wrong name. */
private fun checkNames(names: Set<String>, known: Set<String>, where: String) = require(known.containsAll(names)) {
    "$where has a name that is not in the table, which has ${known.joinToString { "\"$it\"" }}"
}

private fun held(column: Column, tags: Map<Int, Int>, value: Value): Held {
    val own = indexed(column, value)
    return Held(own, (own as? Value.Index)?.let { tags[it.index] } ?: -1, column.pieces)
}

/** Turns labels into indices; numbers and strings stay as they are. */
private fun indexed(column: Column, value: Value): Value = when (value) {
    is Value.Index, is Value.Number -> value
    is Value.Text -> column.labels?.let { labels ->
        val index = labels.indexOf(value.text)
        require(index >= 0) { "a value is no label of the domain" }
        Value.Index(index)
    } ?: value
    is Value.Items -> Value.Items(value.items.map { indexed(column, it) }).also {
        require(it.items.toSet().size == it.items.size) { TWICE }
    }
    is Value.Pairs -> Value.Pairs(value.numbers.mapKeys { (key) -> indexed(column, key) }).also {
        require(it.numbers.size == value.numbers.size) { TWICE }
    }
}

private fun tagsOf(column: Column, hidden: Map<out Value, String>): Map<Int, Int> = hidden.entries.associate { (value, tag) ->
    val number = column.tags.indexOf(tag)
    val index = indexed(column, value)
    require(number >= 0 && index is Value.Index) { "hidden has a value or a tag that is not in the table" }
    index.index to number
}.also { require(it.size == hidden.size) { "hidden has a value twice" } }
