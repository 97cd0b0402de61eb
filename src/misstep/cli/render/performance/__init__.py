"""How speed, memory and operators look in a terminal."""
