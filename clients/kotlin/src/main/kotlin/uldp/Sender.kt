package uldp

import java.io.IOException
import java.util.function.BiConsumer
import java.util.function.Consumer
import kotlin.random.Random

private const val FIRST_WAIT_MS = 500L
private const val SLACK_MS = 1000L // of a lease, beyond the time limit of an attempt
private const val DAY_MS = 86_400_000L
private const val MOST_UNANSWERED = 3
private val TOKEN = Regex("[!-~]+")
private val QUEUE = Regex("queue(-[a-z0-9]{1,50})?") // never the ledger

/** The queue is full: the server has been away for long, and nobody has emptied it. */
public class QueueFullException(message: String) : Exception(message)

/**
 * Queues messages and sends them to `uldp collect`. A message keeps its bytes, so its copies are counted once. Threads and
 * processes may share a queue.
 *
 * @param url Where the server is: `http` or `https`, without a query.
 * @param store Where the queue is kept, so that a restart finds it; it may be that of the ledger.
 * @param token The token of the server, if it asks for one.
 * @param onOutcome Hears what became of each attempt, by the id that [add] gave.
 * @param onDamage Hears that the queue was damaged: it is kept in another entry of the store, and a new queue begins.
 * @param timeLimitMs The time limit of an attempt.
 * @param longestWaitMs The longest wait between two attempts, unless the server asks for a longer one, of up to a day.
 * @param mostWaiting At most so many messages wait, so that a server that is away does not fill the device.
 * @param queue The entry of the store. Senders to two servers need two, such as `queue-a` and `queue-b`.
 * @param clock Tells when a message is due.
 */
public class Sender @JvmOverloads constructor(
    url: String,
    store: Store,
    private val token: String? = null,
    private val onOutcome: BiConsumer<String, Outcome>? = null,
    onDamage: Consumer<DamagedException>? = null,
    private val timeLimitMs: Int = 30_000,
    private val longestWaitMs: Long = 60_000,
    private val mostWaiting: Int = 1000,
    queue: String = "queue",
    private val clock: Clock = SystemClock(),
) {
    private val address = addressOf(url)
    private val queue = Queue(store, queue) { onDamage?.accept(it) }
    private val leaseMs = timeLimitMs + SLACK_MS

    init {
        require(token == null || TOKEN.matches(token)) { "a token is a text of printable ASCII without spaces" }
        require(QUEUE.matches(queue)) { "the entry of a queue is queue, or queue- with small letters and digits" }
        require(timeLimitMs > 0 && mostWaiting > 0) { "timeLimitMs and mostWaiting are above 0" }
        require(longestWaitMs in 1..DAY_MS) { "longestWaitMs is above 0, and a day at the most" }
    }

    /** Puts a message into the queue, and returns its id. */
    @Throws(QueueFullException::class, IOException::class)
    public fun add(message: ByteArray): String = queue.change { rows ->
        if (rows.size >= mostWaiting) throw QueueFullException("$mostWaiting messages wait; call flush(), and add this one later")
        Row(hex(randomBytes(16)), hex(message)).also(rows::add).id
    }

    /** Tries each message that is due once, and returns; not on the main thread. It never waits for a message to be due. */
    @Throws(IOException::class)
    public fun flush(): Flushed {
        var taken = 0
        var refused = 0
        var unanswered = 0 // in a row
        var pause = 0L
        var needsYou: Outcome.NeedsYou? = null
        for (id in queue.change { rows -> rows.filter(::isDue).map(Row::id) }) {
            val row = lease(id) ?: continue // another process sends it, or has sent it
            val answer = post(address, token, bytesOf(row.message), timeLimitMs)
            val outcome = settle(row, answer)
            onOutcome?.accept(id, outcome)
            unanswered = if (outcome is Outcome.Again && isOfSender(answer)) unanswered + 1 else 0
            when (outcome) {
                is Outcome.Taken -> taken++
                is Outcome.Refused -> refused++
                is Outcome.NeedsYou -> needsYou = outcome
                is Outcome.Again -> if (unanswered == MOST_UNANSWERED || asksSender(answer)) pause = outcome.at
            }
            if (needsYou != null || pause > 0) break
        }
        return queue.change { rows ->
            val next = rows.minOfOrNull { if (isDue(it)) clock.now() else it.next }?.let { maxOf(it, pause) }
            Flushed(taken, refused, rows.size, if (needsYou == null) next else null, needsYou)
        }
    }

    /** No row waits for longer than a day: that is the work of a clock that was ahead. */
    private fun isDue(row: Row): Boolean = clock.now().let { row.next <= it || row.next > it + DAY_MS + leaseMs }

    /** Takes a row for one attempt, unless another process has; if this one is killed, the lease expires. */
    private fun lease(id: String): Row? = queue.change { rows ->
        val at = rows.indexOfFirst { it.id == id && isDue(it) }
        if (at < 0) null else rows[at].also { rows[at] = it.copy(attempts = it.attempts + 1, next = clock.now() + leaseMs) }
    }

    /** Whether other messages would get the same answer now: there is none, or the server asks this sender to wait. */
    private fun isOfSender(answer: Answer?): Boolean =
        answer == null || (answer.status == 429 || answer.status == 503) && !answer.isOfMessage

    /** Whether the server asks this sender to wait for some time. */
    private fun asksSender(answer: Answer?): Boolean = isOfSender(answer) && answer?.retryAfterMs != null

    /** Enters what became of an attempt. */
    private fun settle(row: Row, answer: Answer?): Outcome = when (answer?.status) {
        202 -> Outcome.Taken.also { replace(row, null) }
        413, 422 -> Outcome.Refused(answer.text).also { replace(row, null) }
        null, 408, 429, in 500..599 -> {
            val asked = answer?.retryAfterMs ?: 0
            // A random part, so that devices do not come back at one moment.
            val longest = minOf(FIRST_WAIT_MS shl minOf(row.attempts, 30), longestWaitMs)
            val at = clock.now() + maxOf(asked, (longest * (0.5 + Random.nextDouble() / 2)).toLong())
            replace(row, row.copy(attempts = row.attempts + 1, next = at), if (asksSender(answer)) clock.now() + asked else 0)
            Outcome.Again(at)
        }
        else -> Outcome.NeedsYou(answer.status, answer.text).also { replace(row, row) }
    }

    /** Replaces a row, or removes it; no other is due before [earliest]. */
    private fun replace(row: Row, by: Row?, earliest: Long = 0): Unit = queue.change { rows ->
        if (by == null) rows.removeAll { it.id == row.id }
        rows.replaceAll {
            when {
                it.id != row.id -> it.copy(next = maxOf(it.next, earliest))
                it.attempts == row.attempts + 1 -> checkNotNull(by)
                else -> it // the lease has expired, and another process sends it
            }
        }
    }
}
