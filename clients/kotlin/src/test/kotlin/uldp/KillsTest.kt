package uldp

import java.io.File
import java.util.concurrent.Callable
import java.util.concurrent.Executors
import kotlin.test.Test
import org.junit.jupiter.api.io.TempDir

/** A small part of what tests/clients/test_clients.py runs. */
internal class KillsTest {
    @TempDir
    lateinit var folder: File

    @Test
    fun `two JVMs that are killed share a folder, and two others a database`() {
        val pool = Executors.newCachedThreadPool()
        val runs = listOf("file", "sqlite").map { kind ->
            pool.submit(Callable { Kills.run(File(folder, kind).apply { mkdir() }, kind, 25, seed = 1) })
        }
        runs.forEach { println(it.get()) }
        pool.shutdown()
    }
}
