import CUldp

/// Makes the reports of one device by a table that `uldp device-table SPEC --c` has written.
///
/// It keeps no response and no budget: see `docs/client.md`. One thread uses it at a time.
public struct Reporter {
  private var table: uldp_table
  private var work: uldp_work

  /// - Parameters:
  ///   - table: The table, such as `places` of its header.
  ///   - work: The memory of the header for one report, such as `places_work`.
  public init(table: uldp_table, work: uldp_work) {
    self.table = table
    self.work = work
  }

  /// Perturbs what the device holds of each column, and returns the message to post; nil if a value is wrong.
  ///
  /// - Parameters:
  ///   - held: A value for each column of the table.
  ///   - part: The number of the level or of the slice of the device.
  ///   - timeMs: When it was observed, in milliseconds since 1970.
  public mutating func report(_ held: [uldp_held], part: UInt64 = 0, timeMs: UInt64) -> [UInt8]? {
    var id = [UInt8](repeating: 0, count: 16)
    uldp_fill(&id, id.count)
    // As ULDP_MESSAGE, which is no constant that Swift sees.
    var message = [UInt8](repeating: 0, count: 67 + strlen(table.collection) + work.bytes_count)
    let bytes = uldp_report(&table, held, held.count, part, id, timeMs, uldp_system_draws(), &work, &message)
    return bytes == 0 ? nil : Array(message.prefix(bytes))
  }
}
