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
)

/** What a report spends after so many others of the same permanent response; infinite without privacy. */
internal fun Spends.by(before: Int): Double {
    val own = epsilon ?: return Double.POSITIVE_INFINITY
    return if (before == 0 || lasting == null) own else if (before == 1) lasting - own else 0.0
}

/**
 * The first time, from [time] on, at which a report that spends [epsilon] keeps a budget. What was spent at later times, as
 * the clock said then, counts too, so that a clock that is set back frees nothing.
 */
internal fun admittedAt(spent: List<Spent>, epsilon: Double, time: Long, budget: Budget): Long {
    if (epsilon == 0.0) return time
    var left = budget.epsilon * (1 + 1e-9) - epsilon // sums of floats may be off by that part
    for (each in spent.sortedByDescending(Spent::time)) {
        left -= each.epsilon
        if (!(left >= 0)) return maxOf(time, each.time + budget.everyMs)
    }
    return if (left >= 0) time else Long.MAX_VALUE
}

/**
 * Enters a spending. Those of an hour become one at the last of them; those that are a year older than the newest, one
 * for each day. None is forgotten, because a clock that was a year ahead may be set back.
 */
internal fun record(spent: List<Spent>, epsilon: Double, time: Long): List<Spent> {
    val all = spent + Spent(time, epsilon)
    val newest = all.maxOf(Spent::time)
    return all.groupBy { (if (newest - it.time < 365 * DAY) HOUR else DAY).let { span -> span to it.time.floorDiv(span) } }
        .values.map { slot -> Spent(slot.maxOf(Spent::time), slot.sumOf(Spent::epsilon)) }
        .filter { it.epsilon != 0.0 }
        .sortedBy(Spent::time)
}
