"""The law of one report, from which every error of a published number follows."""
