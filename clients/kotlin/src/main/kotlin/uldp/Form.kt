package uldp

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.builtins.ListSerializer
import kotlinx.serialization.builtins.serializer
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonTransformingSerializer

/** Thresholds of each bit, or one for all of them: the table then has a number in place of the list. */
internal object ThresholdsSerializer : JsonTransformingSerializer<List<Long>>(ListSerializer(Long.serializer())) {
    override fun transformDeserialize(element: JsonElement): JsonElement = element as? JsonArray ?: JsonArray(listOf(element))
}

internal fun at(thresholds: List<Long>, place: Int): Long = thresholds[if (thresholds.size == 1) 0 else place]

@Serializable
internal sealed interface Form {
    /** How many bits a payload has, if it has bits. */
    val bits: Int? get() = when (this) {
        is Bits -> size
        is Flips -> size
        is Integers -> size
        is Bloom -> size
        else -> null
    }

    @Serializable @SerialName("identity")
    object Identity : Form

    @Serializable @SerialName("response")
    class Response(val size: Int, val sensitive: List<Int>?, val noise: Long) : Form {
        init {
            symbols(size, sensitive, "response")
            threshold(noise, "response.noise")
        }
    }

    @Serializable @SerialName("bits")
    class Bits(
        val size: Int,
        val sensitive: List<Int>?,
        @Serializable(ThresholdsSerializer::class) val set: List<Long>,
        @Serializable(ThresholdsSerializer::class) val clear: List<Long>,
    ) : Form {
        init {
            symbols(size, sensitive, "bits")
            thresholds(set, size, "bits.set")
            thresholds(clear, size, "bits.clear")
        }
    }

    @Serializable @SerialName("flips")
    class Flips(val size: Int, val flip: Long) : Form {
        init {
            count(size, "flips.size")
            threshold(flip, "flips.flip")
        }
    }

    @Serializable @SerialName("integers")
    class Integers(val size: Int, val flip: Long, val magnitudes: List<Long>) : Form {
        init {
            count(size, "integers.size")
            threshold(flip, "integers.flip")
            within(magnitudes.size, 0, 30, "the number of integers.magnitudes")
            magnitudes.forEach { threshold(it, "integers.magnitudes") }
        }
    }

    @Serializable @SerialName("subset")
    class Subset(val size: Int, val sensitive: List<Int>?, val chosen: Int, val noise: Long) : Form {
        init {
            symbols(size, sensitive, "subset")
            within(chosen, 1, (sensitive?.size ?: size).toLong(), "subset.chosen")
            threshold(noise, "subset.noise")
        }
    }

    @Serializable @SerialName("set")
    class Items(val size: Int, val held: Int, val chosen: Int, val noise: Long, val hits: List<Long>) : Form {
        init {
            count(size, "set.size")
            within(held, 1, size.toLong(), "set.held")
            within(chosen, 1, size.toLong(), "set.chosen")
            threshold(noise, "set.noise")
            indices(hits, SAFE, "set.hits")
            ends(hits, "set.hits")
        }
    }

    @Serializable @SerialName("design")
    class Design(val size: Int, val sensitive: List<Int>?, val noise: Long, val blocks: Int, val set: List<Int>?) : Form {
        init {
            symbols(size, sensitive, "design")
            threshold(noise, "design.noise")
            count(blocks, "design.blocks")
            if (set != null) indices(set, blocks - 1L, "design.set")
        }
    }

    @Serializable @SerialName("hash")
    class Hash(val buckets: Long, val noise: Long) : Form {
        init {
            within(buckets, 2, BUCKETS, "hash.buckets")
            threshold(noise, "hash.noise")
        }
    }

    @Serializable @SerialName("hits")
    class Hits(val buckets: Int, val held: Int, val hit: Long) : Form {
        init {
            within(buckets, 2, BUCKETS, "hits.buckets")
            within(held, 1, buckets - 1L, "hits.held")
            threshold(hit, "hits.hit")
        }
    }

    @Serializable @SerialName("cohorts")
    class CohortHits(val cohorts: Long, val buckets: Long, val held: Int, val hits: List<Long>) : Form {
        init {
            count(cohorts, "cohorts.cohorts")
            within(buckets, 2, BUCKETS, "cohorts.buckets")
            within(held, 1, buckets - 1L, "cohorts.held")
            length(hits, held, "cohorts.hits")
            hits.forEach { threshold(it, "cohorts.hits") }
        }
    }

    @Serializable @SerialName("row")
    class Row(val rows: Long, val noise: Long) : Form {
        init {
            count(rows, "row.rows")
            threshold(noise, "row.noise")
        }
    }

    @Serializable @SerialName("linear")
    class Linear(val g: Int, val m: Int, val noise: Long) : Form {
        init {
            digits(g, m, 1, "linear")
            threshold(noise, "linear.noise")
        }
    }

    @Serializable @SerialName("point")
    class Point(val g: Int, val m: Int, val noise: Long) : Form {
        init {
            digits(g, m, 2, "point")
            threshold(noise, "point.noise")
        }
    }

    @Serializable @SerialName("bit")
    class Bit(val grid: Long, val flip: Long) : Form {
        init {
            within(grid, 1, SAFE, "bit.grid")
            threshold(flip, "bit.flip")
        }
    }

    @Serializable @SerialName("interval")
    class Interval(val grid: Long, val width: Long, val noise: Long) : Form {
        init {
            count(grid, "interval.grid")
            count(width, "interval.width")
            threshold(noise, "interval.noise")
        }
    }

    @Serializable @SerialName("steps")
    class Steps(val grid: Long, val margin: Long, val ends: List<Long>) : Form {
        init {
            count(grid, "steps.grid")
            natural(margin, "steps.margin")
            ends(ends, "steps.ends")
            require(ends.isNotEmpty() && ends.last() > 0) { "steps.ends is empty" }
        }
    }

    @Serializable @SerialName("cohort")
    class Cohort(val cohorts: Long, val buckets: Long, val noise: Long) : Form {
        init {
            count(cohorts, "cohort.cohorts")
            within(buckets, 2, MOST, "cohort.buckets")
            threshold(noise, "cohort.noise")
        }
    }

    @Serializable @SerialName("bloom")
    class Bloom(val cohorts: Long, val hashes: Int, val size: Int, val set: Long, val clear: Long) : Form {
        init {
            within(cohorts, 1, BUCKETS, "bloom.cohorts")
            count(hashes, "bloom.hashes")
            count(size, "bloom.size")
            threshold(set, "bloom.set")
            threshold(clear, "bloom.clear")
        }
    }

    @Serializable @SerialName("near")
    class Near(val ends: List<List<String>>) : Form {
        init {
            for (row in ends) {
                length(row, ends.size, "near.ends")
                for (each in row) require(each.toLongOrNull() in 0..(1L shl 62)) { "near.ends has an entry that is no integer up to 2^62" }
            }
        }
    }

    @Serializable @SerialName("nested")
    class Nested(
        val noise: Long,
        val kinds: List<Long>,
        val others: List<Int>,
        val outer: List<Int>,
        val zone: List<Int>,
        val first: List<Long>,
        val nests: List<Nest>,
    ) : Form {
        init {
            threshold(noise, "nested.noise")
            ends(kinds, "nested.kinds")
            length(kinds, nests.size, "nested.kinds")
            indices(others, MOST, "nested.others")
            indices(first, MOST, "nested.first")
            indices(outer, first.size - 1L, "nested.outer")
            length(zone, outer.size, "nested.zone")
            indices(zone, MOST, "nested.zone")
            outer.zip(zone).forEach { (symbol, number) ->
                nests.find { it.symbol == symbol }?.let { within(number, 0, it.planes.size - 1L, "nested.zone") }
            }
        }
    }

    @Serializable @SerialName("strata")
    class Strata(val draw: List<Long>, val mechanisms: List<Form>, val which: List<Int>, val first: List<Long>?, val width: Int?) : Form {
        init {
            indices(which, mechanisms.size - 1L, "strata.which")
            ends(draw, "strata.draw")
            require((first == null) != (width == null)) { "strata has not one of first and width" }
            if (first != null) indices(first, MOST, "strata.first").also { length(first, which.size, "strata.first") }
            if (width != null) within(width, 2, MOST, "strata.width")
        }
    }

    @Serializable @SerialName("kept")
    class Kept(
        val permanent: Form,
        val once: Form,
        val replace: Long? = null,
        @Serializable(ThresholdsSerializer::class) val set: List<Long> = emptyList(),
        @Serializable(ThresholdsSerializer::class) val clear: List<Long> = emptyList(),
    ) : Form {
        init {
            if (replace != null) {
                require(set.isEmpty() && clear.isEmpty()) { "kept has set or clear beside replace" }
                threshold(replace, "kept.replace")
            } else {
                val size = requireNotNull(once.bits) { "kept.once has no bits" }
                thresholds(set, size, "kept.set")
                thresholds(clear, size, "kept.clear")
            }
        }
    }
}

@Serializable
internal class Nest(val symbol: Int, val uniform: Long, val points: Long, val planes: List<List<Long>>) {
    init {
        natural(symbol, "nests.symbol")
        threshold(uniform, "nests.uniform")
        count(points, "nests.points")
        require(planes.isNotEmpty()) { "nests.planes is empty" }
        for (plane in planes) indices(plane, MOST, "nests.planes")
    }
}
