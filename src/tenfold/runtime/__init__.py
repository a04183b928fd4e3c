"""Running what was recorded: evaluation of lazy values, compiled functions, and the cache of executables on disk."""
