// A headless Chromium with a profile of its own, driven over pipes by its DevTools protocol; it may be killed and started anew.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PROGRAM = "/usr/bin/chromium";
export const INSTALLED = existsSync(PROGRAM);
const OPTIONS = [
  "--headless=new",
  "--remote-debugging-pipe",
  "--no-sandbox",
  "--no-first-run",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-extensions",
  "--disable-background-networking",
  "--disable-background-timer-throttling",
  "--disable-renderer-backgrounding",
];

export class Browser {
  profile = mkdtempSync(join(tmpdir(), "uldp-"));
  child = null;
  calls = new Map();
  /** Whom the events of each tab tell, by the ids of its target and of its session. */
  tabs = new Map();
  last = 0;

  /** Calls a method of the protocol, in a session if one is given, in a browser that is started if need be. */
  call(method, params = {}, sessionId = undefined) {
    if (this.child === null) this.start();
    const id = ++this.last;
    this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.calls.set(id, { resolve, reject }));
  }

  start() {
    // Detached, so that its number is that of a group with all of its processes. It reads from 3, and writes to 4.
    const stdio = ["ignore", "ignore", "ignore", "pipe", "pipe"];
    const child = spawn(PROGRAM, [...OPTIONS, `--user-data-dir=${this.profile}`, "about:blank"], { detached: true, stdio });
    this.child = child;
    child.stdio[3].on("error", () => {}); // it was killed
    child.once("exit", () => {
      this.child = null;
      for (const { reject } of this.calls.values()) reject(new Error("the browser was killed"));
      for (const { ended } of this.tabs.values()) ended(false);
      this.calls.clear();
      this.tabs.clear();
    });
    let rest = "";
    child.stdio[4].setEncoding("utf8").on("data", (part) => {
      const messages = (rest + part).split("\0");
      rest = messages.pop();
      for (const message of messages) this.hear(JSON.parse(message));
    });
    this.call("Target.setDiscoverTargets", { discover: true }).catch(() => {});
  }

  hear({ id, result, error, method, params, sessionId }) {
    const call = this.calls.get(id);
    this.calls.delete(id);
    if (error) call?.reject(new Error(error.message));
    else call?.resolve(result);
    const tab = this.tabs.get(sessionId ?? params?.targetId);
    if (method === "Target.targetDestroyed") tab?.ended(false);
    if (method === "Target.targetCrashed") void tab?.close();
    if (method === "Runtime.bindingCalled") params.payload ? tab?.failed(new Error(params.payload)) : tab?.ended(true);
  }

  /** Opens a page. `done` is true once it has called `ended("")`, fails with another text, and is false if it was killed. */
  async tab(url) {
    const tab = { close() {}, crash() {}, reload() {} };
    tab.done = new Promise((ended, failed) => Object.assign(tab, { ended, failed }));
    const quietly = (method, params, session) => this.call(method, params, session).catch(() => {}); // it may have ended before
    try {
      const { targetId } = await this.call("Target.createTarget", { url: "about:blank" });
      this.tabs.set(targetId, tab);
      const { sessionId } = await this.call("Target.attachToTarget", { targetId, flatten: true });
      this.tabs.set(sessionId, tab);
      tab.close = () => quietly("Target.closeTarget", { targetId });
      tab.crash = () => quietly("Page.crash", {}, sessionId);
      tab.reload = () => quietly("Page.reload", {}, sessionId);
      tab.run = async (expression) => {
        const given = { expression, awaitPromise: true, returnByValue: true };
        const { result, exceptionDetails } = await this.call("Runtime.evaluate", given, sessionId);
        if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
        return result.value;
      };
      await this.call("Runtime.enable", {}, sessionId);
      await this.call("Runtime.addBinding", { name: "ended" }, sessionId);
      await this.call("Page.navigate", { url }, sessionId);
    } catch {
      tab.ended(false);
    }
    return tab;
  }

  async kill() {
    const { child } = this;
    if (child === null) return;
    const exit = once(child, "exit");
    process.kill(-child.pid, "SIGKILL");
    await exit;
  }

  async end() {
    await this.kill();
    rmSync(this.profile, { recursive: true, maxRetries: 5 });
  }
}
