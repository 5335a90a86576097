"""The Personalized ULDP Mechanism (PUM): values that a user hides behind semantic tags."""
