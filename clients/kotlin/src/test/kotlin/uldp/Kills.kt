package uldp

import com.sun.net.httpserver.HttpServer
import java.io.File
import java.net.InetAddress
import java.net.InetSocketAddress
import java.nio.file.Files
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.Executors
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit.SECONDS
import java.util.concurrent.atomic.AtomicInteger
import kotlin.random.Random

private const val AT_ONCE = 2
private const val LIMIT_MS = 2000
private const val HANGS_AFTER_S = 120L
private const val KILLED = 128 + 9

/**
 * Two JVMs that report and send from one store until its budget is spent and its queue is empty, while they are killed at
 * random, and a server that counts messages by their bytes: STORE REPORTS SEED. Ends with an error if a message is lost or
 * counted that no device has queued, or if the ledger is not exact.
 */
internal object Kills {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val folder = Files.createTempDirectory("kills").toFile()
        try {
            println(run(folder, arguments[0], arguments[1].toInt(), arguments[2].toInt()))
        } finally {
            folder.deleteRecursively()
        }
    }

    /** Returns a line of figures. */
    fun run(folder: File, kind: String, reports: Int, seed: Int): String {
        val random = Random(seed)
        val events = LinkedBlockingQueue<Any>() // a message that came, or a JVM that ended
        val server = CountingServer(Random(seed + 1), events)
        val started = mutableListOf<Running>()
        fun start() =
            Running(java(folder, "uldp.Reporting", kind, server.url, "$reports"), File(folder, "said-${started.size}"), events).also(started::add)
        fun drawn() = random.nextInt(1, 12 + reports / 20)
        val running = MutableList(AT_ONCE) { start() }
        var kills = 0
        try {
            var left = drawn()
            while (running.isNotEmpty()) {
                val event = checkNotNull(events.poll(HANGS_AFTER_S, SECONDS)) { "no message comes, and no device ends" }
                if (event is Running) running -= event else left--
                if (left > 0 || running.isEmpty()) continue
                Thread.sleep(random.nextLong(20)) // at a random moment of what a device does then
                running.removeAt(random.nextInt(running.size)).kill()
                kills++
                running += start()
                left = drawn()
            }
        } finally {
            started.forEach(Running::kill)
            server.stop()
        }
        return judged(started, server, opened(kind, folder), reports, kills)
    }

    private fun judged(started: List<Running>, server: CountingServer, store: Store, reports: Int, kills: Int): String {
        val made = started.flatMap { it.said("made") }.toSet()
        val added = started.flatMap { it.said("added") }.toSet()
        val received = server.received.keys
        val copies = server.received.values.sumOf { it.get() } - received.size
        val spent = Ledger(store).change(System.currentTimeMillis()) { content -> content.spent.sumOf(Spent::epsilon) }
        check(spent == reports.toDouble()) { "$spent was spent of a budget of $reports" }
        check(received.containsAll(added)) { "${(added - received).size} messages were queued and did not come" }
        check(made.containsAll(received)) { "messages came that no device has made" }
        // A device is killed at most once, between its spending and its queueing.
        check(received.size in reports - kills..reports) { "${received.size} messages came of $reports" }
        check(Sender(server.url, store).flush() == Flushed(0, 0, 0, null, null)) { "messages wait, though all devices have ended" }
        // Nobody sends what another sends: a message comes again only if its sender was killed, or got no answer.
        check(copies <= kills + server.unanswered.get()) { "$copies copies came, of $kills kills and ${server.unanswered} without an answer" }
        return "$reports reports: $spent spent, ${received.size} received, $copies copies, $kills kills, ${server.unanswered} without an answer"
    }
}

/** A device that reports until its budget is spent, and sends until nothing waits: STORE URL BUDGET. Prints what it does. */
internal object Reporting {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val (kind, url, budget) = arguments
        val store = opened(kind, File("."))
        val device = Device(tableWithBudget(budget.toDouble()), ledger = Ledger(store))
        val sender = Sender(url, store, timeLimitMs = LIMIT_MS)
        try {
            while (true) {
                val message = device.report(ONCE)
                println("made ${hex(message)}")
                sender.add(message)
                println("added ${hex(message)}")
                sender.flush()
            }
        } catch (_: BudgetExceededException) {
            println("spent")
        }
        generateSequence(sender.flush()) { round ->
            round.again?.let {
                Thread.sleep(maxOf(0, it - System.currentTimeMillis()))
                sender.flush()
            }
        }.forEach { check(it.needsYou == null) { "$it" } }
    }
}

/** A JVM, and the file of what it prints; a pipe would lose the last lines of one that is killed. */
private class Running(command: ProcessBuilder, private val output: File, events: LinkedBlockingQueue<Any>) {
    private val process = command.redirectOutput(output).start().apply { onExit().thenRun { events += this@Running } }

    fun kill() {
        process.destroyForcibly().waitFor()
    }

    /** The messages of which it has said something; or fails, if it has ended with an error of its own. */
    fun said(word: String): List<String> {
        val text = output.readText()
        check(process.exitValue() in listOf(0, KILLED)) { text }
        return text.split('\n').dropLast(1).filter { it.startsWith("$word ") }.map { it.substringAfter(' ') }
    }
}

/** Counts messages by their bytes. A tenth gets 500, and a tenth no answer, though half of these are counted. */
private class CountingServer(private val random: Random, events: LinkedBlockingQueue<Any>) {
    val received = ConcurrentHashMap<String, AtomicInteger>()
    val unanswered = AtomicInteger()
    private val pool = Executors.newFixedThreadPool(2 * AT_ONCE)
    private val server = HttpServer.create(InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0).apply {
        executor = pool
        createContext("/v1/reports") { exchange ->
            val message = hex(exchange.requestBody.readBytes())
            val fate = synchronized(random) { random.nextInt(40) }
            if (fate >= 6) received.getOrPut(message) { AtomicInteger() }.incrementAndGet()
            if (fate in 4..7) unanswered.incrementAndGet() else exchange.sendResponseHeaders(if (fate < 4) 500 else 202, -1)
            exchange.close()
            events += message
        }
        start()
    }
    val url = "http://127.0.0.1:${server.address.port}"

    fun stop() {
        server.stop(0)
        pool.shutdown()
    }
}
