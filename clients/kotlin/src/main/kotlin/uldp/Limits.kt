package uldp

import kotlin.math.log2

/** More symbols, or entries of a list, than a spec can have. */
internal const val MOST = 1L shl 26
internal const val BUCKETS = 1L shl 16
private const val EXACT = 30 // bits of numbers whose digits are taken

internal fun within(value: Number, low: Long, high: Long, name: String) =
    require(value.toLong() in low..high) { "$name is $value, and no integer from $low to $high" }

internal fun count(value: Number, name: String) = within(value, 1, MOST, name)

internal fun natural(value: Number, name: String) = within(value, 0, MOST, name)

internal fun threshold(value: Long, name: String) = within(value, 0, SAFE, name)

internal fun thresholds(values: List<Long>, size: Int, name: String) {
    require(values.size == 1 || values.size == size) { "$name has ${values.size} entries, not $size" }
    values.forEach { threshold(it, name) }
}

internal fun ends(values: List<Long>, name: String) {
    values.forEach { threshold(it, name) }
    require(values == values.sorted()) { "$name is not in ascending order" }
}

/** Entries from 0 to [last]. */
internal fun indices(values: List<Number>, last: Long, name: String) {
    require(values.isNotEmpty()) { "$name is empty" }
    values.forEach { within(it, 0, last, name) }
}

internal fun length(values: List<*>, size: Int, name: String) =
    require(values.size == size) { "$name has ${values.size} entries, not $size" }

internal fun symbols(size: Int, sensitive: List<Int>?, name: String) {
    count(size, "$name.size")
    if (sensitive == null) return
    indices(sensitive, size - 1L, "$name.sensitive")
    require(sensitive == sensitive.distinct().sorted()) { "$name.sensitive is not in ascending order" }
}

/** Digits modulo g. */
internal fun digits(g: Int, m: Int, least: Long, name: String) {
    within(g, 2, 1L shl 15, "$name.g")
    within(m, least, (EXACT / log2(g.toDouble())).toLong(), "$name.m")
}

internal fun range(low: Double, high: Double, name: String) =
    require(low < high && (high - low).isFinite()) { "$name.high is not above $name.low" }
