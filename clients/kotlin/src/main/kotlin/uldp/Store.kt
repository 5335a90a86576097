package uldp

import java.io.IOException

/** Where a ledger and a queue keep their texts. One store may hold both, and processes and threads may share it. */
public interface Store {
    /**
     * Changes an entry, atomically: no other thread and no other process changes it meanwhile.
     *
     * @param name The name of the entry: small letters, digits and `-`.
     * @param edit Gets the text of the entry, null if there is none, and does nothing else than to return what becomes of
     *   it. If it throws, nothing has changed.
     * @return The result of the edit. The new text is durable when this returns.
     */
    @Throws(IOException::class)
    public fun <T> change(name: String, edit: (String?) -> Edited<T>): T
}

/** What an edit makes of an entry. */
public class Edited<out T>(
    /** The new text; null leaves the entry as it is. */
    public val text: String?,
    /** What the change returns. */
    public val result: T,
)

/** A store that a restart forgets, for tests. */
public class MemoryStore : Store {
    private val texts = mutableMapOf<String, String>()

    override fun <T> change(name: String, edit: (String?) -> Edited<T>): T = synchronized(this) {
        val edited = edit(texts[name])
        edited.text?.let { texts[name] = it }
        edited.result
    }
}
