"""What any training server does, whoever trains: screening, memory, kept models, checkpoints, metrics."""
