"""Public attributes of reports: one mechanism, whose reports are counted apart in each slice."""
