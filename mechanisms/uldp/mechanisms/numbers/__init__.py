"""Numbers of a range: their encoding, their mechanisms, and their mean and quantiles."""
