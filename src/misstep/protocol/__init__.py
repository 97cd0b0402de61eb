"""What is said over sockets and to pages; types only."""
