package uldp

import java.security.SecureRandom

internal const val SAFE: Long = 1L shl 53

/** The randomness of a device. Each report takes the same number of draws, whatever the device holds. */
public interface Draws {
    /** Draws an integer uniformly from 0 to [limit] - 1, for a limit up to 2^53. */
    public fun below(limit: Long): Long

    /** Draws an integer uniformly below 2^62. */
    public fun wide(): Long
}

/** The cryptographic randomness of the system. One object serves one thread at a time. */
public class SystemDraws : Draws {
    private val source = SecureRandom()
    private val bytes = ByteArray(1024)
    private var used = bytes.size

    override fun below(limit: Long): Long {
        // Numbers beyond the last whole multiple of the limit would favour small remainders, so they are drawn again.
        val end = SAFE - SAFE % limit
        var drawn: Long
        do drawn = word() ushr 11 while (drawn >= end)
        return drawn % limit
    }

    override fun wide(): Long = word() ushr 2

    private fun word(): Long {
        if (used == bytes.size) {
            source.nextBytes(bytes)
            used = 0
        }
        var word = 0L
        repeat(8) {
            word = (word shl 8) or (bytes[used].toLong() and 0xff)
            bytes[used++] = 0 // so that nobody finds it in memory later
        }
        return word
    }
}

/** Draws for the encoding of a device that is to choose the same each time: those that it kept, and then new ones. */
internal class KeptDraws(private val kept: List<Long>, private val draws: Draws) : Draws {
    val made = mutableListOf<Long>()

    override fun below(limit: Long): Long {
        val drawn = draws.below(limit)
        return kept.getOrElse(made.size) { drawn }.also { made += it }
    }

    override fun wide(): Long = error("an encoding draws no wide integers")
}

/** Draws whether an event happens, of which the table has the probability as an integer up to 2^53. */
internal fun Draws.happens(threshold: Long): Boolean = below(SAFE) < threshold
