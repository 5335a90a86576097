"""What an operator asks first: what runs, how far it is, and which reports were not counted."""
