"""What is said about a program and its speed: mistakes in its source, what makes it slow, what its compiler did."""
