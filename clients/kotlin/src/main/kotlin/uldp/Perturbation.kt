package uldp

/** The payload of a report: a symbol, or bytes. */
public sealed interface Payload {
    /** A symbol, from 0. */
    public class Symbol(
        /** The symbol. */
        public val number: Long,
    ) : Payload

    /** Bytes of the length that the mechanism has. */
    public class Bytes(
        /** The bytes. */
        public val bytes: ByteArray,
    ) : Payload
}

/** Z_S in ascending order. */
private fun symbolsOf(sensitive: List<Int>?, size: Int): List<Int> = sensitive ?: List(size) { it }

/** Perturbs a symbol by the rule of docs/device-table.md. Each call takes the same draws, whatever the symbol is. */
internal fun perturb(form: Form, symbol: Sym, draws: Draws): Payload = when (form) {
    is Form.Strata -> {
        val (part, own) = symbol as Sym.OfPart
        wrapped(form, part, perturb(form.mechanisms[form.which[part]], own, draws))
    }
    is Form.Items -> Payload.Bytes(ofSet(form, (symbol as Sym.Many).symbols, draws))
    is Form.Hits -> Payload.Bytes(ofHits(form, (symbol as Sym.Many).symbols, draws))
    is Form.CohortHits -> Payload.Symbol(ofCohortHits(form, (symbol as Sym.Strings).symbols, draws))
    else -> ofOne(form, (symbol as Sym.One).z, draws)
}

private fun ofOne(form: Form, z: Long, draws: Draws): Payload = when (form) {
    is Form.Identity -> Payload.Symbol(z)
    is Form.Response -> {
        val sensitive = symbolsOf(form.sensitive, form.size)
        val noisy = draws.happens(form.noise)
        val drawn = sensitive[draws.below(sensitive.size.toLong()).toInt()]
        Payload.Symbol(if (noisy) drawn.toLong() else z)
    }
    is Form.Bits -> {
        val bits = BooleanArray(form.size)
        for (j in symbolsOf(form.sensitive, form.size)) bits[j] = draws.happens(at(form.set, j))
        bits[z.toInt()] = !draws.happens(at(form.clear, z.toInt()))
        Payload.Bytes(packed(bits))
    }
    is Form.Flips -> Payload.Bytes(packed(flipped(form.size, form.flip, z, draws)))
    is Form.Integers -> Payload.Bytes(enlarged(form, flipped(form.size, form.flip, z, draws), draws))
    is Form.Subset -> Payload.Bytes(ofSubset(form, z.toInt(), draws))
    is Form.Design -> Payload.Symbol(ofDesign(form, z.toInt(), draws))
    is Form.Hash -> {
        val seed = draws.below(1L shl 32)
        val bucket = noisyBucket(bucketOf(seed, z, form.buckets), form.buckets, form.noise, draws)
        Payload.Bytes(littleEndian(seed, 4) + littleEndian(bucket, 2))
    }
    is Form.Row -> {
        val row = draws.below(form.rows)
        val parity = (row and z).countOneBits() and 1
        Payload.Symbol(2 * row + (parity xor (if (draws.happens(form.noise)) 1 else 0)))
    }
    is Form.Linear -> {
        val point = draws.below(pointsOf(form.g, form.m))
        val own = product(digitsOf(vectorOf(point, form.g, form.m), form.g, form.m), digitsOf(z, form.g, form.m)) % form.g
        Payload.Symbol(point * form.g + noisyBucket(own, form.g.toLong(), form.noise, draws))
    }
    is Form.Point -> {
        val noisy = draws.happens(form.noise)
        val anywhere = draws.below(pointsOf(form.g, form.m))
        val near = onPlane(z, draws.below(pointsOf(form.g, form.m - 1)), form.g, form.m)
        Payload.Symbol(select(if (noisy) 1 else 0, anywhere, near))
    }
    is Form.Bit -> {
        val bit = draws.below(form.grid) < z
        Payload.Symbol(if (bit != draws.happens(form.flip)) 1 else 0)
    }
    is Form.Interval -> {
        val noisy = draws.happens(form.noise)
        val anywhere = draws.below(form.grid + form.width)
        val near = z + draws.below(form.width)
        Payload.Symbol(if (noisy) anywhere else near)
    }
    is Form.Steps -> {
        val noise = reached(form.ends, draws.below(form.ends.last()))
        Payload.Symbol((z + noise - form.grid).coerceIn(0, form.grid + 2 * form.margin))
    }
    is Form.Cohort -> {
        val cohort = draws.below(form.cohorts)
        val bucket = noisyBucket(bucketOf(cohort, z, form.buckets), form.buckets, form.noise, draws)
        Payload.Symbol(cohort * form.buckets + bucket)
    }
    is Form.Bloom -> {
        val cohort = draws.below(form.cohorts)
        val bits = BooleanArray(form.size) { draws.happens(form.set) }
        repeat(form.hashes) { hash ->
            bits[bucketOf(cohort * form.hashes + hash, z, form.size.toLong()).toInt()] = !draws.happens(form.clear)
        }
        Payload.Bytes(littleEndian(cohort, 2) + packed(bits))
    }
    is Form.Near -> Payload.Symbol(reached(form.ends[z.toInt()].map(String::toLong), draws.wide()).toLong())
    is Form.Nested -> Payload.Symbol(ofZone(form, z.toInt(), draws))
    is Form.Kept -> error("a permanent response needs a ledger")
    is Form.Strata, is Form.Items, is Form.Hits, is Form.CohortHits -> error("these perturb no single symbol")
}

/** The payload of a part among those of all parts. */
internal fun wrapped(form: Form.Strata, part: Int, payload: Payload): Payload {
    if (form.first != null) return Payload.Symbol(form.first[part] + (payload as Payload.Symbol).number)
    val own = when (payload) {
        is Payload.Symbol -> littleEndian(payload.number, 4)
        is Payload.Bytes -> payload.bytes
    }
    return Payload.Bytes((littleEndian(part.toLong(), 2) + own).copyOf(checkNotNull(form.width)))
}

private fun flipped(size: Int, flip: Long, z: Long, draws: Draws) = BooleanArray(size) { draws.happens(flip) != (it.toLong() == z) }

/** Bits of a histogram, each with a magnitude that does not depend on it. */
internal fun enlarged(form: Form.Integers, ones: BooleanArray, draws: Draws): ByteArray {
    val magnitudes = IntArray(form.size)
    form.magnitudes.forEachIndexed { bit, threshold ->
        for (j in magnitudes.indices) if (draws.happens(threshold)) magnitudes[j] = magnitudes[j] or (1 shl bit)
    }
    return ones.indices.fold(ByteArray(0)) { bytes, j ->
        bytes + littleEndian(minOf(if (ones[j]) 1 + magnitudes[j] else -magnitudes[j], 32767).toLong(), 2)
    }
}

/** A uniform set of w numbers below v, by Floyd's algorithm, in the order of the draws. */
internal fun members(v: Int, w: Int, draws: Draws): MutableList<Int> {
    val found = mutableListOf<Int>()
    for (last in v - w until v) {
        val drawn = draws.below(last + 1L).toInt()
        found += if (drawn in found) last else drawn
    }
    return found
}

private fun ofSubset(form: Form.Subset, z: Int, draws: Draws): ByteArray {
    val sensitive = symbolsOf(form.sensitive, form.size)
    val found = members(sensitive.size, form.chosen, draws)
    val noisy = draws.happens(form.noise)
    val replaced = draws.below(form.chosen.toLong()).toInt()
    val place = sensitive.indexOf(z)
    if (!noisy && place < 0) return bitsOf(listOf(z), form.size)
    if (!noisy && place !in found) found[replaced] = place
    return bitsOf(found.map { sensitive[it] }, form.size)
}

private fun ofSet(form: Form.Items, held: List<Int>, draws: Draws): ByteArray {
    val found = members(form.size, form.chosen, draws)
    val noisy = draws.happens(form.noise)
    val most = minOf(form.held, form.chosen)
    val hits = 1 + reached(form.hits, draws.below(SAFE))
    val leaving = shuffled(found, most, draws)
    val coming = shuffled(held, most, draws)
    if (noisy || hits > most || found.any { it in held }) return bitsOf(found, form.size)
    return bitsOf(found - leaving.take(hits).toSet() + coming.take(hits), form.size)
}

private fun shuffled(row: List<Int>, first: Int, draws: Draws): List<Int> {
    val all = row.toMutableList()
    for (place in 0 until first) {
        val other = place + draws.below(all.size - place.toLong()).toInt()
        all[place] = all[other].also { all[other] = all[place] }
    }
    return all
}

private fun ofHits(form: Form.Hits, held: List<Int>, draws: Draws): ByteArray {
    val seed = draws.below(1L shl 32)
    val drawn = draws.below(SAFE)
    val place = draws.below((form.buckets - form.held).toLong()).toInt()
    val hit = held.map { bucketOf(seed, it.toLong(), form.buckets.toLong()).toInt() }.toSortedSet()
    (0 until form.buckets).filter { it !in hit }.take(form.held - hit.size).let(hit::addAll)
    val kind = (1..form.held).indexOfFirst { drawn < it * form.hit }
    val bucket = if (kind < 0) (0 until form.buckets).filter { it !in hit }[place] else hit.elementAt(kind)
    return littleEndian(seed, 4) + littleEndian(bucket.toLong(), 2)
}

private fun ofCohortHits(form: Form.CohortHits, held: List<Long>, draws: Draws): Long {
    val cohort = draws.below(form.cohorts)
    val drawn = draws.below(SAFE)
    val anywhere = draws.below(form.buckets)
    val hit = held.map { bucketOf(cohort, it, form.buckets) }.toSortedSet()
    val kind = (1..hit.size).indexOfFirst { drawn < it * form.hits[hit.size - 1] }
    return cohort * form.buckets + if (kind < 0) anywhere else hit.elementAt(kind)
}

private fun ofDesign(form: Form.Design, z: Int, draws: Draws): Long {
    val sensitive = symbolsOf(form.sensitive, form.size)
    val noisy = draws.happens(form.noise)
    val noise = draws.below(form.blocks.toLong())
    val drawn = draws.below((form.set?.size ?: form.blocks).toLong()).toInt()
    val place = sensitive.indexOf(z)
    return when {
        noisy -> noise
        place < 0 -> (form.blocks + z - sensitive.count { it < z }).toLong()
        form.set != null -> (place - form.set[drawn]).mod(form.blocks).toLong()
        else -> {
            val row = place + 1
            // Flips the lowest one of the row, if the row and the column have an odd number of ones in common.
            (drawn xor ((row and drawn).countOneBits() and 1) * row.takeLowestOneBit()).toLong()
        }
    }
}

private fun noisyBucket(own: Long, buckets: Long, noise: Long, draws: Draws): Long {
    val noisy = draws.happens(noise)
    val shift = 1 + draws.below(buckets - 1)
    return (own + if (noisy) shift else 0) % buckets
}

private fun product(a: LongArray, b: LongArray): Long = a.indices.sumOf { a[it] * b[it] }

private fun ofZone(form: Form.Nested, z: Int, draws: Draws): Long {
    val noisy = draws.happens(form.noise)
    val kind = reached(form.kinds, draws.below(SAFE))
    val other = form.others[draws.below(form.others.size.toLong()).toInt()]
    val outer = if (!noisy) form.outer[z] else if (kind > 0) form.nests[kind - 1].symbol else other
    var payload = form.first[outer]
    for (nest in form.nests) {
        val plane = nest.planes[if (form.outer[z] == nest.symbol) form.zone[z] else 0]
        val uniform = draws.happens(nest.uniform)
        val anywhere = draws.below(nest.points)
        val near = plane[draws.below(plane.size.toLong()).toInt()]
        if (outer == nest.symbol) payload += if (noisy || uniform) anywhere else near
    }
    return payload
}
