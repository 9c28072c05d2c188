"""One module for each command. Its docstring is the help."""
