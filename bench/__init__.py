"""What the tracer costs, beside what its peers cost: one run on one machine, one table."""
