// Tables for the tests, as `uldp device-table` writes them: one with a budget of a report in 30 days, one with kept responses.
import { readFileSync } from "node:fs";
import { digestOf } from "../dist/check.js";

const folder = new URL("../../kotlin/src/test/resources/", import.meta.url);
export const [survey, kept] = ["survey", "kept"].map((name) => JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8")));

/** A table with other keys, and the digest that it then has. */
export async function changed(table, keys) {
  const other = { ...table, ...keys };
  return { ...other, digest: await digestOf(other) };
}

/** The survey with a budget of so many reports. */
export const bounded = (reports) =>
  changed(survey, { budget: { ...survey.budget, epsilon: reports * survey.spends.epsilon } });

export const NOW = 1_767_603_600_000;
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
