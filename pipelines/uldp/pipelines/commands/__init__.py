"""The commands of the command line, by the room that each command calls. Beam is imported by commands that run it."""
