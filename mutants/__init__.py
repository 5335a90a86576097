"""Tests that can fail: small changes of the product's lines, each of which a quick test must notice."""
