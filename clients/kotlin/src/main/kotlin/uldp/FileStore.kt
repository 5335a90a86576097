package uldp

import java.io.File
import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.charset.CharacterCodingException
import java.nio.file.Files
import java.nio.file.NoSuchFileException
import java.nio.file.Path
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.nio.file.StandardOpenOption.CREATE
import java.nio.file.StandardOpenOption.READ
import java.nio.file.StandardOpenOption.WRITE
import java.nio.file.attribute.FileAttribute
import java.nio.file.attribute.PosixFilePermissions

// No dot, so that no entry is the lock, or what is written aside.
private val NAME = Regex("[a-z0-9-]{1,100}")
private const val LOCK = "store.lock"

/**
 * A folder with a file for each entry, which only its owner may read; the first change creates it.
 *
 * A change waits for the lock of a file `store.lock` in the folder, which the system releases when a process ends. Nobody may
 * remove that file. The lock holds on one machine, so the folder may be on no network drive that several machines use.
 */
public class FileStore(folder: File) : Store {
    // Of a link, the folder behind it, so that a folder has one lock.
    private val folder: Path = folder.canonicalFile.toPath()
    private val isPosix = "posix" in this.folder.fileSystem.supportedFileAttributeViews()
    // The lock of a file is that of a whole JVM. Its class loaders share interned texts, and so this monitor.
    private val monitor = "uldp.FileStore ${this.folder}".intern()

    @Throws(IOException::class)
    override fun <T> change(name: String, edit: (String?) -> Edited<T>): T {
        require(NAME.matches(name)) { "an entry has a name of small letters, digits and -" }
        // To close the lock file a second time would release the lock of the outer change.
        check(!Thread.holdsLock(monitor)) { "an edit makes no other change of its store" }
        return synchronized(monitor) {
            if (!Files.isDirectory(folder)) {
                Files.createDirectories(folder, *modes("rwx------"))
                synchronize(folder.parent)
            }
            FileChannel.open(folder.resolve(LOCK), setOf(CREATE, WRITE), *modes("rw-------")).use { channel ->
                channel.lock()
                val edited = edit(read(folder.resolve(name)))
                edited.text?.let { write(name, it) }
                edited.result
            }
        }
    }

    private fun read(file: Path): String? {
        val bytes = try {
            Files.readAllBytes(file)
        } catch (_: NoSuchFileException) {
            return null
        }
        return try {
            Charsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString()
        } catch (_: CharacterCodingException) {
            String(bytes, Charsets.ISO_8859_1) // it is damaged; what is set aside has a character for each byte
        }
    }

    /** Writes a file aside, synchronizes and renames it, so that a crash leaves it as before or after. */
    private fun write(name: String, text: String) {
        val aside = folder.resolve("$name.new")
        Files.deleteIfExists(aside) // a crash may have left it
        FileChannel.open(Files.createFile(aside, *modes("rw-------")), WRITE).use { channel ->
            val bytes = ByteBuffer.wrap(text.toByteArray())
            while (bytes.hasRemaining()) channel.write(bytes)
            channel.force(true)
        }
        Files.move(aside, folder.resolve(name), ATOMIC_MOVE)
        synchronize(folder)
    }

    /** Writes what has changed in a folder to the disk: else a power cut could undo a renaming. Windows opens no folders. */
    private fun synchronize(folder: Path) {
        if (isPosix) FileChannel.open(folder, READ).use { it.force(true) }
    }

    private fun modes(text: String): Array<FileAttribute<*>> =
        if (isPosix) arrayOf(PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(text))) else emptyArray()
}
