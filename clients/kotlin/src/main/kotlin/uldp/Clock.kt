package uldp

import java.io.File
import java.io.IOException
import java.time.Instant
import kotlin.math.abs
import kotlinx.serialization.Serializable

private const val UPTIME = "/proc/uptime"
private const val BOOT_ID = "/proc/sys/kernel/random/boot_id"

/** How long a machine has been running. */
public class Uptime(
    /** A name of this run of the machine alone. */
    public val boot: String,
    /** In milliseconds, also those of sleep. */
    public val elapsed: Long,
)

/** The clock of a machine. */
public interface Clock {
    /** The time in milliseconds since 1970. */
    public fun now(): Long

    /** How long the machine has been running; null if that is not known. */
    public fun uptime(): Uptime?
}

/**
 * The clock of this machine. Linux alone names its runs: elsewhere, and on Android, which lets no app read them, every
 * jump of the clock is believed. `System.nanoTime` is no substitute, because it stands still while a machine sleeps.
 */
public class SystemClock : Clock {
    override fun now(): Long = System.currentTimeMillis()

    override fun uptime(): Uptime? = try {
        val seconds = File(UPTIME).readText().substringBefore(' ').toDouble()
        Uptime(File(BOOT_ID).readText().trim(), (seconds * 1000).toLong())
    } catch (_: IOException) {
        null
    } catch (_: NumberFormatException) {
        null
    }
}

/** When a run of a machine began, by the earliest time that its clock has ever given for that. */
@Serializable
internal data class Start(val boot: String, val time: Long)

/** A ledger does not believe the time of an observation, or the clock. */
public class ClockException(message: String) : Exception(message)

/**
 * Checks the time of an observation, and returns when the machine started, to be kept for the next check.
 *
 * Within one run, the clock must not come more than [skewMs] further than the time that has elapsed since any earlier
 * check. A clock that is set back passes, because that frees no budget.
 */
internal fun checkedStart(known: Start?, clock: Clock, time: Long, skewMs: Long): Start? {
    val now = clock.now()
    val uptime = clock.uptime()
    val off = time - now
    if (abs(off) > skewMs) {
        throw ClockException(
            "the time of the observation is ${seconds(off)} ${if (off > 0) "ahead of" else "behind"} the clock of this machine," +
                " ${Instant.ofEpochMilli(now)}, and not within ${seconds(skewMs)}; report when you observe, in milliseconds, or say" +
                " how far times may be off, by skewMs of the ledger",
        )
    }
    if (uptime == null) return known
    val start = Start(uptime.boot, now - uptime.elapsed)
    if (known == null || known.boot != start.boot) return start
    if (start.time - known.time > skewMs) {
        throw ClockException(
            "the clock of this machine, ${Instant.ofEpochMilli(now)}, has come ${seconds(start.time - known.time)} further than the" +
                " time since an earlier report; set it right, or if it is right now, restart the machine",
        )
    }
    return if (known.time <= start.time) known else start
}

/** How far the clock has jumped since the ledger last looked at it, and what it keeps as the last look. */
internal class Jump(val ms: Long, val look: Start?)

/**
 * Looks at the clock. In another run, or where nothing names runs, it is believed, and has not jumped. A jump within
 * [skewMs] is kept until such jumps add up.
 */
internal fun jump(last: Start?, clock: Clock, skewMs: Long): Jump {
    val uptime = clock.uptime() ?: return Jump(0, null)
    val start = Start(uptime.boot, clock.now() - uptime.elapsed)
    if (last == null || last.boot != start.boot) return Jump(0, start)
    val ms = start.time - last.time
    return if (abs(ms) > skewMs) Jump(ms, start) else Jump(0, last)
}

private fun seconds(durationMs: Long): String = "${abs(durationMs) / 1000} s"
