"""One estimate from parts that devices obfuscate differently: versions of a collection, or levels of privacy."""
