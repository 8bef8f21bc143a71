"""deltacheck's own tables of an environment: the journal, which is also the lock."""
