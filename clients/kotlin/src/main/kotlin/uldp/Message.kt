@file:JvmName("Messages")

package uldp

private val HEADER = bytesOf("c301e6a3dbfe76e5d390")
private val BATCH_HEADER = bytesOf("c3013008a78dd07701ed")

/** Avro's varint: zigzag, and 7 bits a byte, low bits first. */
private fun varint(number: Long): ByteArray {
    var rest = (number shl 1) xor (number shr 63)
    val bytes = mutableListOf<Byte>()
    while (rest and 0x7f.inv() != 0L) {
        bytes += ((rest and 0x7f) or 0x80).toByte()
        rest = rest ushr 7
    }
    return (bytes + rest.toByte()).toByteArray()
}

private fun measured(bytes: ByteArray): ByteArray = varint(bytes.size.toLong()) + bytes

/** A report before it is encoded: an id of 16 random bytes, milliseconds since 1970, and the payload. */
public class Report(internal val id: ByteArray, internal val time: Long, internal val payload: Payload)

/** Encodes a report: Avro's single-object encoding of report.avsc. */
public fun message(collection: String, version: Int, report: Report): ByteArray {
    val own = when (val payload = report.payload) {
        is Payload.Symbol -> byteArrayOf(0) + varint(payload.number)
        is Payload.Bytes -> byteArrayOf(2) + measured(payload.bytes)
    }
    return HEADER + measured(collection.toByteArray()) + varint(version.toLong()) + report.id + varint(report.time) + own
}

/** Encodes reports of one collection and version as columns: a message for gateways, which links these reports. */
public fun batch(collection: String, version: Int, reports: List<Report>): ByteArray {
    val ids = joined(reports.map(Report::id))
    val times = joined(reports.map { littleEndian(it.time, 8) })
    val symbols = reports.all { it.payload is Payload.Symbol }
    val payloads = joined(
        reports.map {
            when (val payload = it.payload) {
                is Payload.Symbol -> littleEndian(payload.number, 4)
                is Payload.Bytes -> payload.bytes
            }
        },
    )
    val head = BATCH_HEADER + measured(collection.toByteArray()) + varint(version.toLong())
    return head + measured(ids) + measured(times) + (if (symbols) 0 else 2).toByte() + measured(payloads)
}

private fun joined(parts: List<ByteArray>): ByteArray =
    ByteArray(parts.sumOf(ByteArray::size)).also { whole ->
        parts.fold(0) { at, part -> (at + part.size).also { part.copyInto(whole, at) } }
    }
