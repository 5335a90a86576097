"""The page that shows results: its figures and its HTML."""
