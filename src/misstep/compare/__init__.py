"""Two things side by side: paired, measured, judged, told.

align.py       which tensor is which              names.py · mapfile.py
measures.py    how far apart they are             one pass of the kernel
error_model.py how far rounding would take them   verdict.py: noise, difference, cause, consequence
layers.py      diff(a, b) → Comparison            sentences.py · report.py · hints.py
checkpoints.py · losses.py                        the same for checkpoints and for loss curves
"""
