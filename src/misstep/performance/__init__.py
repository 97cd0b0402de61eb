"""What makes a training faster or smaller: where its time goes, what to change, and what the change then measured.

trace.bin ─► steps, pipeline ─► verdict ─► rules ─► advice ─► trial ─► kept or rolled back
"""
