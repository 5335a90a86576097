// A process of a test that shares a store of files. Usage: node test/process.mjs FOLDER URL
import * as client from "uldp-client";
import { FileStore } from "uldp-client/node";
import { work } from "./work.mjs";

const [folder, url] = process.argv.slice(2);
await work(client, new FileStore(folder), url);
