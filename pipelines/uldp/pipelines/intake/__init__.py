"""``uldp collect``: an edge for devices without a broker, which takes their messages by HTTP."""
