/** Whether this page has what a device needs: a secure context, and IndexedDB that can be opened. */
import { opened } from "./browser.js";
import { UnsupportedError } from "./errors.js";

/** Says in a sentence why a page cannot report and keep what it must; null if it can. Ask it first. */
export async function supported(): Promise<string | null> {
  try {
    needCrypto();
    (await opened("uldp")).close();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Refuses a page that is no secure context: browsers give it no hashes. */
export function needCrypto(): void {
  if (typeof crypto !== "object" || !crypto.getRandomValues || !crypto.subtle)
    throw new UnsupportedError("this page has no crypto.subtle and crypto.getRandomValues: serve it by HTTPS or from localhost");
}
