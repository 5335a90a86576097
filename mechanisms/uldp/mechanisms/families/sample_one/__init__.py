"""The mechanism of a record: one attribute, drawn by the device."""
