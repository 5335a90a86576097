"""Results that grow while they are read: what has changed, how far their job is, and figures for monitors."""
