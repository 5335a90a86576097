package uldp

import java.io.IOException
import java.net.HttpURLConnection
import java.net.URL
import kotlin.random.Random
import kotlinx.serialization.builtins.ListSerializer
import kotlinx.serialization.builtins.serializer
import kotlinx.serialization.json.Json

private const val FIRST_WAIT_MS = 500L
private const val TIMEOUT_MS = 30_000
private const val LONGEST_RETRY_S = 86_400L // a server may ask for longer than anybody wants to wait
private val TEXTS = ListSerializer(String.serializer())

/** What became of one attempt: the server has the message, will never count it, or may take it later. */
private sealed interface Outcome {
    object Taken : Outcome

    object Refused : Outcome

    class Later(val afterMs: Long) : Outcome
}

/** What became of messages. */
public data class Sent(
    /** How many the server has taken. */
    val taken: Int,
    /** How many it will never count. */
    val refused: Int,
)

/**
 * Sends messages to `uldp collect`, each until the server has it. A copy keeps its bytes, so it is counted once.
 *
 * @param url Where the server is, without a path.
 * @param queue Where messages wait, so that a restart finds them. It is not that of a ledger.
 * @param token The token of the server, if it asks for one.
 * @param longestWaitMs The longest wait between two attempts, unless the server asks for a longer one, of up to a day.
 * @param mostWaiting At most so many messages wait; [add] refuses more, so that a server that is away does not fill the device.
 * @param sleep How to wait; tests need not.
 */
public class Sender(
    private val url: String,
    private val queue: Storage,
    private val token: String? = null,
    private val longestWaitMs: Long = 60_000,
    private val mostWaiting: Int = 1000,
    private val sleep: (Long) -> Unit = Thread::sleep,
) {
    /** Puts a message into the queue. */
    public fun add(message: ByteArray): Unit = change { waiting ->
        check(waiting.size < mostWaiting) { "too many messages wait; try later" }
        waiting += hex(message)
    }

    private val sending = Any()

    /** Sends all that waits; it waits while it must. While it does, another thread waits for it. */
    public fun flush(): Sent = synchronized(sending) { send() }

    private fun send(): Sent {
        var sent = Sent(0, 0)
        var wait = FIRST_WAIT_MS
        while (true) {
            val first = synchronized(this) { waiting().firstOrNull() } ?: return sent
            when (val outcome = post(bytesOf(first))) {
                is Outcome.Taken -> sent = sent.copy(taken = sent.taken + 1)
                is Outcome.Refused -> sent = sent.copy(refused = sent.refused + 1)
                is Outcome.Later -> {
                    // A random part, so that devices do not come back at one moment.
                    sleep(maxOf(outcome.afterMs, (wait * (0.5 + Random.nextDouble() / 2)).toLong()))
                    wait = minOf(2 * wait, longestWaitMs)
                    continue
                }
            }
            wait = FIRST_WAIT_MS
            change { it -= first }
        }
    }

    private fun post(message: ByteArray): Outcome {
        val connection = URL("$url/v1/reports").openConnection() as HttpURLConnection
        return try {
            connection.requestMethod = "POST"
            connection.doOutput = true
            connection.connectTimeout = TIMEOUT_MS
            connection.readTimeout = TIMEOUT_MS
            connection.setRequestProperty("content-type", "application/octet-stream")
            if (token != null) connection.setRequestProperty("authorization", "Bearer $token")
            connection.outputStream.use { it.write(message) }
            val status = connection.responseCode
            // What is read to its end lets the next message have this connection.
            (if (status < 400) connection.inputStream else connection.errorStream)?.use { it.readBytes() }
            when (status) {
                202 -> Outcome.Taken
                413, 422 -> Outcome.Refused
                else -> Outcome.Later(1000 * (connection.getHeaderField("retry-after")?.toLongOrNull() ?: 0).coerceIn(0, LONGEST_RETRY_S))
            }
        } catch (_: IOException) {
            Outcome.Later(0) // there was no answer: the server may have the message, and copies are removed
        }
    }

    private fun waiting(): MutableList<String> =
        queue.read()?.let { Json.decodeFromString(TEXTS, it).toMutableList() } ?: mutableListOf()

    private fun change(edit: (MutableList<String>) -> Unit): Unit = synchronized(this) {
        queue.write(Json.encodeToString(TEXTS, waiting().also(edit)))
    }
}
