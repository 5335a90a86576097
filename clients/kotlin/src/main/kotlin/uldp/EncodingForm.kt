package uldp

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable

@Serializable
internal sealed interface EncodingForm {
    @Serializable @SerialName("value")
    class Plain(val size: Int, val tags: Int) : EncodingForm {
        init {
            count(size, "value.size")
            natural(tags, "value.tags")
        }
    }

    @Serializable @SerialName("zones")
    class Zones(val size: Int, val places: List<List<Long>>) : EncodingForm {
        init {
            count(size, "zones.size")
            for (row in places) length(row, size, "zones.places").also { indices(row, MOST, "zones.places") }
        }
    }

    @Serializable @SerialName("grid")
    class Grid(val low: Double, val high: Double, val grid: Long, val bits: Int) : EncodingForm {
        init {
            range(low, high, "grid")
            within(bits, 0, 52, "grid.bits")
            within(grid, 1, SAFE shr bits, "grid.grid")
        }
    }

    @Serializable @SerialName("bins")
    class Bins(val low: Double, val high: Double, val bins: Int) : EncodingForm {
        init {
            range(low, high, "bins")
            count(bins, "bins.bins")
        }
    }

    @Serializable @SerialName("string")
    class Text(val longest: Int) : EncodingForm {
        init {
            count(longest, "string.longest")
        }
    }

    @Serializable @SerialName("prefix")
    class Prefix(val number: Int, val pieces: Int, val longest: Int) : EncodingForm {
        init {
            natural(number, "prefix.number")
            count(pieces, "prefix.pieces")
            count(longest, "prefix.longest")
        }
    }

    @Serializable @SerialName("set")
    class Items(val size: Int, val held: Int) : EncodingForm {
        init {
            count(size, "set.size")
            within(held, 1, BUCKETS, "set.held")
        }
    }

    /** A symbol of each string of a set. */
    @Serializable @SerialName("strings")
    class Texts(val of: EncodingForm, val held: Int) : EncodingForm {
        init {
            require(of is Text || of is Prefix) { "strings.of is no form of a string" }
            within(held, 1, BUCKETS, "strings.held")
        }
    }

    @Serializable @SerialName("signed")
    class Signed(val size: Int, val held: Int, val low: Double, val high: Double) : EncodingForm {
        init {
            count(size, "signed.size")
            within(held, 1, BUCKETS, "signed.held")
            range(low, high, "signed")
        }
    }

    /** The range of the number of items of a set, or of keys. */
    @Serializable @SerialName("size")
    class Size(val size: Int, val most: Int, val shift: Long, val width: Long) : EncodingForm {
        init {
            natural(size, "size.size")
            natural(most, "size.most")
            natural(shift, "size.shift")
            count(width, "size.width")
        }
    }

    @Serializable @SerialName("pair")
    class Compared(val first: Int, val second: Int) : EncodingForm {
        init {
            natural(first, "pair.first")
            natural(second, "pair.second")
        }
    }

    @Serializable @SerialName("view")
    class View(val encodings: List<EncodingForm>, val sizes: List<Long>) : EncodingForm {
        init {
            length(sizes, encodings.size, "view.sizes")
            sizes.forEach { count(it, "view.sizes") }
            require(encodings.none { it is View || it is Strata || it is Items || it is Texts || it is Signed }) { "view.encodings has a form of several symbols" }
        }
    }

    @Serializable @SerialName("strata")
    class Strata(val bases: List<Base>, val base: List<Int>, val maps: List<MapForm?>, val choice: Choice) : EncodingForm {
        init {
            indices(base, bases.size - 1L, "strata.base")
            length(maps, base.size, "strata.maps")
            choice.parts?.let { require(it == base.size.toLong()) { "strata.choice does not name ${base.size} parts" } }
        }
    }
}

@Serializable
internal class Base(val encoding: EncodingForm, val columns: List<Int>)

/** How a device comes to its part of strata. */
@Serializable
internal sealed interface Choice {
    /** How many parts it names; null if it may be any number. */
    val parts: Long? get() = when (this) {
        is Drawn -> null
        is Level -> levels.size.toLong()
        is Named -> by.values.fold(1L) { product, values -> product * values.size }
    }

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
    class Design(val first: Long, val width: Long) : MapForm {
        init {
            natural(first, "design.first")
            count(width, "design.width")
        }
    }

    @Serializable @SerialName("blocks")
    class Blocks(val width: Long) : MapForm {
        init {
            count(width, "blocks.width")
        }
    }
}
