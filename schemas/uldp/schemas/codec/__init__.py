"""Fast codecs between bytes and columns of reports, thousands at a time; their tests compare each with fastavro."""
