package uldp

import java.io.File
import java.io.IOException
import kotlin.test.Test
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertTrue
import org.junit.jupiter.api.io.TempDir

internal class LedgerTest {
    @TempDir
    lateinit var folder: File

    private fun device(name: String, store: Store, draws: Draws = SystemDraws()) =
        Device(table(name), ledger = Ledger(store, skewMs = null), draws = draws)

    @Test
    fun `a budget that is spent holds after a restart, and until its period is over`() {
        for (kind in listOf("file", "sqlite")) {
            fun report(time: Long) = device("survey", opened(kind, folder)).payload(ONCE, time, null)
            report(NOW)
            val refused = assertFailsWith<BudgetExceededException> { report(NOW + HOUR_MS) }
            assertEquals(NOW + 30 * DAY_MS, refused.until)
            assertTrue(refused.message!!.endsWith("from 2026-02-04T09:00:00Z on"))
            report(refused.until)
        }
    }

    @Test
    fun `a report that is refused changes nothing`() {
        val store = MemoryStore()
        device("survey", store).payload(ONCE, NOW, null)
        val before = store.textAt("ledger")
        assertFailsWith<BudgetExceededException> { device("survey", store).payload(ONCE, NOW, null) }
        assertEquals(before, store.textAt("ledger"))
    }

    @Test
    fun `a response is kept over restarts, and sent once in a window`() {
        val store = MemoryStore()
        // These draws make the first response noise, and let no later report replace it.
        val first = device("kept", store, Always(0)).payload(ONCE, NOW, null)
        val later = device("kept", store, Always(SAFE - 1)).payload(ONCE, NOW + HOUR_MS, null)
        assertEquals(0, (first as Payload.Symbol).number)
        assertEquals(0, (later as Payload.Symbol).number)
        assertFailsWith<IllegalStateException> { device("kept", store).payload(ONCE, NOW + HOUR_MS + 1, null) }
    }

    @Test
    fun `a ledger that is damaged, or is none, makes no report, and stays as it is`() {
        val whole = MemoryStore().also { device("survey", it).payload(ONCE, NOW, null) }.textAt("ledger")!!
        val texts = listOf("", "{}", whole.dropLast(1), whole.replace("uldp 1", "uldp 2"), sealed("queue", "[]"), sealed("ledger", "[]"))
        for (text in texts) {
            val store = MemoryStore().apply { put("ledger", text) }
            val error: IOException = assertFailsWith<DamagedException> { device("survey", store).payload(ONCE, NOW + 31 * DAY_MS, null) }
            assertTrue(error.message!!.endsWith("restore it, or remove it and spend all budgets once more"))
            assertFalse("salt" in error.message!! || error.cause != null)
            assertEquals(text, store.textAt("ledger"))
        }
        val later = MemoryStore().apply { put("ledger", sealed("ledger", "{}", format = 2)) }
        assertFailsWith<LaterVersionException> { device("survey", later).payload(ONCE, NOW, null) }
    }

    @Test
    fun `one store holds a ledger and a queue, in two entries`() {
        val store = opened("file", folder)
        Sender("http://127.0.0.1:9", store).add(device("survey", store).report(ONCE, NOW))
        assertFailsWith<BudgetExceededException> { device("survey", store).report(ONCE, NOW) }
        assertEquals(1, Sender("http://127.0.0.1:9", store).flush().waiting)
    }

    @Test
    fun `what a report without privacy spends is written, and exceeds every budget`() {
        val store = MemoryStore()
        Ledger(store, null).change(NOW) { it.spent = record(it.spent, Double.POSITIVE_INFINITY, NOW) }
        assertFailsWith<BudgetExceededException> { Device(tableWithBudget(4.0), ledger = Ledger(store, null)).report(ONCE, NOW + DAY_MS) }
    }

    @Test
    fun `spendings of an hour are one, and keep their sum`() {
        val spent = (0 until 10).fold(emptyList<Spent>()) { all, i -> record(all, 0.5, NOW + i * HOUR_MS / 5) }
        assertEquals(2, spent.size)
        assertEquals(5.0, spent.sumOf(Spent::epsilon))
    }

    @Test
    fun `errors name no value, and a wrong name is no value that is passed over`() {
        val hidden = device("survey", MemoryStore())
        val error = assertFailsWith<IllegalArgumentException> { hidden.report(Value.Text("secret")) }
        assertEquals("a value is no label of the domain", error.message)
        val ledger = Ledger(MemoryStore())
        val once = Value.Text("once")
        assertFailsWith<IllegalArgumentException> { Device(table("survey")) } // a budget needs a ledger
        assertFailsWith<IllegalArgumentException> { Device(table("survey"), mapOf("place" to mapOf(once to "home")), ledger) }
        assertFailsWith<IllegalArgumentException> { Device(table("survey"), mapOf("" to mapOf(once to "home", Value.Index(1) to "home")), ledger) }
        assertFailsWith<IllegalArgumentException> { device("survey", MemoryStore()).report(mapOf("" to once, "place" to once), NOW) }
        assertFailsWith<IllegalArgumentException> { device("survey", MemoryStore()).report(once, NOW, mapOf("country" to "x")) }
        assertFailsWith<IllegalArgumentException> { Device(table("survey"), ledger = ledger, level = "high") }
    }

    @Test
    fun `a label and its index are one value`() {
        val (first, second) = listOf(Value.Text("once"), Value.Index(1)).map { value ->
            device("survey", MemoryStore(), Always(SAFE - 1)).payload(mapOf("" to value), NOW, null) as Payload.Symbol
        }
        assertEquals(first.number, second.number)
    }

    @Test
    fun `a set has each item once, by its label or its index`() {
        val device = Device(table("pets"))
        device.report(Value.Items(listOf(Value.Text("cat"), Value.Index(1))))
        for (other in listOf(Value.Text("cat"), Value.Index(0))) {
            val error = assertFailsWith<IllegalArgumentException> { device.report(Value.Items(listOf(Value.Text("cat"), other))) }
            assertEquals("the value has an item twice", error.message)
        }
    }

    @Test
    fun `a batch has the columns of its reports`() {
        val reports = listOf(Report(ByteArray(16) { 1 }, NOW, Payload.Symbol(2)), Report(ByteArray(16) { 2 }, -1, Payload.Symbol(0)))
        val bytes = batch("c", 1, reports)
        val columns = bytesOf("20" + "01".repeat(16) + "02".repeat(16)).drop(1)
        assertContentEquals(bytesOf("c3013008a78dd07701ed" + "0263" + "02" + "40") + columns, bytes.copyOf(46))
        assertContentEquals(bytesOf("00" + "10" + "02000000" + "00000000"), bytes.takeLast(10).toByteArray())
    }
}
