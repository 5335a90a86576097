"""From reports a second to cores, memory and cost; adapt the rates and the prices. docs/sizing.md explains both."""

import math

#: Reports a second of one core, deduplicated: measured, rounded down. "Flink" is a job on Flink that reads Kafka, of
#: uRR unless it says otherwise, by the processor time of one slot. "Graph" is the job's graph in one process of the
#: local runner, which reads reports from memory.
RATES = {
    "Flink, single": 300_000,
    "Flink, batches": 600_000,
    "graph, single": 600_000,
    "graph, batches": 2_300_000,
    "graph, batches of uRAP": 1_000_000,
}
#: Assumptions: cores are kept busy to 60 %, a core-hour costs 0.05 and a gigabyte-hour 0.006 (US dollars).
BUSY, CORE_HOUR, GB_HOUR = 0.6, 0.05, 0.006
BYTES_PER_ID, BYTES_PER_SYMBOL, WORKER_GB = 30, 16, 0.3


def size(reports: int, kind: str, symbols: int, horizon_hours: float, windows: int = 3) -> tuple[int, float, float]:
    """Return cores, gigabytes, and dollars an hour."""
    cores = math.ceil(reports / RATES[kind] / BUSY)
    ids = reports * 3600 * horizon_hours
    memory = (ids * BYTES_PER_ID + windows * symbols * BYTES_PER_SYMBOL) / 1e9 + cores * WORKER_GB
    return cores, memory, cores * CORE_HOUR + memory * GB_HOUR


def main() -> None:
    """Print a table."""
    print("reports/s   kind                    horizon   cores  memory GB  dollars/hour")
    for reports in (10_000, 100_000, 1_000_000, 10_000_000):
        for kind in RATES:
            cores, memory, dollars = size(reports, kind, symbols=625, horizon_hours=0.1)
            print(f"{reports:>10,}  {kind:<22}  6 min  {cores:>8,}  {memory:>9,.1f}  {dollars:>12,.2f}")
    for symbols in (625, 12_800, 1 << 20):
        cores, memory, dollars = size(1_000_000, "Flink, batches", symbols, horizon_hours=2)
        kind = f"{'Flink, batches':<22}  2 h  "
        print(f"{1_000_000:>10,}  {kind}  {cores:>8,}  {memory:>9,.1f}  {dollars:>12,.2f}  |X| = {symbols:,}")


if __name__ == "__main__":
    main()
