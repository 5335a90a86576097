package uldp

import java.io.IOException
import java.sql.Connection
import java.sql.SQLException
import javax.sql.DataSource

private const val WAIT_MS = 30_000

/**
 * Rows of the table `uldp` in a database of SQLite, such as `SQLiteDataSource` of `org.xerial:sqlite-jdbc` opens; the first
 * change creates the table. A change is one transaction, `BEGIN IMMEDIATE`, which waits for others for half a minute.
 *
 * Other databases are refused: no test has shown that their transactions keep two processes apart.
 */
public class SqliteStore(private val database: DataSource) : Store {
    @Throws(IOException::class)
    override fun <T> change(name: String, edit: (String?) -> Edited<T>): T = try {
        database.connection.use { connection ->
            val product = connection.metaData.databaseProductName
            require(product == "SQLite") { "a SqliteStore needs a database of SQLite, not of $product" }
            connection.run("PRAGMA busy_timeout = $WAIT_MS")
            connection.run("PRAGMA synchronous = EXTRA") // a power cut undoes nothing
            connection.run("BEGIN IMMEDIATE")
            try {
                connection.edited(name, edit).also { connection.run("COMMIT") }
            } catch (error: Throwable) {
                connection.run("ROLLBACK")
                throw error
            }
        }
    } catch (error: SQLException) {
        throw IOException("the database of a store failed: ${error.message}", error)
    }

    private fun <T> Connection.edited(name: String, edit: (String?) -> Edited<T>): T {
        run("CREATE TABLE IF NOT EXISTS uldp (name TEXT PRIMARY KEY, text TEXT NOT NULL)")
        val text = prepareStatement("SELECT text FROM uldp WHERE name = ?").use {
            it.setString(1, name)
            it.executeQuery().run { if (next()) getString(1) else null }
        }
        val edited = edit(text)
        if (edited.text != null) {
            prepareStatement("REPLACE INTO uldp (name, text) VALUES (?, ?)").use {
                it.setString(1, name)
                it.setString(2, edited.text)
                it.executeUpdate()
            }
        }
        return edited.result
    }

    private fun Connection.run(statement: String): Unit = createStatement().use { it.execute(statement) }
}
