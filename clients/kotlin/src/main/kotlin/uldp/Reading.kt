package uldp

import kotlin.math.abs
import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.KSerializer
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

private const val DEEPEST = 64
private val FORMS = Json { classDiscriminator = "form" }

/** The keys of a table whose numbers no text may stand for; columns have texts, and further keys are not read. */
private val NUMBERS = listOf("version", "slice_ms", "offset_ms", "window_ms", "spends", "spends_at_level", "budget", "encoding", "mechanism")
private val FRACTIONS = setOf("low", "high", "epsilon", "lasting")
private val TEXTS = setOf("form", "levels", "by")

@OptIn(ExperimentalSerializationApi::class)
private fun names(of: KSerializer<*>): Iterable<String> = List(of.descriptor.getElementDescriptor(1).elementsCount) {
    of.descriptor.getElementDescriptor(1).getElementName(it)
}

private val KNOWN: Set<String> =
    listOf(Form.serializer(), EncodingForm.serializer(), Choice.serializer(), MapForm.serializer()).flatMap(::names).toSet()

/** Reads a table, and refuses one that this client cannot follow exactly. It guesses nothing: without its threshold, noise would be truth. */
internal fun tableOf(json: String): Table {
    checkDepth(json)
    val tree = try {
        Json.parseToJsonElement(json)
    } catch (_: SerializationException) {
        null
    } as? JsonObject ?: refuse("it is no JSON mapping")
    val format = tree["format"]
    require(format == JsonPrimitive(1)) { "this client reads tables of format 1, not ${shown(format)}; update it" }
    for (key in NUMBERS) tree[key]?.let { checkNumbers(it, key, key) }
    val table = try {
        FORMS.decodeFromJsonElement(Table.serializer(), tree)
    } catch (error: IllegalArgumentException) {
        refuse(error.message.orEmpty().lineSequence().first())
    }
    checkFits(table.encoding, table.mechanism, table.kept)
    if (digestOf(tree) != table.digest) refuse("digest is that of another table; fetch the table again")
    return table
}

private fun refuse(what: String): Nothing = throw IllegalArgumentException("the device table is wrong: $what")

private fun shown(node: Any?): String = node.toString().take(40)

/** The parser calls itself for each bracket, so their number is bounded before it runs. */
private fun checkDepth(json: String) {
    var depth = 0
    var isText = false
    var isEscaped = false
    for (each in json) {
        when {
            isEscaped -> isEscaped = false
            isText -> if (each == '\\') isEscaped = true else isText = each != '"'
            each == '"' -> isText = true
            each in "[{" -> if (++depth > DEEPEST) refuse("it goes on too deep")
            each in "]}" -> depth--
        }
    }
}

/** Refuses forms that are unknown, texts in place of numbers, which the decoder would read, and fractions in place of integers. */
private fun checkNumbers(node: JsonElement, key: String, where: String) {
    when (node) {
        is JsonObject -> {
            val form = node["form"]
            if (form is JsonPrimitive && form.content !in KNOWN) {
                refuse("$where has the form ${shown(form)}, which this client does not know; update it")
            }
            for ((name, value) in node) {
                val isText = name in TEXTS || (name == "ends" && form == JsonPrimitive("near"))
                if (!isText) checkNumbers(value, name, "$where.$name")
            }
        }
        is JsonArray -> node.forEachIndexed { at, each -> checkNumbers(each, key, "$where[$at]") }
        is JsonNull -> Unit
        is JsonPrimitive -> {
            val number = if (node.isString) null else node.content.toDoubleOrNull()
            if (number == null || !number.isFinite()) refuse("$where is ${shown(node)}, and no number")
            if (key !in FRACTIONS && (number % 1 != 0.0 || abs(number) > SAFE)) refuse("$where is ${shown(node)}, and no integer up to $SAFE")
        }
    }
}

/** The name of all that a table says. */
internal fun digestOf(tree: JsonObject): String = sha256(canonical(JsonObject(tree - "digest"))).take(16)

/** JSON with the keys of mappings in order, and each number as the hexadecimal digits of its 64 bits. */
private fun canonical(node: JsonElement): String = when (node) {
    is JsonObject -> node.keys.sorted().joinToString(",", "{", "}") { "${JsonPrimitive(it)}:${canonical(node.getValue(it))}" }
    is JsonArray -> node.joinToString(",", "[", "]", transform = ::canonical)
    is JsonPrimitive -> node.content.takeIf { !node.isString }?.toDoubleOrNull()?.let { "\"%016x\"".format(it.toRawBits()) } ?: node.toString()
}

/** Refuses an encoding whose symbols are not those of a mechanism. */
private fun checkFits(encoding: EncodingForm, mechanism: Form, kept: Boolean) {
    if (encoding is EncodingForm.Strata) {
        if (mechanism !is Form.Strata || mechanism.which.size != encoding.base.size) refuse("mechanism has not the parts of the encoding")
        encoding.base.forEachIndexed { part, base ->
            checkFits(encoding.bases[base].encoding, mechanism.mechanisms[mechanism.which[part]], kept)
        }
        return
    }
    if (kept != mechanism is Form.Kept) refuse("kept is not as the mechanism has it")
    val own = if (mechanism is Form.Kept) mechanism.permanent else mechanism
    val ofMany = encoding is EncodingForm.Items || encoding is EncodingForm.Signed
    val ofStrings = encoding is EncodingForm.Texts
    if (ofStrings != (own is Form.CohortHits) || ofMany != (own is Form.Items || own is Form.Hits) || own is Form.Kept || own is Form.Strata) {
        refuse("mechanism does not fit the encoding")
    }
}
