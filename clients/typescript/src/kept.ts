/** Permanent responses: what a device keeps of a value, and the noise that each report of it gets on top. */
import { type Draws, happens } from "./draws.js";
import type { Sym } from "./encoding.js";
import { joined, littleEndian, packed, pointsOf } from "./numbers.js";
import { at, bitsOf, enlarged, members, type Payload, perturb, wrapped } from "./perturb.js";
import type { Form, IntegersForm, KeptForm } from "./table.js";

/** Draws the permanent response to a symbol; of strata, that of its part. */
export function permanent(form: Form, symbol: Sym, draws: Draws): Payload {
  if (form.form === "strata") {
    const { part, own } = symbol as { part: number; own: Sym };
    return permanent(form.mechanisms[form.which[part]!]!, own, draws);
  }
  return perturb((form as KeptForm).permanent, symbol, draws);
}

/** Perturbs a permanent response into a payload, of the same symbol. */
export function again(form: Form, symbol: Sym, kept: Payload, draws: Draws): Payload {
  if (form.form === "strata") {
    const { part, own } = symbol as { part: number; own: Sym };
    return wrapped(form, part, again(form.mechanisms[form.which[part]!]!, own, kept, draws));
  }
  const { once, replace, set, clear } = form as KeptForm;
  if (replace !== undefined) {
    const replaced = happens(replace, draws);
    const anew = uniform(once, draws);
    return replaced ? anew : kept;
  }
  const size = (once as IntegersForm).size;
  const bytes = kept as Uint8Array;
  const head = bytes.slice(0, bytes.length - Math.ceil(size / 8));
  const bits = Array.from({ length: size }, (_, j) => {
    const one = ((bytes[head.length + (j >> 3)]! >> (7 - (j & 7))) & 1) === 1;
    return one !== happens(at(one ? clear! : set!, j), draws);
  });
  return once.form === "integers" ? enlarged(once, bits, draws) : joined(head, packed(bits));
}

/** Draws a payload uniformly from those of noise. */
function uniform(form: Form, draws: Draws): Payload {
  switch (form.form) {
    case "response":
      return form.sensitive === null ? draws.below(form.size) : form.sensitive[draws.below(form.sensitive.length)]!;
    case "subset": {
      const found = members(form.sensitive?.length ?? form.size, form.chosen, draws);
      return bitsOf(form.sensitive === null ? found : found.map((place) => form.sensitive![place]!), form.size);
    }
    case "set":
      return bitsOf(members(form.size, form.chosen, draws), form.size);
    case "design":
      return draws.below(form.blocks);
    case "hash":
    case "hits":
      return joined(littleEndian(draws.below(2 ** 32), 4), littleEndian(draws.below(form.buckets), 2));
    case "row":
      return draws.below(2 * form.rows);
    case "linear":
      return draws.below(pointsOf(form.g, form.m) * form.g);
    case "point":
      return draws.below(pointsOf(form.g, form.m));
    case "bit":
      return draws.below(2);
    case "interval":
      return draws.below(form.grid + form.width);
    case "cohort":
      return draws.below(form.cohorts * form.buckets);
    default:
      throw new Error(`${form.form} has no uniform payload`);
  }
}
