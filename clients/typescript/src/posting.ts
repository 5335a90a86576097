/** One attempt to post a message. */

/** The answer of a server; the status is null if there was none in time, and 0 is a redirection that a browser hides. */
export interface Answer {
  status: number | null;
  text: string;
  /** How long the server asks to wait, with 429 and 503. */
  retryAfterMs: number | null;
  /** Whether it judged this message, and names the reason: it could take others of this sender now. */
  ofMessage: boolean;
}

/** More characters of an answer are not read. */
const LONGEST_TEXT = 1000;

/** The address to post to; throws RangeError if a URL is none of a server. */
export function reportsUrl(url: string): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new RangeError(`the URL of a server is ${JSON.stringify(url)}; write one such as https://collect.example`);
  }
  const { protocol, search, hash, username, password } = parsed;
  if (protocol !== "https:" && protocol !== "http:") throw new RangeError(`the URL of a server begins with ${protocol}, not with https: or http:`);
  if (search || hash || username || password || /[?#]/.test(url))
    throw new RangeError("the URL of a server has a query, a fragment or a password, which would be lost; leave them out");
  return `${parsed.href.replace(/\/+$/, "")}/v1/reports`;
}

/** Refuses a token that no header can hold: `fetch` would throw at each attempt, as if nobody answered. */
export function checkedToken(token: string | undefined): void {
  if (token !== undefined && !/^[\x21-\x7e]*$/.test(token)) throw new RangeError("the token has a space, or a character that is not of ASCII");
}

/** Posts a message once. */
export async function answerOf(url: string, message: Uint8Array, timeLimitMs: number, token: string | undefined, send: typeof fetch): Promise<Answer> {
  const headers: Record<string, string> = { "content-type": "application/octet-stream" };
  if (token) headers.authorization = `Bearer ${token}`;
  const ending = new AbortController();
  const { signal } = ending;
  const late = new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const timer = setTimeout(() => ending.abort(), timeLimitMs);
  try {
    // A redirection would post to an address that nobody has named.
    const posting = send(url, { method: "POST", headers, body: message as BodyInit, redirect: "manual", signal });
    const response = await Promise.race([posting, late]);
    const text = await Promise.race([textOf(response), late]).catch(() => "");
    const { status } = response;
    return { status, text, retryAfterMs: status === 429 || status === 503 ? retryAfter(response.headers) : null, ofMessage: hasReason(text) };
  } catch {
    return { status: null, text: "", retryAfterMs: null, ofMessage: false }; // the server may have the message, and copies are removed
  } finally {
    clearTimeout(timer);
  }
}

/** The beginning of the text of an answer. */
async function textOf(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (reader !== undefined && text.length < LONGEST_TEXT) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += decoder.decode(value, { stream: true });
  }
  void reader?.cancel();
  return text.slice(0, LONGEST_TEXT);
}

function hasReason(text: string): boolean {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === "object" && answer !== null && Object.hasOwn(answer, "reason");
  } catch {
    return false;
  }
}

/** Seconds, or a date less that of the answer, for the clock of a device may be wrong; null if it is neither. */
function retryAfter(headers: Headers): number | null {
  const asked = headers.get("retry-after") ?? "";
  if (/^\d+$/.test(asked)) return 1000 * Number(asked);
  const until = Date.parse(asked);
  const now = Date.parse(headers.get("date") ?? "") || Date.now();
  return until > now && /[a-z]/i.test(asked) ? until - now : null;
}
