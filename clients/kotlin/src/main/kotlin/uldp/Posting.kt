package uldp

import java.io.IOException
import java.io.InputStream
import java.net.HttpURLConnection
import java.net.URI
import java.net.URISyntaxException
import java.net.URL
import java.util.concurrent.ScheduledThreadPoolExecutor
import java.util.concurrent.TimeUnit.MILLISECONDS
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject

private const val MOST_TEXT_BYTES = 2048
private const val LONGEST_RETRY_S = 86_400L // a server may ask for longer than anybody wants to wait
private const val REPEAT_MS = 1000L
private val LIMITS = ScheduledThreadPoolExecutor(1) { Thread(it, "uldp time limits").apply { isDaemon = true } }.apply { removeOnCancelPolicy = true }

/**
 * What a server says to a message.
 *
 * @param retryAfterMs For how long it asks to wait; null if it does not.
 */
internal class Answer(val status: Int, val text: String, val retryAfterMs: Long?) {
    /** Whether the server could take other messages of this sender now: it judged this one, and names the reason. */
    val isOfMessage: Boolean = try {
        (Json.parseToJsonElement(text) as? JsonObject)?.containsKey("reason") == true
    } catch (_: SerializationException) {
        false
    }
}

/** The address to which a sender posts. */
internal fun addressOf(url: String): URL {
    val parsed = try {
        URI(url)
    } catch (_: URISyntaxException) {
        null
    }
    require(parsed != null && parsed.scheme?.lowercase() in setOf("http", "https") && parsed.host != null) {
        "the URL of a server begins with http:// or https:// and a host"
    }
    require(parsed.rawQuery == null && parsed.rawFragment == null && parsed.rawUserInfo == null) {
        "the URL of a server has no query, no fragment and no user; give a token as token"
    }
    return URL(url.trimEnd('/') + "/v1/reports")
}

/** Posts a message, and returns what the server says; null if it gives no answer within the time limit. */
internal fun post(address: URL, token: String?, message: ByteArray, timeLimitMs: Int): Answer? {
    val connection = address.openConnection() as HttpURLConnection
    // The limits of the connection are of each of its steps, and a server may send a byte at a time. Before it has a socket,
    // to end it does nothing.
    val limit = LIMITS.scheduleWithFixedDelay(connection::disconnect, timeLimitMs.toLong(), REPEAT_MS, MILLISECONDS)
    return try {
        connection.requestMethod = "POST"
        connection.doOutput = true
        connection.instanceFollowRedirects = false // it would become a GET
        connection.connectTimeout = timeLimitMs
        connection.readTimeout = timeLimitMs
        connection.setRequestProperty("content-type", "application/octet-stream")
        if (token != null) connection.setRequestProperty("authorization", "Bearer $token")
        connection.outputStream.use { it.write(message) }
        val status = connection.responseCode
        // What is read to its end lets the next message have this connection.
        val text = (if (status < 400) connection.inputStream else connection.errorStream)?.use(::textOf).orEmpty()
        if (status < 0) null else Answer(status, text, retryAfterMs(connection)) // below 0, it is no HTTP
    } catch (_: IOException) {
        null // the server may have the message, and copies are removed
    } finally {
        limit.cancel(false)
    }
}

/** The beginning of a body, without the control characters by which a hostile one could steer a terminal. */
private fun textOf(body: InputStream): String {
    val bytes = ByteArray(MOST_TEXT_BYTES)
    var length = 0
    while (length < bytes.size) {
        val read = body.read(bytes, length, bytes.size - length)
        if (read < 0) break
        length += read
    }
    return String(bytes, 0, length).map { if (it.isISOControl()) ' ' else it }.joinToString("").trim()
}

/** Retry-After, in seconds or as a date, by the clock of the server. */
private fun retryAfterMs(connection: HttpURLConnection): Long? {
    val text = connection.getHeaderField("retry-after")?.trim() ?: return null
    val date = connection.getHeaderFieldDate("retry-after", 0)
    val ms = when {
        text.isNotEmpty() && text.all { it in '0'..'9' } -> 1000 * (text.toLongOrNull() ?: LONGEST_RETRY_S).coerceAtMost(LONGEST_RETRY_S)
        date > 0 -> date - connection.getHeaderFieldDate("date", System.currentTimeMillis())
        else -> return null
    }
    return ms.coerceIn(0, 1000 * LONGEST_RETRY_S)
}
