"""A package, so that pytest does not take the folder ``stepmark`` for the module of that name."""
