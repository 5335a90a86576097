"""One folder of results from several: of a stream, of its late reports, of an outage, of ranges of an archive."""
