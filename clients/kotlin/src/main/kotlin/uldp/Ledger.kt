package uldp

import java.io.File
import java.io.FileOutputStream
import java.nio.channels.FileChannel
import java.nio.file.Files
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.nio.file.StandardOpenOption.READ
import java.security.MessageDigest
import java.security.SecureRandom
import java.sql.Connection
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json

/** What a device remembers: its permanent responses, its windows, and what its user has spent. As secret as the values. */
@Serializable
public class LedgerContent internal constructor(
    /** Random bytes in each key, so that nobody who reads keys alone can find values by hashing all of a domain. */
    internal val salt: String = hex(randomBytes(16)),
    internal val kept: MutableMap<String, String> = mutableMapOf(),
    internal var spent: List<Spent> = emptyList(),
) {
    internal fun key(vararg names: Any): String =
        hex(MessageDigest.getInstance("SHA-256").digest((salt + names.joinToString("\u0000")).toByteArray()))
}

/** All collections of a user share one ledger. A device that loses it spends all budgets once more. */
public interface Ledger {
    /** Gives the content to one device at a time. The change is durable when this returns, or is not made if it throws. */
    public fun <T> change(edit: (LedgerContent) -> T): T
}

/** Where a ledger or a queue keeps its text. */
public interface Storage {
    /** Returns the text; null if none was written. */
    public fun read(): String?

    /** Replaces the text, durably and at once. */
    public fun write(text: String)
}

/** A ledger in a storage. Its changes wait for each other within this object: use one object for a storage. */
public class StoredLedger(private val storage: Storage) : Ledger {
    override fun <T> change(edit: (LedgerContent) -> T): T = synchronized(this) {
        val content = storage.read()?.let { Json.decodeFromString(LedgerContent.serializer(), it) } ?: LedgerContent()
        edit(content).also { storage.write(Json.encodeToString(LedgerContent.serializer(), content)) }
    }
}

/** A storage that a restart forgets, for tests. */
public class MemoryStorage : Storage {
    private var text: String? = null

    override fun read(): String? = text

    override fun write(text: String) {
        this.text = text
    }
}

/** A file that only its owner may read. One process uses it at a time. */
public class FileStorage(private val file: File) : Storage {
    override fun read(): String? = if (file.exists()) file.readText() else null

    /** Writes the file aside, synchronizes and renames it, so that a crash leaves it as before or after. */
    override fun write(text: String) {
        val aside = File("$file.new")
        aside.delete()
        aside.createNewFile()
        aside.setReadable(false, false)
        aside.setReadable(true, true)
        FileOutputStream(aside).use {
            it.write(text.toByteArray())
            it.fd.sync()
        }
        Files.move(aside.toPath(), file.toPath(), ATOMIC_MOVE)
        FileChannel.open(file.absoluteFile.parentFile.toPath(), READ).use { it.force(true) }
    }
}

/** A row of the table `uldp` of a database, such as SQLite, which [connect] opens; processes wait for each other there. */
public class SqlStorage(private val name: String, private val connect: () -> Connection) : Storage {
    override fun read(): String? = connect().use { connection ->
        create(connection)
        connection.prepareStatement("SELECT text FROM uldp WHERE name = ?").use {
            it.setString(1, name)
            it.executeQuery().run { if (next()) getString(1) else null }
        }
    }

    override fun write(text: String): Unit = connect().use { connection ->
        create(connection)
        connection.autoCommit = false
        for (statement in listOf("UPDATE uldp SET text = ? WHERE name = ?", "INSERT INTO uldp (text, name) VALUES (?, ?)")) {
            val rows = connection.prepareStatement(statement).use {
                it.setString(1, text)
                it.setString(2, name)
                it.executeUpdate()
            }
            if (rows == 1) break
        }
        connection.commit()
    }

    private fun create(connection: Connection) {
        connection.createStatement().use {
            it.execute("CREATE TABLE IF NOT EXISTS uldp (name VARCHAR(100) PRIMARY KEY, text TEXT NOT NULL)")
        }
    }
}

internal fun randomBytes(count: Int): ByteArray = ByteArray(count).also(SecureRandom()::nextBytes)
