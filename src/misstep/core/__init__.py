"""The words of the domain; imports nothing else of misstep."""
