"""Where a study is kept, and how several workers share it."""
