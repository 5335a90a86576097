package uldp

import com.sun.net.httpserver.HttpServer
import java.io.IOException
import java.net.InetAddress
import java.net.InetSocketAddress
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue

internal class SenderTest {
    private val received = mutableListOf<String>()
    private val waits = mutableListOf<Long>()

    /** Runs what is given with the URL of a server that answers with the statuses in turn, and then with 202. */
    private fun <T> answering(vararg statuses: Int, after: String = "7", run: (String) -> T): T {
        val server = HttpServer.create(InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0)
        server.createContext("/v1/reports") { exchange ->
            received += hex(exchange.requestBody.readBytes())
            if (statuses.getOrNull(received.size - 1) == 503) exchange.responseHeaders.add("retry-after", after)
            val answer = """{"late":1,"new":[]}""".encodeToByteArray() // a device needs none of it
            exchange.sendResponseHeaders(statuses.getOrElse(received.size - 1) { 202 }, answer.size.toLong())
            exchange.responseBody.use { it.write(answer) }
        }
        server.start()
        try {
            return run("http://127.0.0.1:${server.address.port}")
        } finally {
            server.stop(0)
        }
    }

    private fun sender(url: String, queue: Storage) = Sender(url, queue, mostWaiting = 2, sleep = waits::add)

    @Test
    fun `a message is sent until the server has it, with the same bytes`() {
        val sent = answering(500, 503) { url ->
            sender(url, MemoryStorage()).run {
                add(byteArrayOf(1, 2))
                flush()
            }
        }
        assertEquals(Sent(1, 0), sent)
        assertEquals(listOf("0102", "0102", "0102"), received)
        assertTrue(waits[0] in 250..500 && waits[1] == 7000L)
    }

    @Test
    fun `no answer of a server makes a device wait for ever, or not at all`() {
        for (after in listOf("Wed, 21 Oct 2026 07:28:00 GMT", "-5", "999999999999999999")) {
            answering(503, after = after) { url ->
                sender(url, MemoryStorage()).run {
                    add(byteArrayOf(1))
                    flush()
                }
            }
            received.clear()
        }
        assertEquals(3, waits.size)
        assertTrue(waits.all { it in 250..86_400_000L })
    }

    @Test
    fun `a message that the server never counts is dropped and counted`() {
        val queue = MemoryStorage()
        val sent = answering(422) { url ->
            sender(url, queue).run {
                add(byteArrayOf(1))
                add(byteArrayOf(2))
                flush()
            }
        }
        assertEquals(Sent(1, 1), sent)
        assertEquals("[]", queue.read())
    }

    @Test
    fun `only 202, 413 and 422 end the attempts of a message, and those behind it wait`() {
        val again = intArrayOf(400, 401, 403, 404, 408, 500)
        val sent = answering(*again) { url ->
            Sender(url, MemoryStorage(), sleep = waits::add).run {
                add(byteArrayOf(1))
                add(byteArrayOf(2))
                flush()
            }
        }
        assertEquals(Sent(2, 0), sent)
        assertEquals(again.map { "01" } + listOf("01", "02"), received)
        assertEquals(again.size, waits.size)
    }

    @Test
    fun `a sleep that throws ends a flush, as an interrupt does, and the message waits for the next one`() {
        val queue = MemoryStorage()
        val away = Sender("http://127.0.0.1:9", queue, sleep = { throw IOException("no answer") })
        away.add(byteArrayOf(1))
        repeat(2) { assertFailsWith<IOException> { away.flush() } }
        Thread.currentThread().interrupt()
        assertFailsWith<InterruptedException> { Sender("http://127.0.0.1:9", queue).flush() }
        assertEquals(Sent(1, 0), answering { url -> sender(url, queue).flush() })
    }

    @Test
    fun `a queue outlives a restart, and has an end`() {
        val queue = MemoryStorage()
        sender("http://127.0.0.1:9", queue).run {
            add(byteArrayOf(1))
            add(byteArrayOf(2))
            assertFailsWith<IllegalStateException> { add(byteArrayOf(3)) }
        }
        assertEquals(Sent(2, 0), answering { url -> sender(url, queue).flush() })
        assertEquals(listOf("01", "02"), received)
    }
}
