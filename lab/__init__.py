"""Virtual machines for tests: other kernels, two NUMA nodes, stalls on demand."""
