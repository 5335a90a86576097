package uldp

/** The bucket of a symbol under the hash function of a seed: SplitMix64, and its low 32 bits scaled to the buckets. */
internal fun bucketOf(seed: Long, symbol: Long, buckets: Long): Long {
    var word = (seed shl 32) + (symbol + 1) * 0x9e3779b97f4a7c15uL.toLong()
    word = (word xor (word ushr 30)) * 0xbf58476d1ce4e5b9uL.toLong()
    word = (word xor (word ushr 27)) * 0x94d049bb133111ebuL.toLong()
    return (((word xor (word ushr 31)) and 0xffffffffL) * buckets) ushr 32
}

/** The m digits of a vector in base g, the highest first. */
internal fun digitsOf(vector: Long, g: Int, m: Int): IntArray {
    val digits = IntArray(m)
    var rest = vector
    for (place in m - 1 downTo 0) {
        digits[place] = (rest % g).toInt()
        rest /= g
    }
    return digits
}

internal fun vectorOf(digits: IntArray, g: Int): Long = digits.fold(0L) { vector, digit -> vector * g + digit }

/** The number of points of the projective space of vectors of m digits. */
internal fun pointsOf(g: Int, m: Int): Long = (0 until m).fold(0L) { points, _ -> points * g + 1 }

/** The vector of a point: the points are the vectors whose first digit but 0 is a 1, in ascending order. */
internal fun vectorOf(point: Long, g: Int): Long {
    var rest = point
    var power = 1L
    while (rest >= power) {
        rest -= power
        power *= g
    }
    return power + rest
}

/** The point of a vector, whose first digit but 0 must be a 1. */
internal fun pointOf(vector: Long, g: Int): Long {
    var power = 1L
    while (power * g <= vector) power *= g
    return vector - power + (power - 1) / (g - 1)
}

internal fun inverseOf(number: Int, g: Int): Int = (1 until g).first { number * it % g == 1 }

/** Packs bits, most significant bit first, with zeros up to whole bytes. */
internal fun packed(bits: BooleanArray): ByteArray {
    val bytes = ByteArray((bits.size + 7) / 8)
    bits.forEachIndexed { j, bit -> if (bit) bytes[j / 8] = (bytes[j / 8].toInt() or (0x80 ushr (j % 8))).toByte() }
    return bytes
}

internal fun bitsOf(symbols: List<Int>, size: Int): ByteArray {
    val bits = BooleanArray(size)
    for (symbol in symbols) bits[symbol] = true
    return packed(bits)
}

/** A number in little-endian bytes. */
internal fun littleEndian(number: Long, bytes: Int): ByteArray = ByteArray(bytes) { (number ushr (8 * it)).toByte() }

/** How many ends of cumulated sums a draw has reached: all are compared, so that it takes the same time. */
internal fun reached(ends: List<Long>, drawn: Long): Int = ends.count { drawn >= it }

internal fun hex(bytes: ByteArray): String = bytes.joinToString("") { "%02x".format(it) }

internal fun bytesOf(hex: String): ByteArray = ByteArray(hex.length / 2) { hex.substring(2 * it, 2 * it + 2).toInt(16).toByte() }
