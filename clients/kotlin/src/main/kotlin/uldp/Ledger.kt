package uldp

import java.security.SecureRandom
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json

private const val NAME = "ledger"
private const val HOUR_MS = 3_600_000L
private val JSON = Json { allowSpecialFloatingPointValues = true } // a report without privacy spends infinitely much

/** What a device remembers: its permanent responses, its windows, and what its user has spent. As secret as the values. */
@Serializable
internal class LedgerContent(
    /** Random bytes in each key, so that nobody who reads keys alone can find values by hashing all of a domain. */
    val salt: String = hex(randomBytes(16)),
    val kept: MutableMap<String, String> = mutableMapOf(),
    var spent: List<Spent> = emptyList(),
    /** When the machine started, as its clock said; null if that is not known. */
    var start: Start? = null,
    /** The same, when the ledger last looked at spendings that were ahead of the clock; null if none are. */
    var look: Start? = null,
) {
    fun key(vararg names: Any): String = sha256(salt + names.joinToString("\u0000"))
}

/**
 * The memory of a device: the entry `ledger` of a store. It is as secret as the values. All collections of a user share
 * one. A device that loses it spends all budgets once more.
 *
 * Observations must be of now, and the clock must not come further than the time until the machine is restarted: else
 * a device would spend the budgets of other periods now.
 *
 * @param store Where it is kept, also with the queue of a [Sender].
 * @param skewMs How far the times of observations may be from the clock, and the clock may come further than the time.
 *   Null believes every time: a budget then holds by the times that are given.
 * @param clock The clock of the machine, in place of the system's.
 */
public class Ledger @JvmOverloads constructor(
    private val store: Store,
    private val skewMs: Long? = HOUR_MS,
    private val clock: Clock = SystemClock(),
) {
    init {
        require(skewMs == null || skewMs >= 0) { "skewMs is $skewMs, and below 0" }
    }

    internal fun now(): Long = clock.now()

    /** The latest time that the ledger believes now; null if it believes all. */
    internal fun latest(): Long? = skewMs?.let { clock.now() + it }

    /**
     * Gives the content to one device at a time, for an observation of a time. If the edit throws, nothing has changed, but
     * that a ledger remembers since when spendings have been ahead of the clock, also if a budget refuses the report.
     */
    internal fun <T> change(time: Long, edit: (LedgerContent) -> T): T = store.change(NAME) { text ->
        val content = if (text == null) LedgerContent() else contentOf(text)
        if (skewMs != null) content.start = checkedStart(content.start, clock, time, skewMs)
        if (skewMs != null) notice(content, skewMs)
        try {
            val result = edit(content)
            Edited(textOf(content), Result.success(result))
        } catch (refusal: BudgetExceededException) {
            Edited(refused(text), Result.failure(refusal))
        }
    }.getOrThrow()

    private fun notice(content: LedgerContent, skewMs: Long) {
        val jump = jump(content.look, clock, skewMs)
        content.spent = noticed(content.spent, clock.now(), jump.ms, skewMs)
        content.look = if (content.spent.any { it.seen != null }) jump.look else null
    }

    /** What a refusal makes of a ledger; null if it has nothing to remember. */
    private fun refused(text: String?): String? {
        if (text == null || skewMs == null) return null
        val content = contentOf(text).also { notice(it, skewMs) }
        return textOf(content).takeIf { it != text }
    }
}

private fun textOf(content: LedgerContent): String = sealed(NAME, JSON.encodeToString(LedgerContent.serializer(), content))

/**
 * Reads a ledger. If it is damaged, no report is made, because nobody knows any more what its user has spent. Neither the
 * message of an error nor another error behind it holds any of it.
 */
private fun contentOf(text: String): LedgerContent {
    val content = try {
        opened(NAME, text)?.let { JSON.decodeFromString(LedgerContent.serializer(), it) }
    } catch (_: IllegalArgumentException) {
        null
    }
    return content ?: throw DamagedException(NAME, null, "restore it, or remove it and spend all budgets once more")
}

internal fun randomBytes(count: Int): ByteArray = ByteArray(count).also(SecureRandom()::nextBytes)
