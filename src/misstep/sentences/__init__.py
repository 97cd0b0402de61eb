"""Every sentence a user can meet, once: its id, its gaps, its English and its Chinese.

`text` fills the gaps, `language` knows the reader's language, `glossary` the words that mean one thing everywhere, and
`recorded_before` reads runs whose sentences have no id. Everything else is a catalogue of one area.
"""
