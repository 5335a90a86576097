package uldp

import java.security.MessageDigest

private const val FORMAT = "1"

/** A text is not that of the entry where it was found. */
internal class DamageException(message: String) : Exception(message)

/** The text of an entry: a line with the version of the format, its name and a checksum of name and body, and the body. */
internal fun sealed(name: String, body: String): String = "uldp $FORMAT $name ${checksum(name, body)}\n$body"

/** The body of an entry, unless its text is damaged, of another entry, or of another version. */
internal fun opened(name: String, text: String): String {
    val head = text.substringBefore('\n').split(' ')
    val body = text.substringAfter('\n', "")
    if (head.size != 4 || head[0] != "uldp") throw DamageException("it does not begin as an entry does")
    if (head[1] != FORMAT) throw DamageException("another version of uldp has written it, so use that version")
    if (head[2] != name) throw DamageException("it is that of another entry")
    if (head[3] != checksum(name, body)) throw DamageException("its checksum is wrong")
    return body
}

private fun checksum(name: String, body: String): String = sha256("$name\n$body")

internal fun sha256(text: String): String = hex(MessageDigest.getInstance("SHA-256").digest(text.toByteArray()))
