"""The HTML page that shows results, and its figures."""
