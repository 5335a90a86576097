/** The randomness of a device. Each report takes the same number of draws, whatever the device holds. */
export interface Draws {
  /** Draws an integer uniformly from 0 to `limit` - 1, for a limit up to 2^53. */
  below(limit: number): number;
  /** Draws an integer uniformly below 2^62. */
  wide(): bigint;
}

const SAFE = 2 ** 53;

/** The cryptographic randomness of the browser or of Node. */
export class SystemDraws implements Draws {
  private readonly words = new Uint32Array(256);
  private used = 256;

  below(limit: number): number {
    // Numbers beyond the last whole multiple of the limit would favour small remainders, so they are drawn again.
    const end = SAFE - (SAFE % limit);
    let drawn: number;
    do drawn = (this.word() >>> 11) * 2 ** 32 + this.word();
    while (drawn >= end);
    return drawn % limit;
  }

  wide(): bigint {
    return (BigInt(this.word() >>> 2) << 32n) | BigInt(this.word());
  }

  private word(): number {
    if (this.used === this.words.length) {
      crypto.getRandomValues(this.words);
      this.used = 0;
    }
    const word = this.words[this.used]!;
    this.words[this.used++] = 0; // so that nobody finds it in memory later
    return word;
  }
}

/** Draws for the encoding of a device that is to choose the same each time: those that it kept, and then new ones. */
export class KeptDraws implements Draws {
  readonly made: number[] = [];

  constructor(
    private readonly kept: readonly number[],
    private readonly draws: Draws,
  ) {}

  below(limit: number): number {
    const drawn = this.draws.below(limit);
    const number = this.kept[this.made.length] ?? drawn;
    this.made.push(number);
    return number;
  }

  wide(): bigint {
    throw new Error("an encoding draws no wide integers");
  }
}

/** Draws whether an event happens, of which the table has the probability as an integer up to 2^53. */
export const happens = (threshold: number, draws: Draws): boolean => draws.below(SAFE) < threshold;
