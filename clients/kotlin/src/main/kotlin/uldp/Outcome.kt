package uldp

/** What became of a message in one attempt. */
public sealed interface Outcome {
    /** The server has the message. */
    public data object Taken : Outcome

    /** The server will never count the message, which is dropped. */
    public data class Refused(
        /** The text of the server. */
        val reason: String,
    ) : Outcome

    /** The message waits for another attempt: the server does not take it now, or did not answer. */
    public data class Again(
        /** The time of the next attempt, in milliseconds since 1970. */
        val at: Long,
    ) : Outcome

    /** The message waits until you have mended something, such as the URL or the token: all others would get the same. */
    public data class NeedsYou(
        /** The status of the answer. */
        val status: Int,
        /** The text of the server. */
        val text: String,
    ) : Outcome
}

/** What a round has done, and what it leaves. */
public data class Flushed(
    /** How many messages the server has taken. */
    val taken: Int,
    /** How many it will never count. */
    val refused: Int,
    /** How many wait now. */
    val waiting: Int,
    /** When to call `flush` again, in milliseconds since 1970; null if no message waits, or all of them wait for you. */
    val again: Long?,
    /** What you have to mend before another message is taken; null if nothing. */
    val needsYou: Outcome.NeedsYou?,
)
