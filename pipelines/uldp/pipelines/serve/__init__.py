"""Results over HTTP: the live page, a JSON API of estimates and questions, and metrics. Nothing is written."""
