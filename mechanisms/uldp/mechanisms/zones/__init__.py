"""Tags with zones: a small budget says where, about, the users behind a tag are."""
