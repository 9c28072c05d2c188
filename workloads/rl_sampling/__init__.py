"""RL sampling: samplers ask a policy for actions through a queue in shared memory."""
