"""A folder for each family: what a spec says of it, its randomizer, and its decoder, if it needs one of its own."""
