package uldp

import java.nio.ByteBuffer
import java.nio.CharBuffer
import java.security.MessageDigest
import kotlin.math.floor

/** What a device holds of a variable. */
public sealed interface Value {
    /** The index of a value of the domain, from 0. */
    public data class Index(
        /** Its place in the domain, from 0. */
        val index: Int,
    ) : Value

    /** A label of the domain, or a string of a domain of strings. */
    public data class Text(
        /** The text. */
        val text: String,
    ) : Value

    /** A number of a domain of numbers. */
    public data class Number(
        /** The number. */
        val number: Double,
    ) : Value

    /**
     * The items of a set, or all candidates of a ranking, the best first: an [Index] or a label as [Text] each; or the
     * strings of a set, a [Text] each.
     */
    public data class Items(
        /** The items. */
        val items: List<Value>,
    ) : Value

    /** Keys, an [Index] or a label as [Text] each, with a number each. */
    public data class Pairs(
        /** The number of each key. */
        val numbers: Map<out Value, Double>,
    ) : Value
}

/** A value without labels, and the index of the tag behind which the user hides it; -1 if the user does not hide it. */
internal class Held(val value: Value, val tag: Int, val pieces: Set<String>)

/** The symbol of a mechanism; of strata, that of one part. */
internal sealed interface Sym {
    data class One(val z: Long) : Sym

    data class Many(val symbols: List<Int>) : Sym

    /** Those of up to l strings of a set, in ascending order. */
    data class Strings(val symbols: List<Long>) : Sym

    data class OfPart(val part: Int, val own: Sym) : Sym
}

/** Encodes what a device holds. The draws do not depend on it. Errors name no value. */
internal class Encoder(private val draws: Draws, private val level: String?, private val by: Map<String, String>?) {
    fun encode(form: EncodingForm, columns: List<Held>, strata: Form.Strata?): Sym {
        if (form is EncodingForm.Strata) return ofStrata(form, columns, checkNotNull(strata))
        if (form is EncodingForm.View) return Sym.One(cell(form, columns))
        val (value, tag) = columns[0].run { value to tag }
        return when (form) {
            is EncodingForm.Plain -> index(value, form.size).let { if (tag < 0) it else form.size + tag }.let { Sym.One(it.toLong()) }
            is EncodingForm.Zones -> index(value, form.size).let { Sym.One(if (tag < 0) it.toLong() else form.places[tag][it]) }
            is EncodingForm.Grid -> {
                val steps = Math.rint(share(value, form.low, form.high) * (form.grid.toDouble() * (1L shl form.bits)))
                Sym.One((steps.toLong() + draws.below(1L shl form.bits)) shr form.bits)
            }
            is EncodingForm.Bins -> Sym.One(minOf(floor(share(value, form.low, form.high) * form.bins).toLong(), form.bins - 1L))
            is EncodingForm.Text -> Sym.One(symbolOf(text(value), form.longest))
            is EncodingForm.Prefix -> Sym.One(prefixSymbol(text(value), form, columns[0].pieces))
            is EncodingForm.Compared -> ranking(value).let { Sym.One(if (it.indexOf(form.second) < it.indexOf(form.first)) 1 else 0) }
            is EncodingForm.Texts -> Sym.Strings(kept(texts(value).map { symbolOfString(it, form.of, columns[0].pieces) }, form.held).distinct().sorted())
            is EncodingForm.Items -> padded(chosen(items(value), form.size, form.held), form.size, form.held)
            is EncodingForm.Size -> Sym.One((minOf(sizeOf(value), form.most) + form.shift) / form.width)
            is EncodingForm.Signed -> padded(signed(value, form), 2 * form.size, form.held)
            is EncodingForm.Strata, is EncodingForm.View -> error("these have several columns")
        }
    }

    private fun ofStrata(form: EncodingForm.Strata, columns: List<Held>, strata: Form.Strata): Sym {
        val symbols = form.bases.mapIndexed { number, base ->
            // The mechanism of the parts that read a base is strata too if the base is.
            val nested = strata.mechanisms[strata.which[form.base.indexOf(number)]] as? Form.Strata
            encode(base.encoding, base.columns.map { columns[it] }, nested)
        }
        val part = when (val choice = form.choice) {
            is Choice.Drawn -> reached(strata.draw, draws.below(SAFE))
            is Choice.Level -> placeOf(level, choice.levels) { "a device needs one of the levels ${choice.levels.joinToString()}" }
            is Choice.Named -> sliceOf(choice.by)
        }
        return Sym.OfPart(part, mapped(form.maps[part], symbols[form.base[part]]))
    }

    private fun sliceOf(known: Map<String, List<String>>): Int {
        require(by != null && by.keys == known.keys) { "by needs a value for each of ${known.keys.joinToString()}" }
        return known.entries.fold(0) { number, (name, values) ->
            number * values.size + placeOf(by[name], values) { "by.$name is none of its values" }
        }
    }

    private fun cell(form: EncodingForm.View, columns: List<Held>): Long =
        form.encodings.foldIndexed(0L) { place, cell, encoding ->
            cell * form.sizes[place] + (encode(encoding, listOf(columns[place]), null) as Sym.One).z
        }

    /** The keys of l pairs with a sign each, which has the mean of the number; the draws are the same for all pairs. */
    private fun signed(value: Value, form: EncodingForm.Signed): List<Int> {
        require(value is Value.Pairs) { "a value is no list of pairs of a key and a number" }
        val halves = (1L shl 52).toDouble()
        val numbers = value.numbers.entries.associate { (key, number) ->
            index(key, form.size) to Math.rint(share(Value.Number(number), form.low, form.high) * halves).toLong()
        }
        val keys = chosen(numbers.keys.toList(), form.size, form.held)
        val drawn = List(form.held) { draws.below(1L shl 52) }
        return keys.mapIndexed { place, key -> 2 * key + if (numbers.getValue(key) + drawn[place] >= 1L shl 52) 1 else 0 }
    }

    /** Draws l of the items of a set without repetition; all of them if it has no more. */
    private fun chosen(held: List<Int>, size: Int, most: Int): List<Int> =
        kept(held.onEach { index(Value.Index(it), size) }, most)

    /** Draws l of some numbers; all of them if there are no more. */
    private fun <T : Comparable<T>> kept(numbers: List<T>, most: Int): List<T> {
        val drawn = List(most) { draws.below(1L shl 32) }
        val items = numbers.sorted().toMutableList()
        if (items.size > most) {
            drawn.forEachIndexed { place, number ->
                val other = place + ((number * (items.size - place)) ushr 32).toInt()
                items[place] = items[other].also { items[other] = items[place] }
            }
        }
        return items.take(most)
    }
}

private fun placeOf(name: String?, names: List<String>, message: () -> String): Int =
    names.indexOf(name).also { require(it >= 0, message) }

private fun mapped(map: MapForm?, symbol: Sym): Sym = when (map) {
    null -> symbol
    is MapForm.Blocks -> Sym.One((symbol as Sym.One).z / map.width)
    is MapForm.Design -> {
        val place = (symbol as Sym.One).z - map.first
        Sym.One(if (place in 0 until map.width) place else map.width)
    }
}

private fun index(value: Value, size: Int): Int {
    require(value is Value.Index && value.index in 0 until size) { "a value is no index below $size" }
    return value.index
}

private fun share(value: Value, low: Double, high: Double): Double {
    val number = when (value) {
        is Value.Number -> value.number
        is Value.Index -> value.index.toDouble()
        else -> Double.NaN
    }
    require(number.isFinite()) { "a value is no finite number" }
    return (number.coerceIn(low, high) - low) / (high - low)
}

private fun text(value: Value): String {
    require(value is Value.Text) { "a value is no string" }
    return value.text
}

private fun texts(value: Value): List<String> {
    require(value is Value.Items && value.items.all { it is Value.Text }) { "a value is no list of strings" }
    return value.items.map { (it as Value.Text).text }
}

private fun symbolOfString(text: String, form: EncodingForm, pieces: Set<String>): Long = when (form) {
    is EncodingForm.Text -> symbolOf(text, form.longest)
    is EncodingForm.Prefix -> prefixSymbol(text, form, pieces)
    else -> error("this is no encoding of strings")
}

private fun items(value: Value): List<Int> {
    require(value is Value.Items && value.items.all { it is Value.Index }) { "a value is no list of items" }
    return value.items.map { (it as Value.Index).index }
}

/** How many items or keys a set or pairs have. */
private fun sizeOf(value: Value): Int = when (value) {
    is Value.Pairs -> value.numbers.size
    is Value.Items -> value.items.size
    else -> throw IllegalArgumentException("a value is no list")
}

private fun ranking(value: Value): List<Int> = items(value).also { order ->
    require(order.sorted() == order.indices.toList()) { "a ranking lists each candidate once, the best first" }
}

/** Adds a different dummy for each item that a set lacks. */
private fun padded(items: List<Int>, size: Int, held: Int): Sym =
    Sym.Many((items + List(held - items.size) { size + it }).sorted())

private fun symbolOf(text: String, longest: Int): Long {
    // A new encoder refuses half of a surrogate pair, for which String.getBytes would write a question mark.
    val bytes: ByteBuffer = try {
        Charsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text))
    } catch (_: java.nio.charset.CharacterCodingException) {
        throw IllegalArgumentException("the value is not valid Unicode")
    }
    require(bytes.remaining() <= longest) { "the value has more than $longest bytes of UTF-8" }
    val filled = ByteArray(longest) { if (it < bytes.limit()) bytes[it] else -1 }
    val hash = MessageDigest.getInstance("SHA-256").digest(filled)
    return (5 downTo 0).fold(0L) { number, at -> number * 256 + (hash[at].toLong() and 0xff) }
}

/** The symbol of the first pieces of a string, another one for each length; 0 if the pieces do not spell it. */
private fun prefixSymbol(text: String, form: EncodingForm.Prefix, known: Set<String>): Long {
    symbolOf(text, form.longest) // refuses it, whatever its prefix is
    val found = spelled(text, known)
    val symbol = symbolOf(found.orEmpty().take(form.pieces).joinToString(""), form.longest + 1 + form.number)
    return if (found == null) 0 else symbol
}

/** The pieces of a string, the longest first; null if it has a character that is in none. */
private fun spelled(text: String, pieces: Set<String>): List<String>? {
    val longest = pieces.maxOf { it.length }
    val found = mutableListOf<String>()
    var at = 0
    while (at < text.length) {
        val end = (minOf(at + longest, text.length) downTo at + 1).firstOrNull { text.substring(at, it) in pieces } ?: return null
        found += text.substring(at, end)
        at = end
    }
    return found
}
