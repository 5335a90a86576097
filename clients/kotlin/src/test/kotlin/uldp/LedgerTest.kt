package uldp

import java.io.File
import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.Files
import java.sql.DriverManager
import kotlin.test.Test
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import org.junit.jupiter.api.io.TempDir

private const val NOW = 1_767_603_600_000
private const val HOUR_MS = 3_600_000L

internal fun table(name: String): DeviceTable =
    DeviceTable(checkNotNull(Device::class.java.getResource("/$name.json")).readText())

internal class LedgerTest {
    @TempDir
    lateinit var folder: File

    private fun storages(): List<() -> Storage> {
        val database = "jdbc:sqlite:$folder/ledger.db"
        return listOf({ FileStorage(File(folder, "ledger")) }, { SqlStorage("ledger") { DriverManager.getConnection(database) } })
    }

    @Test
    fun `what is written is read after a restart`() {
        for (opened in storages()) {
            assertEquals(null, opened().read())
            for (text in listOf("{}", "{\"é\": \"'\"}")) {
                opened().write(text)
                assertEquals(text, opened().read())
            }
        }
    }

    @Test
    fun `only its owner reads a file`() {
        FileStorage(File(folder, "ledger")).write("{}")
        val modes = Files.getPosixFilePermissions(File(folder, "ledger").toPath())
        assertEquals("rw-------", PosixFilePermissions.toString(modes))
    }

    @Test
    fun `a budget that is spent holds after a restart, and until its period is over`() {
        for (opened in storages()) {
            fun report(time: Long) = device("survey", StoredLedger(opened())).payload(ONCE, time, null)
            report(NOW)
            val refused = assertFailsWith<BudgetExceededException> { report(NOW + HOUR_MS) }
            assertEquals(NOW + 30 * 24 * HOUR_MS, refused.until)
            report(refused.until)
        }
    }

    @Test
    fun `a change that fails is not made`() {
        for (opened in storages()) {
            StoredLedger(opened()).change { it.spent = listOf(Spent(NOW, 1.0)) }
            assertFailsWith<IllegalStateException> {
                StoredLedger(opened()).change { content ->
                    content.spent = emptyList()
                    error("no")
                }
            }
            assertEquals(listOf(Spent(NOW, 1.0)), StoredLedger(opened()).change { it.spent })
        }
    }

    @Test
    fun `a response is kept over restarts, and sent once in a window`() {
        val storage = MemoryStorage()
        // These draws make the first response noise, and let no later report replace it.
        val first = device("kept", StoredLedger(storage), Always(0)).payload(ONCE, NOW, null)
        val later = device("kept", StoredLedger(storage), Always(SAFE - 1)).payload(ONCE, NOW + HOUR_MS, null)
        assertEquals(0, (first as Payload.Symbol).number)
        assertEquals(0, (later as Payload.Symbol).number)
        assertFailsWith<IllegalStateException> {
            device("kept", StoredLedger(storage)).payload(ONCE, NOW + HOUR_MS + 1, null)
        }
    }

    @Test
    fun `spendings of an hour are one, and keep their sum`() {
        val spent = (0 until 10).fold(emptyList<Spent>()) { all, i -> record(all, 0.5, NOW + i * HOUR_MS / 5) }
        assertEquals(2, spent.size)
        assertEquals(5.0, spent.sumOf(Spent::epsilon))
    }

    @Test
    fun `errors name no value`() {
        val hidden = device("survey", StoredLedger(MemoryStorage()))
        val error = assertFailsWith<IllegalArgumentException> { hidden.report(Value.Text("secret")) }
        assertEquals("a value is no label of the domain", error.message)
        assertFailsWith<IllegalArgumentException> { Device(table("survey")) } // a budget needs a ledger
    }

    @Test
    fun `a batch has the columns of its reports`() {
        val reports = listOf(Report(ByteArray(16) { 1 }, NOW, Payload.Symbol(2)), Report(ByteArray(16) { 2 }, -1, Payload.Symbol(0)))
        val bytes = batch("c", 1, reports)
        val columns = bytesOf("20" + "01".repeat(16) + "02".repeat(16)).drop(1)
        assertContentEquals(bytesOf("c3013008a78dd07701ed" + "0263" + "02" + "40") + columns, bytes.copyOf(46))
        assertContentEquals(bytesOf("00" + "10" + "02000000" + "00000000"), bytes.takeLast(10).toByteArray())
    }

    private fun device(name: String, ledger: Ledger, draws: Draws = SystemDraws()) =
        Device(table(name), ledger = ledger, skewMs = null, draws = draws)

    private companion object {
        val ONCE = mapOf("" to Value.Text("once"))
    }
}

/** Draws one number, or the largest one below a smaller limit. */
private class Always(private val number: Long) : Draws {
    override fun below(limit: Long): Long = minOf(number, limit - 1)

    override fun wide(): Long = number
}
