package uldp

/** Draws the permanent response to a symbol; of strata, that of its part. */
internal fun permanent(form: Form, symbol: Sym, draws: Draws): Payload = when (form) {
    is Form.Strata -> (symbol as Sym.OfPart).let { permanent(form.mechanisms[form.which[it.part]], it.own, draws) }
    else -> perturb((form as Form.Kept).permanent, symbol, draws)
}

/** Perturbs a permanent response into a payload, of the same symbol. */
internal fun again(form: Form, symbol: Sym, kept: Payload, draws: Draws): Payload {
    if (form is Form.Strata) {
        val (part, own) = symbol as Sym.OfPart
        return wrapped(form, part, again(form.mechanisms[form.which[part]], own, kept, draws))
    }
    form as Form.Kept
    if (form.replace != null) {
        val replaced = draws.happens(form.replace)
        val anew = uniform(form.once, draws)
        return if (replaced) anew else kept
    }
    val size = checkNotNull(form.once.bits)
    val bytes = (kept as Payload.Bytes).bytes
    val head = bytes.size - (size + 7) / 8
    val bits = BooleanArray(size) { j ->
        val one = (bytes[head + j / 8].toInt() ushr (7 - j % 8)) and 1 == 1
        one != draws.happens(at(if (one) form.clear else form.set, j))
    }
    val once = form.once
    return Payload.Bytes(if (once is Form.Integers) enlarged(once, bits, draws) else bytes.copyOf(head) + packed(bits))
}

/** Draws a payload uniformly from those of noise. */
private fun uniform(form: Form, draws: Draws): Payload = when (form) {
    is Form.Response -> draws.below((form.sensitive?.size ?: form.size).toLong()).let {
        Payload.Symbol(form.sensitive?.get(it.toInt())?.toLong() ?: it)
    }
    is Form.Subset -> {
        val found = members(form.sensitive?.size ?: form.size, form.chosen, draws)
        Payload.Bytes(bitsOf(found.map { form.sensitive?.get(it) ?: it }, form.size))
    }
    is Form.Items -> Payload.Bytes(bitsOf(members(form.size, form.chosen, draws), form.size))
    is Form.Design -> Payload.Symbol(draws.below(form.blocks.toLong()))
    is Form.Hash -> bucket(form.buckets, draws)
    is Form.Hits -> bucket(form.buckets.toLong(), draws)
    is Form.Row -> Payload.Symbol(draws.below(2 * form.rows))
    is Form.Linear -> Payload.Symbol(draws.below(pointsOf(form.g, form.m) * form.g))
    is Form.Point -> Payload.Symbol(draws.below(pointsOf(form.g, form.m)))
    is Form.Bit -> Payload.Symbol(draws.below(2))
    is Form.Interval -> Payload.Symbol(draws.below(form.grid + form.width))
    is Form.Cohort -> Payload.Symbol(draws.below(form.cohorts * form.buckets))
    else -> error("this mechanism has no uniform payload")
}

private fun bucket(buckets: Long, draws: Draws): Payload =
    Payload.Bytes(littleEndian(draws.below(1L shl 32), 4) + littleEndian(draws.below(buckets), 2))
