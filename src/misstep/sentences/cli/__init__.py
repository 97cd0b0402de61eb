"""Every sentence of the terminal."""
