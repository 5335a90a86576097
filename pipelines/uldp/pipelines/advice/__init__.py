"""Which mechanism, epsilon and number of users: ``uldp advise``."""
