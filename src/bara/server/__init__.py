"""What any training server does: one round, screening, memory, models, checkpoints, metrics."""
