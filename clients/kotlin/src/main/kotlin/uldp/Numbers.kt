package uldp

/** The bucket of a symbol under the hash function of a seed: SplitMix64, and its low 32 bits scaled to the buckets. */
internal fun bucketOf(seed: Long, symbol: Long, buckets: Long): Long {
    var word = (seed shl 32) + (symbol + 1) * 0x9e3779b97f4a7c15uL.toLong()
    word = (word xor (word ushr 30)) * 0xbf58476d1ce4e5b9uL.toLong()
    word = (word xor (word ushr 27)) * 0x94d049bb133111ebuL.toLong()
    return (((word xor (word ushr 31)) and 0xffffffffL) * buckets) ushr 32
}

/** The m digits of a vector in base g, the highest first. */
internal fun digitsOf(vector: Long, g: Int, m: Int): LongArray {
    val digits = LongArray(m)
    var rest = vector
    for (place in m - 1 downTo 0) {
        digits[place] = rest % g
        rest /= g
    }
    return digits
}

/** The number of points of the projective space of vectors of m digits. */
internal fun pointsOf(g: Int, m: Int): Long = (0 until m).fold(0L) { points, _ -> points * g + 1 }

/** Of numbers below 2^62, 1 if the first is below the second, else 0: by arithmetic, as a branch would tell by its time. */
private fun below(a: Long, b: Long): Long = (a - b) ushr 63

/** Of the same, 1 if both are equal, else 0. */
private fun same(a: Long, b: Long): Long = 1 - (((a - b) or (b - a)) ushr 63)

/** The first of two numbers if [choice] is 1, the second if it is 0. */
internal fun select(choice: Long, a: Long, b: Long): Long = b xor (-choice and (a xor b))

/** The vector of a point: the points are the vectors whose first digit but 0 is a 1, in ascending order. */
internal fun vectorOf(point: Long, g: Int, m: Int): Long {
    var vector = 0L
    var power = 1L
    var points = 0L
    repeat(m) {
        vector = select(below(point, points), vector, power + point - points)
        points += power
        power *= g
    }
    return vector
}

/** The point of a vector, whose first digit but 0 must be a 1. */
internal fun pointOf(vector: Long, g: Int, m: Int): Long {
    var point = 0L
    var power = 1L
    var points = 0L
    repeat(m) {
        point = select(below(vector, power), point, vector - power + points)
        points += power
        power *= g
    }
    return point
}

/** Point number [number] of the hyperplane of a point; as many operations for each of them. */
internal fun onPlane(point: Long, number: Long, g: Int, m: Int): Long {
    val x = digitsOf(vectorOf(point, g, m), g, m)
    val others = longArrayOf(0) + digitsOf(vectorOf(number, g, m - 1), g, m - 1) + 0
    var place = 0L // of the last digit but 0
    var last = 0L
    for (i in 0 until m) {
        val zero = same(x[i], 0)
        place = select(zero, place, i.toLong())
        last = select(zero, last, x[i])
    }
    val y = LongArray(m) { select(same(it.toLong(), place), 0, select(below(it.toLong(), place), others[it + 1], others[it])) }
    var sum = 0L
    for (i in 0 until m) sum = (sum + x[i] * y[i]) % g
    var solved = 0L // the digit at the place that makes the product 0
    for (digit in 1L until g) solved = select(same((sum + last * digit) % g, 0), digit, solved)
    var vector = 0L
    for (i in 0 until m) vector = vector * g + select(same(i.toLong(), place), solved, y[i])
    return pointOf(vector, g, m)
}

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
