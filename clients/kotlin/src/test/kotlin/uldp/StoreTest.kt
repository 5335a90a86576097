package uldp

import java.io.File
import java.io.IOException
import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions
import javax.sql.DataSource
import kotlin.concurrent.thread
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import org.junit.jupiter.api.io.TempDir

internal class StoreTest {
    @TempDir
    lateinit var folder: File

    private fun each(run: (() -> Store) -> Unit) = listOf("file", "sqlite").forEach { kind -> run { opened(kind, folder) } }

    @Test
    fun `what is written is read after a restart, each entry by its name`() = each { open ->
        assertEquals(null, open().textAt("ledger"))
        for (text in listOf("{}", "{\"é\": \"'\"}", "")) {
            open().put("ledger", text)
            open().put("queue", "other")
            assertEquals(listOf(text, "other"), listOf(open().textAt("ledger"), open().textAt("queue")))
        }
    }

    @Test
    fun `an edit that throws changes nothing`() = each { open ->
        open().put("ledger", "as it was")
        assertFailsWith<IllegalStateException> { open().change<Unit>("ledger") { error("no") } }
        assertEquals("as it was", open().textAt("ledger"))
    }

    @Test
    fun `threads change an entry one after the other, each by a store of its own`() = each { open ->
        val threads = List(4) { thread { repeat(10) { open().change("ledger") { Edited("${(it ?: "0").toInt() + 1}", Unit) } } } }
        threads.forEach(Thread::join)
        assertEquals("40", open().textAt("ledger"))
    }

    @Test
    fun `only its owner reads a folder and its files`() {
        opened("file", folder).put("ledger", "{}")
        fun modes(name: String) = PosixFilePermissions.toString(Files.getPosixFilePermissions(File(folder, name).toPath()))
        assertEquals(listOf("rwx------", "rw-------", "rw-------"), listOf("store", "store/ledger", "store/store.lock").map(::modes))
    }

    @Test
    fun `the remains of a crash are overwritten`() {
        opened("file", folder).put("ledger", "1")
        File(folder, "store/ledger.new").writeText("half of")
        opened("file", folder).put("ledger", "2")
        assertEquals("2", opened("file", folder).textAt("ledger"))
    }

    @Test
    fun `a link leads to one store`() {
        opened("file", folder).put("ledger", "1")
        val link = Files.createSymbolicLink(File(folder, "link").toPath(), File(folder, "store").toPath())
        assertEquals("1", FileStore(link.toFile()).textAt("ledger"))
    }

    @Test
    fun `a change in a change is refused, and so is a name that is a path`() {
        val store = opened("file", folder)
        assertFailsWith<IllegalStateException> { store.change("ledger") { Edited("", store.put("queue", "")) } }
        for (name in listOf("../ledger", "", ".", "A", "a/b", "store.lock", "ledger.new")) assertFailsWith<IllegalArgumentException> { store.textAt(name) }
    }

    @Test
    fun `a folder that cannot be is an IOException, and so is a file that is no database`() {
        File(folder, "store").writeText("a file")
        File(folder, "store.db").writeText("no database of SQLite, but a text that is longer than the head of one: " + "x".repeat(100))
        each { open -> assertFailsWith<IOException> { open().textAt("ledger") } }
    }

    @Test
    fun `another database than SQLite is refused`() {
        val meta = proxy<java.sql.DatabaseMetaData> { "H2" }
        val connection = proxy<java.sql.Connection> { if (it == "getMetaData") meta else null }
        val error = assertFailsWith<IllegalArgumentException> { SqliteStore(proxy<DataSource> { connection }).textAt("ledger") }
        assertContains(error.message!!, "not of H2")
    }

    @Test
    fun `an entry is that of its place and its version, and whole`() {
        val text = sealed("ledger", "{\"é\":1}")
        assertEquals("{\"é\":1}", opened("ledger", text))
        assertEquals(null, opened("queue", text))
        for (at in text.indices) {
            for (other in listOf(text.take(at), text.replaceRange(at, at + 1, "~"))) assertEquals(null, opened("ledger", other))
        }
        assertEquals(null, opened("ledger", text.replaceFirst("uldp 1", "uldp 2")))
        assertFailsWith<LaterVersionException> { opened("ledger", sealed("ledger", "{}", format = 2)) }
    }

    private inline fun <reified T> proxy(crossinline answer: (String) -> Any?): T =
        java.lang.reflect.Proxy.newProxyInstance(javaClass.classLoader, arrayOf(T::class.java)) { _, method, _ -> answer(method.name) } as T
}
