"""How the results of migration look in a terminal."""
