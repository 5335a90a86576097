export { BrowserStore } from "./browser.js";
export type { Clock, Uptime } from "./clock.js";
export { Device, type DeviceOptions, type Hidden, type Holding } from "./device.js";
export { type Draws, SystemDraws } from "./draws.js";
export type { By } from "./encoding.js";
export {
  BudgetExceededError,
  BusyError,
  ClockError,
  DamagedError,
  LaterVersionError,
  QueueFullError,
  UnsupportedError,
} from "./errors.js";
export { batch, message, type Report } from "./message.js";
export type { Payload } from "./perturb.js";
export { type Flushed, type Outcome, Sender, type SenderOptions } from "./sender.js";
export { type Edited, MemoryStore, type Store } from "./store.js";
export { supported } from "./support.js";
export type * from "./table.js";
