"""The collection spec and its parts, as strict models of one YAML file."""
