"""The training as a debugger sees it: commands in, news out."""
