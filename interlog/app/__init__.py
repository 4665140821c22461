"""The only room that sees all rooms: settings, launcher, command line."""
