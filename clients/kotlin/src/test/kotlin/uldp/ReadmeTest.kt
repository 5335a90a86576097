package uldp

import com.sun.net.httpserver.HttpServer
import java.io.File
import java.net.InetAddress
import java.net.InetSocketAddress
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import org.junit.jupiter.api.io.TempDir

/** The programs of README are among the tests, in Kotlin and in Java: they compile by the classes alone, and they run. */
internal class ReadmeTest {
    @TempDir
    lateinit var folder: File

    private val readme = File("README.md").readText()

    @Test
    fun `README shows the program in Kotlin, and names the one in Java`() {
        assertEquals(File("src/test/kotlin/Device.kt").readText(), readme.substringAfter("```kotlin\n").substringBefore("```"))
        assertContains(readme, "(src/test/java/JavaDevice.java)")
        assertEquals(true, File("src/test/java/JavaDevice.java").exists())
    }

    @Test
    fun `both programs report`() {
        File("src/test/resources/places.json").copyTo(File(folder, "places.json"))
        val received = mutableListOf<Int>()
        val server = HttpServer.create(InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0)
        server.createContext("/v1/reports") { exchange ->
            received += exchange.requestBody.readBytes().size
            exchange.sendResponseHeaders(202, -1)
            exchange.close()
        }
        server.start()
        try {
            for (name in listOf("DeviceKt", "JavaDevice")) {
                val running = java(folder, name, "http://127.0.0.1:${server.address.port}").start()
                val printed = running.inputStream.bufferedReader().readText()
                assertEquals(0, running.waitFor(), printed)
                assertContains(printed, Regex("^[0-9a-f]{32}: Taken\nFlushed\\(taken=1, refused=0, waiting=0, again=null, needsYou=null\\)\n$"))
            }
        } finally {
            server.stop(0)
        }
        assertEquals(2, received.size)
    }
}

/** Another JVM that runs a program of the tests in a folder, and starts fast. */
internal fun java(folder: File, vararg command: String): ProcessBuilder {
    val java = File(System.getProperty("java.home"), "bin/java").path
    val path = System.getProperty("java.class.path").split(File.pathSeparator).joinToString(File.pathSeparator) { File(it).absolutePath }
    val options = listOf("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir=$folder", "-cp", path)
    return ProcessBuilder(listOf(java) + options + command).directory(folder).redirectErrorStream(true)
}
