package uldp

import java.time.Clock
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json

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
 * @param skewMs How far times may be from the clock, for reports that a ledger enters; null believes every time.
 * @param clock Tells the time of reports for which none is given.
 * @param draws The source of randomness: the default is that of the system. Nothing else gives privacy.
 */
public class Device(
    table: DeviceTable,
    hidden: Map<String, Map<Value, String>> = emptyMap(),
    private val ledger: Ledger? = null,
    private val level: String? = null,
    private val skewMs: Long? = 3_600_000,
    private val clock: Clock = Clock.systemUTC(),
    private val draws: Draws = SystemDraws(),
) {
    private val table = table.content
    private val tags = this.table.columns.map { tagsOf(it, hidden[it.name].orEmpty()) }

    init {
        require(ledger != null || !(this.table.kept || this.table.budget != null)) {
            "${this.table.collection} needs a ledger: its devices keep responses or a budget"
        }
    }

    /** Perturbs the value of the only variable, and returns the message to send. This spends a budget. */
    public fun report(value: Value, time: Long = clock.millis(), by: Map<String, String>? = null): ByteArray =
        report(mapOf("" to value), time, by)

    /** Perturbs a value for each attribute of a record, and returns the message to send. This spends a budget. */
    public fun report(record: Map<String, Value>, time: Long = clock.millis(), by: Map<String, String>? = null): ByteArray =
        message(table.collection, table.version, Report(randomBytes(16), sentTime(time), payload(record, time, by)))

    /** The time that a report of an observation has: rounded down, unless the spec says `exact`. */
    public fun sentTime(time: Long): Long = if (table.exactTime) time else sliceStart(time)

    /** Perturbs values into the payload of a report. This spends a budget. */
    public fun payload(record: Map<String, Value>, time: Long, by: Map<String, String>?): Payload {
        val columns = table.columns.mapIndexed { at, column ->
            held(column, tags[at], requireNotNull(record[column.name]) { "a record needs a value for ${column.name}" })
        }
        if (!table.kept) {
            val symbol = encoded(columns, draws, by)
            ledger?.change { content ->
                checkTime(time)
                spend(content, spends().by(0), time)
            }
            return perturb(table.mechanism, symbol, draws)
        }
        // The ledger is written before the report is drawn, so that no report leaves that it does not know.
        val (symbol, response) = checkNotNull(ledger).change { content ->
            checkTime(time)
            val symbol = encodedAsBefore(content, columns, by)
            symbol to response(content, symbol, time)
        }
        return again(table.mechanism, symbol, response, draws)
    }

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
        val named = (table.encoding as? EncodingForm.Strata)?.choice is Choice.Named
        val key = key(content, if (named) (symbol as Sym.OfPart).own else symbol)
        val until = key(content, "reported until")
        check(time >= (content.kept[until]?.toLong() ?: 0)) {
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

    private fun checkTime(time: Long) = require(skewMs == null || time in clock.millis().let { it - skewMs..it + skewMs }) {
        "the time of an observation is far from the clock, so it would spend another period's budget"
    }

    /** Versions with one device half share entries, and so the budget. */
    private fun key(content: LedgerContent, entry: Any): String = content.key(table.collection, table.deviceDigest, entry)
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
    is Value.Items -> Value.Items(value.items.map { indexed(column, it) })
    is Value.Pairs -> Value.Pairs(value.numbers.mapKeys { (key) -> indexed(column, key) })
}

private fun tagsOf(column: Column, hidden: Map<Value, String>): Map<Int, Int> = hidden.entries.associate { (value, tag) ->
    val number = column.tags.indexOf(tag)
    val index = indexed(column, value)
    require(number >= 0 && index is Value.Index) { "hidden has a value or a tag that is not in the table" }
    index.index to number
}
