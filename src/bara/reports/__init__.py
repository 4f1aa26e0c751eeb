"""Records to what a person looks at: terminal tables and one-file HTML."""
