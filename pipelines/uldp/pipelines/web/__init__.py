"""What all servers of the command line share: their addresses, and connections that end in time."""
