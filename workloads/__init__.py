"""Real programs to trace, one package each."""
