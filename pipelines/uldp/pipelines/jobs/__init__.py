"""Jobs: what they read and write, whose a directory of results is, how they run, and what they say."""
