"""Cost models of serving a large language model; each module answers one question of the chapter."""
