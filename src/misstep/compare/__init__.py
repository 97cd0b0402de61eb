"""Two things side by side: paired, measured, judged, told."""
