package uldp

import com.sun.net.httpserver.HttpServer
import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.ServerSocket
import kotlin.concurrent.thread
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue

private const val AWAY = "http://127.0.0.1:9"

internal class SenderTest {
    private val received = mutableListOf<String>()
    private val heard = mutableListOf<Pair<String, Outcome>>()
    private val damages = mutableListOf<DamagedException>()
    private val clock = SetClock()
    private val store = MemoryStore()
    private val queue = Queue(store, "queue") { error("it is whole") }

    /** The status, the body and Retry-After of each answer in turn; and then 202. */
    private val answers = ArrayDeque<Triple<Int, String, String?>>()
    private val headers = mutableListOf<String?>()
    private var meanwhile: () -> Unit = {} // during an attempt
    private val server = HttpServer.create(InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0).apply {
        createContext("/v1/reports") { exchange ->
            received += hex(exchange.requestBody.readBytes())
            meanwhile()
            headers += exchange.requestHeaders.getFirst("authorization")
            val (status, text, after) = answers.removeFirstOrNull() ?: Triple(202, """{"late":1,"new":[]}""", null)
            if (after != null) exchange.responseHeaders.add("retry-after", after)
            if (status == 302) exchange.responseHeaders.add("location", "/v1/reports")
            exchange.sendResponseHeaders(status, text.toByteArray().size.toLong().let { if (it == 0L) -1 else it })
            exchange.responseBody.use { it.write(text.toByteArray()) }
        }
        start()
    }
    private val url = "http://127.0.0.1:${server.address.port}"

    @AfterTest
    fun stop() = server.stop(0)

    private fun answer(vararg statuses: Int, text: String = "", after: String? = null) =
        statuses.forEach { answers += Triple(it, text, after) }

    private fun sender(url: String = this.url, limitMs: Int = 30_000) =
        Sender(url, store, null, { id, outcome -> heard += id to outcome }, damages::add, limitMs, HOUR_MS, mostWaiting = 5, clock = clock)

    private fun Sender.addAll(vararg bytes: Byte): List<String> = bytes.map { add(byteArrayOf(it)) }

    private fun outcomes(): List<Outcome> = heard.map { it.second }

    @Test
    fun `a message is sent until the server has it, with the same bytes, once a round`() {
        answer(500, 408)
        val (id) = sender().addAll(1)
        val first = sender().flush()
        assertEquals(Flushed(0, 0, 1, first.again, null), first)
        assertTrue(first.again!! - clock.now() in 250..500)
        assertEquals(first, sender().flush().copy(again = first.again)) // it is not due
        clock.passed += 500
        val second = sender().flush()
        assertTrue(second.again!! - clock.now() in 500..1000)
        clock.passed += 1000
        assertEquals(Flushed(1, 0, 0, null, null), sender().flush())
        assertEquals(listOf("01", "01", "01"), received)
        assertEquals(listOf(Outcome.Again(first.again!!), Outcome.Again(second.again!!), Outcome.Taken), outcomes())
        assertEquals(setOf(id), heard.map { it.first }.toSet())
    }

    @Test
    fun `waits double up to an hour, in the queue`() {
        sender().addAll(1)
        val waits = List(20) {
            answer(500)
            val wait = sender().flush().again!! - clock.now()
            clock.passed += wait
            wait
        }
        assertTrue(waits.withIndex().all { (number, wait) -> wait in (250L shl number).coerceAtMost(1_800_000)..(500L shl number).coerceAtMost(HOUR_MS) })
    }

    @Test
    fun `a message that the server never counts is dropped, and those behind it are sent`() {
        answer(422, 413, text = """{"reason":"too_early"}""")
        sender().addAll(1, 2, 3)
        assertEquals(Flushed(1, 2, 0, null, null), sender().flush())
        val refused = Outcome.Refused("""{"reason":"too_early"}""")
        assertEquals(listOf(refused, refused, Outcome.Taken), outcomes())
    }

    @Test
    fun `what no wait can cure ends the round, and the message stays and is due`() {
        for (status in listOf(200, 302, 400, 401, 403, 404, 405, 431)) {
            received.clear()
            answer(status, text = if (status == 200) "log\u001b in" else "bring a token")
            if (status == 200) sender().addAll(1, 2)
            val text = if (status == 200) "log  in" else "bring a token"
            assertEquals(Flushed(0, 0, 2, null, Outcome.NeedsYou(status, text)), sender().flush())
            assertEquals(listOf("01"), received)
        }
        assertEquals(2, sender().flush().taken)
    }

    @Test
    fun `an error of one message does not hold back the others`() {
        answer(500)
        sender().addAll(1, 2, 3)
        val round = sender().flush()
        assertEquals(listOf(2, 1), listOf(round.taken, round.waiting))
        assertEquals(listOf("01", "02", "03"), received)
    }

    @Test
    fun `three in a row without an answer end the round`() {
        sender().addAll(1, 2, 3, 4, 5)
        val round = sender(AWAY).flush()
        assertEquals(3, heard.size)
        assertEquals(5, round.waiting)
        assertTrue(round.again!! >= clock.now() + 250) // an app that calls it then does not hurry through the queue
    }

    @Test
    fun `a server that asks a sender to wait holds back all messages, for a day at the most`() {
        for ((after, ms) in listOf("7" to 7000L, "999999999999999999999" to DAY_MS)) {
            received.clear()
            answer(503, after = after)
            if (after == "7") sender().addAll(1, 2, 3)
            val round = sender().flush()
            assertEquals(clock.now() + ms, round.again)
            assertEquals(listOf("01"), received)
            clock.passed += ms - 1
            assertEquals(round, sender().flush())
            clock.passed += 1
        }
        assertEquals(3, sender().flush().taken)
    }

    @Test
    fun `a date says when, and nonsense says nothing`() {
        for (after in listOf("Wed, 21 Oct 2015 07:28:00 GMT", "-5", "soon", "", "1.5")) {
            answer(429, after = after)
            if (store.textAt("queue") == null) sender().addAll(1)
            assertTrue(sender().flush().again!! - clock.now() in 250..HOUR_MS)
            clock.passed += HOUR_MS
        }
        answer(503, after = "Fri, 31 Dec 2100 23:59:59 GMT")
        assertEquals(DAY_MS, sender().flush().again!! - clock.now())
    }

    @Test
    fun `a message whose own time is to come holds back no other`() {
        answer(429, text = """{"reason":"too_early","detail":"x"}""", after = "86400")
        sender().addAll(1, 2)
        assertEquals(Flushed(1, 0, 1, clock.now() + DAY_MS, null), sender().flush())
    }

    @Test
    fun `a clock that was ahead holds back a message for a day at the most`() {
        clock.ahead = 12 * 365 * DAY_MS
        answer(500)
        sender().addAll(1)
        sender().flush()
        clock.ahead = 0
        assertEquals(1, sender().flush().taken)
    }

    @Test
    fun `another process sends no message that one is sending, until the lease of a killed one expires`() {
        sender().addAll(1)
        queue.change { rows -> rows[0] = rows[0].copy(attempts = 1, next = clock.now() + 31_000) }
        assertEquals(Flushed(0, 0, 1, clock.now() + 31_000, null), sender().flush())
        clock.passed += 31_000
        assertEquals(1, sender().flush().taken)
    }

    @Test
    fun `an attempt that outlives its lease leaves the lease of another process, and a message that is gone`() {
        sender().addAll(1)
        val lease = clock.now() + 31_000
        meanwhile = { queue.change { rows -> rows[0] = rows[0].copy(attempts = 2, next = lease) } }
        answer(500)
        assertEquals(lease, sender().flush().again)
        meanwhile = { queue.change { rows -> rows.clear() } }
        clock.passed += 31_000
        answer(500)
        assertEquals(Flushed(0, 0, 0, null, null), sender().flush())
    }

    @Test
    fun `threads send each message once`() {
        val other = Sender(url, store, mostWaiting = 100)
        repeat(60) { other.add(byteArrayOf(it.toByte())) }
        List(4) { thread { Sender(url, store).flush() } }.forEach(Thread::join)
        assertEquals(60, received.size)
        assertEquals(60, received.toSet().size)
    }

    @Test
    fun `a server that drips ends an attempt at its limit`() {
        ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { slow ->
            thread(isDaemon = true) {
                slow.accept().use { socket ->
                    val answer = "HTTP/1.1 202 Accepted\r\ncontent-length: 1000\r\n\r\n" + "x".repeat(900)
                    runCatching { for (byte in answer) socket.getOutputStream().write(byte.code).also { Thread.sleep(20) } }
                }
            }
            sender().addAll(1)
            val began = System.nanoTime()
            val round = sender("http://127.0.0.1:${slow.localPort}", limitMs = 300).flush()
            assertTrue(outcomes().single() is Outcome.Again)
            assertEquals(1, round.waiting)
            assertTrue((System.nanoTime() - began) / 1_000_000 < 10_000) // of the 20 s that it would take
        }
    }

    @Test
    fun `a queue outlives a restart, and has an end`() {
        sender(AWAY).addAll(1, 2, 3, 4, 5)
        assertContains(assertFailsWith<QueueFullException> { sender(AWAY).addAll(6) }.message!!, "5 messages wait")
        assertEquals(5, sender().flush().taken)
        assertEquals(listOf("01", "02", "03", "04", "05"), received)
    }

    @Test
    fun `a damaged queue is set aside whole, and a new one begins`() {
        sender().addAll(1)
        val whole = store.textAt("queue")!!
        val texts = listOf("", "[]", whole.dropLast(1), whole.replace("01", "02"), whole.replace("uldp 1", "uldp 2"), sealed("ledger", "[]"), sealed("queue", "{}"))
        for (text in texts) {
            damages.clear()
            store.put("queue", text)
            sender().addAll(7)
            assertEquals(text, store.textAt(damages.single().keptAs!!))
            assertEquals(1, sender().flush().taken)
        }
        assertEquals(listOf("07"), received.distinct())
        store.put("queue", sealed("queue", "[]", format = 2))
        assertFailsWith<LaterVersionException> { sender().addAll(7) }
    }

    @Test
    fun `a URL is one of a server, and slashes at its end do not matter`() {
        for (slashes in listOf("", "/", "//")) assertEquals("http://h/p/v1/reports", addressOf("http://h/p$slashes").toString())
        for (bad in listOf("h", "ftp://h", "http://", "http://h?a=1", "http://h#a", "http://u:p@h", "file:///h", "http://h h", "", "javascript:x")) {
            assertFailsWith<IllegalArgumentException>(bad) { Sender(bad, store) }
        }
        assertFailsWith<IllegalArgumentException> { Sender(url, store, "a\nb") }
    }

    @Test
    fun `senders to two servers have two queues in one store, and neither is the ledger`() {
        Sender(AWAY, store, queue = "queue-away").addAll(1)
        assertEquals(0, sender().flush().waiting)
        for (name in listOf("ledger", "queue.new", "")) assertFailsWith<IllegalArgumentException> { Sender(AWAY, store, queue = name) }
    }

    @Test
    fun `a token is sent as the server asks for`() {
        Sender(url, store, "secret").run { addAll(1).also { flush() } }
        assertEquals(listOf<String?>("Bearer secret"), headers)
    }
}
