"""The step engine of every framework: names, calls, rows and the frame they fill."""
