"""Running what was recorded: lazy values, compiled functions, and the cache of executables on disk."""
