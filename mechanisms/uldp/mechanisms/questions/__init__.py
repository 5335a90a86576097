"""Questions about published statistics, answered from kept counts: sums over time and values, changes, and reasons."""
