package uldp

import java.time.Instant
import kotlinx.serialization.Serializable

private const val HOUR = 3_600_000L
private const val DAY = 24 * HOUR

/** A report would exceed the budget of its spec. */
public class BudgetExceededException(
    collection: String,
    /** When the device can report again, in milliseconds since 1970. */
    public val until: Long,
) : Exception("$collection: this report would exceed the budget of the user; the device can report again from ${Instant.ofEpochMilli(until)} on")

/** What reports spent together until a time. */
@Serializable
internal data class Spent(
    /** Milliseconds since 1970. */
    val time: Long,
    /** In nats. */
    val epsilon: Double,
    /** When the clock was found to be before [time], so that one of the two clocks was wrong; null if it is not now. */
    val seen: Long? = null,
)

/** What a report spends after so many others of the same permanent response; infinite without privacy. */
internal fun Spends.by(before: Int): Double {
    val own = epsilon ?: return Double.POSITIVE_INFINITY
    return if (before == 0 || lasting == null) own else if (before == 1) lasting - own else 0.0
}

/**
 * Notes which spendings are ahead of the clock by more than [skewMs], and since when. That time moves with a jump of the
 * clock, so that only time that has passed counts; and none is later than now.
 */
internal fun noticed(spent: List<Spent>, now: Long, jumpMs: Long, skewMs: Long): List<Spent> = spent.map {
    it.copy(seen = if (it.time - now > skewMs) minOf((it.seen ?: now) + jumpMs, now) else null)
}

/**
 * The first time, from [time] on, at which a report that spends [epsilon] keeps a budget. What is ahead of the clock
 * counts for a period from when that was seen, so that a clock that was years ahead does not silence a device for years;
 * and once more when its own time has come, so that a clock that is set back frees nothing.
 */
internal fun admittedAt(spent: List<Spent>, epsilon: Double, time: Long, budget: Budget): Long {
    if (epsilon == 0.0) return time
    var first = time
    while (true) {
        val later = admittedAsCounted(spent, epsilon, first, budget)
        if (later == first) return first
        first = later // until then, more may have come to count by its own time
    }
}

/** The same, if everything counted from the same time as it does at [time]. */
private fun admittedAsCounted(spent: List<Spent>, epsilon: Double, time: Long, budget: Budget): Long {
    var left = budget.epsilon * (1 + 1e-9) - epsilon // sums of floats may be off by that part
    for (each in spent.map { if (it.seen != null && it.time > time) it.copy(time = it.seen) else it }.sortedByDescending(Spent::time)) {
        left -= each.epsilon
        if (!(left >= 0)) return maxOf(time, each.time + budget.everyMs)
    }
    return if (left >= 0) time else Long.MAX_VALUE
}

/**
 * Enters a spending. Those of an hour become one at the last of them; those that are a year older than the newest that is
 * not ahead, one for each day. None is forgotten, because a clock that was a year ahead may be set back.
 */
internal fun record(spent: List<Spent>, epsilon: Double, time: Long): List<Spent> {
    val all = spent + Spent(time, epsilon)
    val newest = all.filter { it.seen == null }.maxOf(Spent::time)
    return all.groupBy { (if (newest - it.time < 365 * DAY) HOUR else DAY).let { span -> span to it.time.floorDiv(span) } }
        .values.map { slot -> Spent(slot.maxOf(Spent::time), slot.sumOf(Spent::epsilon), seenOf(slot)) }
        .filter { it.epsilon != 0.0 }
        .sortedBy(Spent::time)
}

private fun seenOf(slot: List<Spent>): Long? = slot.mapNotNull(Spent::seen).takeIf { it.size == slot.size }?.max()
