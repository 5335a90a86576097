"""What is fast, and what is accurate. A package, because some libraries install another one of this name."""
