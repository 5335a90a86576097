package uldp

import java.io.IOException
import java.security.MessageDigest

private const val FORMAT = 1
private val TEXT = Regex("uldp (\\d{1,9}) ([^ \n]+) ([0-9a-f]{64})\n(.*)", RegexOption.DOT_MATCHES_ALL)

/** An entry of a store holds something else than what was written: a disk, a backup or another program has changed it. */
public class DamagedException internal constructor(
    /** The name of the entry. */
    public val entry: String,
    /** The entry that holds what was found, if a new queue has begun; null for a ledger, which stays as it is. */
    public val keptAs: String?,
    remedy: String,
) : IOException("the entry $entry of a store is damaged, or is another one; $remedy")

/** A later version of this client has written an entry of a store. */
public class LaterVersionException internal constructor(
    /** The name of the entry. */
    public val entry: String,
) : IOException("a later version of this client has written the entry $entry of a store; use that version")

/** The text of an entry: a line with the version of the format, its name and a checksum of all else, and the body. */
internal fun sealed(name: String, body: String, format: Int = FORMAT): String =
    "uldp $format $name ${checksum(format, name, body)}\n$body"

/** The body of an entry; null if its text is damaged, or that of another entry. */
internal fun opened(name: String, text: String): String? {
    val (format, named, checksum, body) = TEXT.matchEntire(text)?.destructured ?: return null
    if (named != name || checksum != checksum(format.toInt(), name, body)) return null
    if (format.toInt() != FORMAT) throw LaterVersionException(name)
    return body
}

private fun checksum(format: Int, name: String, body: String): String = sha256("$format $name\n$body")

internal fun sha256(text: String): String = hex(MessageDigest.getInstance("SHA-256").digest(text.toByteArray()))
