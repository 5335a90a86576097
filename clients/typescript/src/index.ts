export { Device, type DeviceOptions, type Hidden, type Holding } from "./device.js";
export { type Draws, SystemDraws } from "./draws.js";
export type { By } from "./encoding.js";
export {
  BrowserLedger,
  BrowserStorage,
  type Ledger,
  type LedgerContent,
  MemoryStorage,
  type Storage,
  StoredLedger,
} from "./ledger.js";
export { batch, message, type Report } from "./message.js";
export type { Payload } from "./perturb.js";
export { Sender, type SenderOptions, type Sent } from "./sender.js";
export { BudgetExceededError } from "./spending.js";
export type * from "./table.js";
