"""What migration asks of a framework, once for each: the only files of this package that import one."""
